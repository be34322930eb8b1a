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

// days are the files that a target writes. Each batch makes a small file for each of its days, with
// a name that no other file has ever had: an upload that seemed lost can still arrive in a bucket,
// and must not replace newer data. A day's small files are combined into one, and removed once that
// is durable. So no sample is ever missing, and the names show which files include which.
type days struct {
	a      *Archive
	o      TargetOptions
	writer string
	number int // of the last file
	open   map[string]*growing
}

// growing is a day whose files may still be combined, with all rows of them.
type growing struct {
	day     string
	metrics *metrics
	rows    []*row
	index   map[rowID]int // of rows
	bytes   int
	files   []part
}

type rowID struct{ device, key string }

// part is a file, by its number, or a combination of files, by the numbers of its first and last
// one.
type part struct{ first, last int }

const (
	partsMax     = 64        // files of a day that are combined
	openMax      = 400       // days: a backlog of a year
	openBytesMax = 128 << 20 // bytes of rows in all growing days, an estimate
	dayBytesMax  = 16 << 20  // bytes of rows in one
	writersMax   = 16        // concurrent writes of files
)

// write writes samples to files, and returns an error for each: nil if it is durable.
func (d *days) write(ctx context.Context, samples []timeseries.Sample) []error {
	type fresh struct { // a file
		*growing
		part part
		rows []*row
		of   []int // indexes of its samples
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
		// drop rows delivered before and unchanged
		f.rows = slices.DeleteFunc(lastOfEach(f.rows), f.has)
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

// grow returns a growing day with room for a sample's metrics.
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

// has reports whether a file has the same row already.
func (g *growing) has(r *row) bool {
	i, ok := g.index[rowID{r.device, r.key}]
	return ok && sameRow(g.rows[i], r)
}

// add records the rows of a file. The later state of a sample replaces the earlier one.
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

// merge combines the files of days that have many or have grown enough, or with all of every day.
// On failure the small files stay, and serve as well.
func (d *days) merge(ctx context.Context, all bool) {
	for _, g := range d.byAge() {
		full := all || len(g.rows) >= d.o.Rows || g.bytes >= dayBytesMax
		if full || len(g.files) >= partsMax {
			d.together(ctx, g, full)
		}
	}
	for _, g := range d.byAge() { // also bound the memory, oldest first
		if d.openBytes() <= openBytesMax && len(d.open) <= openMax {
			return
		}
		d.together(ctx, g, true)
	}
}

// byAge returns the growing days, those without new samples for the longest time first. It removes
// days without a file from open.
func (d *days) byAge() (all []*growing) {
	for _, g := range d.open {
		if len(g.files) == 0 {
			delete(d.open, g.day) // its only write failed
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

// together combines a day's files. Afterwards the day is closed if it is full, or if its files could
// not be combined: an open day's rows stay in memory.
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
	for _, p := range g.files { // in order, for Store.List
		d.a.removeIncluded(ctx, d.name(g.day, p), d.o.Logger)
	}
	g.files = []part{whole}
}

// finish stops a day from growing. The day's next sample starts a new set of files.
func (d *days) finish(g *growing) {
	if d.open[g.day] == g {
		delete(d.open, g.day)
	}
}

func (d *days) name(day string, p part) string {
	return fmt.Sprintf("%s%s%s-%010d-%010d.parquet", dayDir(day), removed, d.writer, p.first, p.last)
}

// put writes a file of a day.
func (d *days) put(ctx context.Context, g *growing, p part, rows []*row) error {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, inFile)
	return d.a.put(ctx, d.name(g.day, p), g.metrics.names, fromSlice(rows))
}

// lastOfEach returns the last row of each key: the item's state before its removal.
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
