package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/timeseries"
)

// days are the files that a target writes. Each batch makes a small file for each of its days. Its name is one that no other file has ever had: a request to a bucket that was given up
// for lost can still arrive there, and must not put something older in the place of something newer. A day's small files are put together into one, and removed when that is durable; so
// nothing is ever missing, and the names tell which files are in which.
type days struct {
	a      *Archive
	o      TargetOptions
	writer string
	number int // of the last file
	open   map[string]*growing
}

// growing is a day whose files are put together, with all rows of them.
type growing struct {
	day     string
	metrics *metrics
	rows    []*row
	index   map[rowID]int // of rows
	bytes   int
	files   []part
}

type rowID struct{ device, key string }

// part is a file, by its number, or what files of a day were put together into it, by their first and last one's.
type part struct{ first, last int }

const (
	partsMax     = 64        // files of a day that are put together at the latest
	openMax      = 400       // days: a backlog of a year
	openBytesMax = 128 << 20 // rows' bytes of all days that grow, about
	dayBytesMax  = 16 << 20  // of one
	writersMax   = 16        // files that are written at one time
)

// write puts samples into files, and gives one error for each: nil where it is in one, durably.
func (d *days) write(ctx context.Context, samples []timeseries.Sample) []error {
	type fresh struct { // a file
		*growing
		part part
		rows []*row
		of   []int // samples
		err  error
	}
	errs := make([]error, len(samples))
	var all []*fresh
	byDay := map[string]*fresh{}
	for i := range samples {
		s := &samples[i]
		day := s.Key[:len(time.DateOnly)]
		f := byDay[day]
		if f == nil || !f.metrics.room(s) {
			d.number++
			f = &fresh{growing: d.grow(day, s), part: part{d.number, d.number}}
			byDay[day] = f
			all = append(all, f)
		}
		r, err := f.metrics.row(s)
		if err != nil {
			errs[i] = noSample(err)
			continue
		}
		f.rows, f.of = append(f.rows, &r), append(f.of, i)
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, writersMax)
	for _, f := range all {
		f.rows = slices.DeleteFunc(lastOfEach(f.rows), f.has) // those that were delivered before, and are as they were
		if len(f.rows) == 0 {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			f.err = d.put(ctx, f.growing, f.part, f.rows)
		})
	}
	wait.Wait()
	for _, f := range all {
		switch {
		case f.err != nil:
			for _, i := range f.of {
				errs[i] = f.err
			}
		case len(f.rows) > 0:
			f.add(f.rows, f.part)
		}
	}
	return errs
}

// grow gives the day's files that may still grow, with room for a sample's metrics.
func (d *days) grow(day string, s *timeseries.Sample) *growing {
	g := d.open[day]
	if g != nil && !g.metrics.room(s) {
		d.finish(g)
		g = nil
	}
	if g == nil {
		g = &growing{day: day, metrics: newMetrics(), index: map[rowID]int{}}
		d.open[day] = g
	}
	return g
}

// has reports whether a row is in a file already.
func (g *growing) has(r *row) bool {
	i, ok := g.index[rowID{r.device, r.key}]
	return ok && sameRow(g.rows[i], r)
}

// add notes what has come in a file. Of a sample that was there the later state counts.
func (g *growing) add(rows []*row, p part) {
	for _, r := range rows {
		id := rowID{r.device, r.key}
		if i, ok := g.index[id]; ok {
			g.bytes += r.bytes() - g.rows[i].bytes()
			g.rows[i] = r
			continue
		}
		g.index[id] = len(g.rows)
		g.rows = append(g.rows, r)
		g.bytes += r.bytes()
	}
	g.files = append(g.files, p)
}

// merge puts files together: those of days that have many, or that have grown enough; with all, those of each day. Where that fails the small files stay, and are as good.
func (d *days) merge(ctx context.Context, all bool) {
	for _, g := range d.byAge() {
		full := all || len(g.rows) >= d.o.Rows || g.bytes >= dayBytesMax
		if full || len(g.files) >= partsMax {
			d.together(ctx, g, full)
		}
	}
	for _, g := range d.byAge() { // what is too much in memory, too: the oldest first
		if d.openBytes() <= openBytesMax && len(d.open) <= openMax {
			return
		}
		d.together(ctx, g, true)
	}
}

// byAge are the days that grow, those first that have got nothing for the longest time.
func (d *days) byAge() (all []*growing) {
	for _, g := range d.open {
		if len(g.files) == 0 {
			delete(d.open, g.day) // its only file has failed
			continue
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *growing) int { return cmp.Compare(a.last(), b.last()) })
	return all
}

func (g *growing) last() int { return g.files[len(g.files)-1].last }

func (d *days) openBytes() (n int) {
	for _, g := range d.open {
		n += g.bytes
	}
	return n
}

// together makes one file of a day's. A day that is full grows no more; so does one whose files cannot be put together, since they would stay in memory.
func (d *days) together(ctx context.Context, g *growing, full bool) {
	if full {
		d.finish(g)
	}
	if len(g.files) < 2 {
		return
	}
	whole := part{g.files[0].first, g.last()}
	if err := d.put(ctx, g, whole, g.rows); err != nil {
		d.finish(g)
		d.o.Logger.Warn("small archive files were not merged", "day", g.day, "files", len(g.files), "error", err)
		return
	}
	for _, p := range g.files { // in order: see Store.List
		d.a.removeIncluded(ctx, d.name(g.day, p), d.o.Logger)
	}
	g.files = []part{whole}
}

// finish lets a day's files grow no more. The next sample of the day begins new ones.
func (d *days) finish(g *growing) {
	if d.open[g.day] == g {
		delete(d.open, g.day)
	}
}

func (d *days) name(day string, p part) string {
	return fmt.Sprintf("%s%s%s-%010d-%010d.parquet", dayDir(day), removed, d.writer, p.first, p.last)
}

// put writes a file of a day's.
func (d *days) put(ctx context.Context, g *growing, p part, rows []*row) error {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, inFile)
	return d.a.put(ctx, d.name(g.day, p), g.metrics.names, fromSlice(rows))
}

// lastOfEach keeps of rows with one key the last, which is how the item went.
func lastOfEach(rows []*row) (some []*row) {
	at := map[rowID]int{}
	for _, r := range rows {
		id := rowID{r.device, r.key}
		if i, ok := at[id]; ok {
			some[i] = r
			continue
		}
		at[id] = len(some)
		some = append(some, r)
	}
	return some
}
