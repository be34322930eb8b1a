package archive

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Archive is the files of a series in a store. Its methods are safe for concurrent use.
type Archive struct {
	store Store
}

// New returns the archive in a store, which may be empty or missing.
func New(store Store) *Archive { return &Archive{store} }

const (
	exported = "samples.parquet"
	expired  = "expired-"
	removed  = "removed-"
	allDays  = "dt=" // prefix of all files

	// fileMax is the maximum size of a file, in bytes.
	fileMax = 5 << 30
)

var (
	dayForm     = form(`^dt=([0-9]{4}-[0-9]{2}-[0-9]{2})/[^/]+\.parquet$`)
	removedForm = form(`^dt=[0-9]{4}-[0-9]{2}-[0-9]{2}/removed-([0-9a-z]+)-([0-9]{10})-([0-9]{10})\.parquet$`)
	expiredForm = form(`^dt=([0-9]{4}-[0-9]{2}-[0-9]{2})/expired-(.+)-([0-9]{1,40})-([0-9]{1,40})\.parquet$`)
)

// form returns a regular expression that is compiled at its first use, so that programs that do not
// read an archive start without it.
func form(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// names are the names of an archive's files.
type names struct {
	days     map[string][]string // by day, in order; without files that another one includes
	included []string
}

// list returns the names of the archive's files with a prefix. It ignores other files in the store.
func (a *Archive) list(ctx context.Context, prefix string) (n names, err error) {
	all, err := a.store.List(ctx, prefix)
	if err != nil {
		return n, fmt.Errorf("list the archive %s: %w", a.store, err)
	}
	n.days = map[string][]string{}
	for _, name := range all {
		if m := dayForm().FindStringSubmatch(name); m != nil {
			n.days[m[1]] = append(n.days[m[1]], name)
		}
	}
	for day, some := range n.days {
		var included []string
		n.days[day], included = withoutIncluded(some)
		n.included = append(n.included, included...)
	}
	return n, nil
}

// files returns the names of the archive's files by day.
func (a *Archive) files(ctx context.Context) (map[string][]string, error) {
	n, err := a.list(ctx, allDays)
	return n.days, err
}

// withoutIncluded divides the sorted files of a day: included are those that a target has combined
// into another file and not removed yet.
func withoutIncluded(all []string) (others, included []string) {
	type file struct{ name, writer, first, last string } // numbers have leading zeros
	var some []file
	for _, name := range all {
		if m := removedForm().FindStringSubmatch(name); m != nil {
			some = append(some, file{name, m[1], m[2], m[3]})
		}
	}
	sort.Slice(some, func(i, j int) bool {
		a, b := some[i], some[j]
		return cmp.Or(cmp.Compare(a.writer, b.writer), cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last)) < 0
	})
	var widest file // the widest file so far
	for _, f := range some {
		if f.writer == widest.writer && f.last <= widest.last {
			included = append(included, f.name)
			continue
		}
		widest = f
	}
	if len(included) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(included, name) }), included
}

// removeIncluded removes a file that another one includes. On failure it stays; only readers that
// ignore names read it.
func (a *Archive) removeIncluded(ctx context.Context, name string, log *slog.Logger) {
	if err := a.store.Remove(ctx, name); err != nil {
		log.Warn("an archive file was not deleted although a larger one contains its samples", "file", name, "store", a.store, "error", err)
	}
}

// kind is the origin of a file.
type kind int

const (
	kindExported kind = iota
	kindExpired
	kindRemoved
)

var kinds = [...]string{kindExported: "an export's files", kindExpired: "files of what has expired", kindRemoved: "files of what guard has removed"}

func kindOf(name string) kind {
	switch name = path.Base(name); {
	case strings.HasPrefix(name, expired):
		return kindExpired
	case strings.HasPrefix(name, removed):
		return kindRemoved
	}
	return kindExported
}

// mixed returns an error if an archive has files of another kind.
func (a *Archive) mixed(days map[string][]string, wanted kind) error {
	for _, names := range days {
		for _, name := range names {
			if kindOf(name) != wanted {
				return &MixedError{Store: a.store.String(), Name: name, wanted: wanted}
			}
		}
	}
	return nil
}

// MixedError reports that an archive has files of another kind, so that it would have samples more
// than once.
type MixedError struct {
	Store, Name string
	wanted      kind
}

func (e *MixedError) Error() string {
	return fmt.Sprintf("%s already has %s, such as %s; adding %s would store samples twice: choose another directory", e.Store, kinds[kindOf(e.Name)], e.Name, kinds[e.wanted])
}

// put writes a file of rows, which must be in the order of inFile. The values of rows number the
// names of metrics. After an error, such as the end of ctx, the store has the file as it was
// before.
func (a *Archive) put(ctx context.Context, name string, metrics []string, rows iter.Seq2[*row, error]) error {
	err := a.store.Put(ctx, name, func(to io.Writer) error {
		w := newWriter(&limited{to, fileMax}, metrics)
		for r, err := range rows {
			if err == nil {
				err = w.write(r)
			}
			if err == nil && w.total%rowsUntilLook == 0 {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
		}
		if err := w.close(); err != nil {
			return err
		}
		return ctx.Err() // after its end a process may have a successor
	})
	if err != nil {
		return fmt.Errorf("write %s in %s: %w", name, a.store, err)
	}
	return nil
}

// rowsUntilLook is the number of rows between checks of the context.
const rowsUntilLook = 500

// limited is a writer that fails beyond a number of bytes.
type limited struct {
	io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, fmt.Errorf("the file would exceed %d GB; use mayfly series archive, whose files are small", fileMax>>30)
	}
	return l.Writer.Write(p)
}

// daysBetween returns the archive's days that a range touches, in order.
func daysBetween(days map[string][]string, from, to time.Time) (some []string) {
	for day := range days {
		begin, err := time.Parse(time.DateOnly, day)
		if err != nil {
			continue
		}
		if (from.IsZero() || begin.Add(24*time.Hour).After(from)) && (to.IsZero() || begin.Before(to)) {
			some = append(some, day)
		}
	}
	slices.Sort(some)
	return some
}
