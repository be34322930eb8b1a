package program

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

type scheduleImportCommand struct {
	File      string `arg:"" help:"File of JSON lines, or a JSON array, as written by export; - for standard input."`
	GroupName string `name:"group" help:"Put all into this schedule group, instead of the groups in the file." placeholder:"NAME"`
	Replace   bool   `help:"Overwrite existing schedules that differ. Without it they are reported."`
	Past      bool   `help:"Also create one-time schedules whose time has passed. mayfly fires them at once."`
	DryRun    bool   `help:"Check the file and change nothing."`
	JSON      bool   `name:"json" help:"Print the result as JSON."`
	endpointFlags
}

func (scheduleImportCommand) Help() string {
	return `Examples:

    mayfly schedule import schedules.jsonl
    mayfly schedule import --replace --group staging schedules.jsonl
    mayfly schedule export --endpoint aws | mayfly schedule import -

It can be repeated: existing schedules that are equal stay as they are. Missing groups are created. Lines that
cannot be imported are reported with their numbers, the others are imported, and the exit code is 1. A StartDate that
has passed, which the API refuses, is dropped, or for a rate moved to the next occurrence to keep its rhythm.`
}

// Outcomes of a line.
const (
	importCreated   = "created"
	importReplaced  = "replaced"
	importUnchanged = "unchanged"
	importPast      = "past"
	importFailed    = "failed"
)

// importReport counts the outcomes of all lines.
type importReport struct {
	Created   int            `json:"created"`
	Replaced  int            `json:"replaced"`
	Unchanged int            `json:"unchanged"`
	Past      int            `json:"past"` // past one-time schedules, which are not created
	Failed    int            `json:"failed"`
	Groups    int            `json:"groups"` // created
	Problems  []lineProblem  `json:"problems,omitempty"`
	counts    map[string]int // by outcome
}

// lineProblem is a line that was not imported.
type lineProblem struct {
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

const problemsMax = 100 // number of lines reported one by one

// Run imports schedules.
func (c scheduleImportCommand) Run(ctx context.Context, s streams) error {
	file, size, err := openInput(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	i := &importer{
		command: c, endpoint: e, client: e.Scheduler(), now: time.Now, seed: maphash.MakeSeed(), seen: map[uint64]int{}, groups: map[string]error{},
		report: importReport{counts: map[string]int{}},
	}
	if !c.DryRun {
		i.now = func() time.Time { return e.now(ctx) }
		e.askClock(ctx)
	}
	line := newBar(s.err)
	err = i.run(ctx, file, func(read int64, done int) {
		line.draw(read, max(size, read), counted(done, "schedule"))
	})
	line.clear()
	return i.finish(s, err)
}

// run reads the file and puts the schedules, several in parallel.
func (i *importer) run(ctx context.Context, file io.Reader, progress func(read int64, done int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := make(chan readLine, 4*parallelMax)
	var workers sync.WaitGroup
	for range parallelMax {
		workers.Go(func() {
			for l := range lines {
				outcome, err := i.put(ctx, l.document)
				if err != nil && ctx.Err() != nil {
					continue // interrupted; the line is not at fault
				}
				if i.note(l.line, outcome, err) == maxInARow {
					cancel(err) // the endpoint is unreachable, or refuses everything
				}
			}
		})
	}
	from := &documents{from: file}
	began := time.Now()
	var err error
	for err == nil && ctx.Err() == nil {
		var l numbered
		if l, err = from.next(); err != nil {
			break
		}
		// Lines are read in order, so that the second of two lines for a schedule is always the one
		// refused.
		if d, wrong := i.read(l); wrong != nil {
			i.note(l.line, importFailed, &errLine{wrong})
		} else {
			lines <- readLine{l.line, d}
		}
		if time.Since(began) > 100*time.Millisecond {
			began = time.Now()
			progress(from.read, i.done())
		}
	}
	close(lines)
	workers.Wait()
	if ctx.Err() != nil {
		return i.endpoint.advise(context.Cause(ctx))
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// readLine is a schedule to import, with its line number.
type readLine struct {
	line     int
	document *scheduleDocument
}

// maxInARow is the number of consecutive failures, not caused by the lines, that ends the import.
const maxInARow = 3 * parallelMax

// finish prints the report, and returns an error if lines failed.
func (i *importer) finish(s streams, err error) error {
	r := &i.report
	sort.Slice(r.Problems, func(i, j int) bool { return r.Problems[i].Line < r.Problems[j].Line })
	r.Created, r.Replaced, r.Unchanged = r.counts[importCreated], r.counts[importReplaced], r.counts[importUnchanged]
	r.Past, r.Failed = r.counts[importPast], r.counts[importFailed]
	if i.command.JSON {
		if wrong := writeJSON(s.out, r); wrong != nil {
			return wrong
		}
	} else {
		i.print(s)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the import stopped: %w", err)
	case r.Failed > 0 && i.conflicts > 0 && !i.command.Replace:
		return advise(fmt.Errorf("%s of the file not imported", counted(r.Failed, "schedule")), "add --replace to overwrite existing schedules that differ")
	case r.Failed > 0:
		return advise(fmt.Errorf("%s of the file not imported", counted(r.Failed, "schedule")), "correct those lines and run it again; schedules imported already stay as they are")
	}
	return nil
}

func (i *importer) print(s streams) {
	r := &i.report
	for _, p := range r.Problems {
		fmt.Fprintf(s.err, "line %d: %s\n", p.Line, oneLine(p.Problem))
	}
	if more := r.Failed - len(r.Problems); more > 0 {
		fmt.Fprintf(s.err, "and %d more\n", more)
	}
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	created := "created"
	if i.command.DryRun {
		created = "valid"
	}
	add(r.Created, created)
	add(r.Replaced, "replaced")
	add(r.Unchanged, "unchanged")
	add(r.Past, "skipped, as their time has passed (--past creates them)")
	add(r.Failed, "not imported")
	if len(parts) == 0 {
		parts = []string{"no schedules"}
	}
	fmt.Fprintln(s.out, strings.Join(parts, ", "))
	if r.Groups > 0 {
		fmt.Fprintf(s.out, "created %s\n", counted(r.Groups, "group"))
	}
}

// note counts an outcome. It returns the number of consecutive failures that the lines did not
// cause.
func (i *importer) note(line int, outcome string, err error) (inARow int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.report.counts[outcome]++
	if err == nil {
		i.inARow = 0
		return 0
	}
	if len(i.report.Problems) < problemsMax {
		i.report.Problems = append(i.report.Problems, lineProblem{line, err.Error()})
	}
	if !isOwn(err) {
		i.inARow++
	}
	return i.inARow
}

func (i *importer) done() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, count := range i.report.counts {
		n += count
	}
	return n
}

// current returns the document in a form that can be created now. The API refuses a past StartDate,
// so it is omitted; a rate begins with its next occurrence instead, which keeps its pace. past
// reports whether the schedule fires only once, at a past time.
func (d *scheduleDocument) current(now time.Time) (current *scheduleDocument, past bool) {
	t, err := d.timetable()
	if err != nil {
		return d, false
	}
	if t.expression.Kind() == cron.At {
		_, more := t.after(now)
		return d, !more
	}
	if t.start.IsZero() || t.start.After(now.Add(-4*time.Minute)) { // the API's limit is 5
		return d, false
	}
	moved := *d
	moved.StartDate = nil
	if next, more := t.after(now); more && t.expression.Kind() == cron.Rate {
		moved.StartDate = wireTimeOf(next)
	}
	return &moved, false
}
