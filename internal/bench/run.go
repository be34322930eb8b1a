package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// ErrWrongAnswers reports that a run was complete, but had wrong answers. Its report is valid and
// counts them.
var ErrWrongAnswers = errors.New("some answers were wrong")

// Names of the servers that a run starts.
const (
	ownName    = "mayfly"
	memoryName = "mayfly in memory"
)

var durabilities = map[string]kv.Durability{"sync": kv.Sync, "async": kv.Async, "memory": kv.Memory}

// run is the state of a run.
type run struct {
	Options
	dir       string // parent of all its files
	endpoints []*endpoint
	nats      *natsServer  // nil unless requested
	redis     *redisServer // nil unless requested
	started   time.Time
	prefix    string // prefix of its tables' names
	report    *Report
	progress  Step
}

// Run measures the endpoints. It leaves nothing behind: at its end its servers have stopped, and
// its directories and its tables elsewhere are gone. It also returns the report with
// ErrWrongAnswers, and after an error of the cleanup only.
func Run(ctx context.Context, options Options) (*Report, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(options.Dir, "mayfly-bench-")
	if err != nil {
		return nil, err
	}
	r := &run{Options: options, dir: dir, started: time.Now()}
	r.prefix = fmt.Sprintf("bench-%d-", r.started.UnixMilli())
	r.report = &Report{
		Date: r.started.UTC().Truncate(time.Second), Version: r.Version, Commit: r.Commit, Machine: ThisMachine(), Settings: r.settings(),
	}
	err = r.all(ctx)
	r.report.TookS = time.Since(r.started).Seconds()
	left := r.cleanUp()
	if err != nil {
		return nil, errors.Join(err, left)
	}
	if r.report.Errors > 0 {
		err = fmt.Errorf("%w: %d", ErrWrongAnswers, r.report.Errors)
	}
	return r.report, errors.Join(err, left)
}

func (r *run) settings() Settings {
	return Settings{
		Durability: r.Durability, DurationMS: r.Duration.Milliseconds(), Rounds: r.Rounds, Items: r.Items, ItemBytes: itemBytes,
		Pending: r.Pending,
	}
}

// ThisMachine describes this machine at present.
func ThisMachine() Machine {
	cpu, system := machineNames()
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(), Load: machineLoad(), CPU: cpu, System: system,
	}
}

// all runs all parts in sequence.
func (r *run) all(ctx context.Context) error {
	r.progress.Total = len(r.cells())*r.Rounds + len(r.experiments())
	if err := inOrder(ctx, r.openEndpoints, r.openOthers, r.fillPending, r.callRounds); err != nil {
		return err
	}
	for _, x := range r.experiments() {
		r.progress.Part++
		if err := x.measure(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	for _, e := range r.endpoints {
		r.report.Endpoints = append(r.report.Endpoints, Endpoint{
			Name: e.name, Version: e.version, Durability: e.durability, URL: "http://" + e.address, PID: e.pid, Notes: e.notes,
		})
	}
	for _, t := range r.timers() {
		r.report.Endpoints = append(r.report.Endpoints, t.describe())
	}
	return nil
}

// openOthers connects to the run's servers of other kinds.
func (r *run) openOthers(ctx context.Context) (err error) {
	if r.NATS != "" {
		r.nats, err = openNATS(ctx, r.NATS, r.prefix, r.AllowRemote)
	}
	if r.Redis != "" && err == nil {
		r.redis, err = openRedis(ctx, r.Redis, r.prefix, r.AllowRemote)
	}
	return err
}

// fillPending writes the items with deadlines after the run, if a part needs them. Schedules have a
// server, and pending ones, of their own.
func (r *run) fillPending(ctx context.Context) error {
	if r.Pending == 0 || len(r.cells()) == 0 && !slices.ContainsFunc(r.experiments(), func(x experiment) bool { return x.pending }) {
		return nil
	}
	for _, e := range r.endpoints {
		if err := r.prepareTable(ctx, e, tablePending); err != nil {
			return err
		}
	}
	return nil
}

// openEndpoints starts the own server, or connects to the endpoint to measure, and connects to
// those for comparison.
func (r *run) openEndpoints(ctx context.Context) error {
	if r.URL == nil {
		e, err := r.startServer(ctx, ownName, r.Durability)
		if err != nil {
			return err
		}
		r.endpoints = append(r.endpoints, e)
		if r.InMemory {
			if e, err = r.startServer(ctx, memoryName, "memory"); err != nil {
				return err
			}
			e.onlyCalls = true
			r.endpoints = append(r.endpoints, e)
		}
	} else if err := r.openRemote(ctx, *r.URL); err != nil {
		return err
	}
	for _, remote := range r.Versus {
		if err := r.openRemote(ctx, remote); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) openRemote(ctx context.Context, remote Remote) error {
	e, err := remote.open(ctx, r.AllowRemote)
	if err != nil {
		return err
	}
	for _, other := range r.endpoints {
		if other.name == e.name {
			return &UsageError{fmt.Errorf("two endpoints have the name %s; give names as NAME=URL", e.name)}
		}
	}
	if e.name == TargetEcho || e.name == TargetLoop {
		return &UsageError{fmt.Errorf("the name %s belongs to a reference; name the endpoint otherwise with NAME=URL", e.name)}
	}
	if _, err := e.call(ctx, apiPrefix+"ListTables", "{}"); err != nil {
		return fmt.Errorf("%s does not answer as DynamoDB does: %w", remote.URL, err)
	}
	r.endpoints = append(r.endpoints, e)
	return nil
}

// startServer starts a mayfly with a directory of its own, or with its data in memory.
func (r *run) startServer(ctx context.Context, name, durability string, flags ...string) (*endpoint, error) {
	line := slices.Concat(r.Self, []string{"serve", "--port", "0", "--log-level", "error"}, flags)
	if durability == "memory" {
		line = append(line, "--memory")
	} else {
		line = append(line, "--data", r.serverDir(name), "--durability", durability)
	}
	e, err := startEndpoint(ctx, name, line)
	if err == nil {
		e.version, e.durability = r.Version, durability
	}
	return e, err
}

// serverDir returns the data directory of the server with that name.
func (r *run) serverDir(name string) string { return filepath.Join(r.dir, name) }

func startEndpoint(ctx context.Context, name string, line []string) (*endpoint, error) {
	c, err := startChild(ctx, line)
	if err != nil {
		return nil, err
	}
	e := newEndpoint(name, c.address, c.pid())
	e.child = c
	return e, nil
}

// callRounds measures the scenarios.
func (r *run) callRounds(ctx context.Context) (err error) {
	if len(r.cells()) == 0 {
		return nil
	}
	echo, err := startEndpoint(ctx, TargetEcho, slices.Concat(r.Self, []string{"bench", "--role", RoleEcho}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, echo.close()) }()
	loop, err := r.openLoop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loop.close()) }()
	var targets []target
	for _, e := range r.endpoints {
		for _, kind := range r.tableKinds() {
			if err := r.prepareTable(ctx, e, kind); err != nil {
				return err
			}
		}
		if err := r.probe(ctx, e); err != nil {
			return err
		}
		targets = append(targets, e)
	}
	targets = append(targets, &echoTarget{endpoint: echo, model: r.endpoints[0]}, &loopTarget{loop})
	all, err := r.rounds(ctx, targets)
	if err != nil {
		return err
	}
	r.report.Calls = all.figures(targets, r.cells())
	r.report.Ratios = all.ratios(targets, r.cells())
	return nil
}

// probe checks which operations an endpoint lacks.
func (r *run) probe(ctx context.Context, e *endpoint) error {
	for i := range scenarios {
		s := &scenarios[i]
		if !r.runs(s.name) {
			continue
		}
		a, err := e.exchange(ctx, e.callers(s, 1)[0].next())
		if err != nil {
			return fmt.Errorf("%s at %s: %w", s.name, e.name, err)
		}
		if a.status != 200 && newRefusal(a).code == "UnknownOperationException" {
			e.lacks[s.name] = true
			e.note("no %s", s.operation)
		}
	}
	return nil
}

// openLoop opens and fills the store of the loop.
func (r *run) openLoop(ctx context.Context) (*loop, error) {
	l, err := openLoop(filepath.Join(r.dir, TargetLoop), durabilities[r.Durability])
	if err != nil {
		return nil, err
	}
	if err := l.fill(ctx, r.Items, uint64(afterRun.UnixMilli()), tablePut); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// tableKinds returns the tables that the scenarios need, in the order of their creation.
func (r *run) tableKinds() (kinds []*design) {
	for _, c := range r.cells() {
		if kind := c.scenario.table; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (r *run) prepareTable(ctx context.Context, e *endpoint, kind *design) error {
	t, err := e.createTable(ctx, r.prefix, kind)
	if err != nil {
		return fmt.Errorf("create table %s at %s: %w", kind.name, e.name, err)
	}
	items := r.stored(kind)
	t.items = uint64(items)
	t.fresh.Store(t.items)
	if !kind.stored {
		return nil
	}
	for from := 0; from < items; {
		to, start := min(from+fillSlice, items), time.Now()
		r.step("fill table %s of %s: %d of %d items", kind.name, e.name, to, items)
		if err := e.fillTable(ctx, t, from, to, farDeadline); err != nil {
			return err
		}
		r.result("%.0f items/s", float64(to-from)/time.Since(start).Seconds())
		from = to
	}
	return nil
}

// fillSlice is the number of items after which the filling of a table shows its progress.
const fillSlice = 250_000

// stored returns the initial number of items in a table.
func (r *run) stored(kind *design) int {
	switch kind {
	case tablePending:
		return r.Pending
	case tableForeground:
		return foregroundItems
	case tableUpdated:
		return min(r.Items, updatedMost)
	}
	return r.Items
}

const cleanUpLimit = 30 * time.Second

// cleanUp removes the tables, servers and files of the run.
func (r *run) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpLimit)
	defer cancel()
	var errs []error
	for _, e := range r.endpoints {
		if e.child == nil {
			errs = append(errs, e.dropTables(ctx))
		}
		errs = append(errs, e.close())
	}
	if r.nats != nil {
		errs = append(errs, r.nats.close(ctx))
	}
	if r.redis != nil {
		errs = append(errs, r.redis.close())
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// pick returns a number for a quick run, or for others.
func pick[T any](isQuick bool, quick, full T) T {
	if isQuick {
		return quick
	}
	return full
}

// step reports the start of a step.
func (r *run) step(format string, args ...any) {
	r.progress.Text, r.progress.Result = fmt.Sprintf(format, args...), ""
	r.Progress(r.progress)
}

// result reports the end of the step.
func (r *run) result(format string, args ...any) {
	r.progress.Result = fmt.Sprintf(format, args...)
	r.Progress(r.progress)
}

const problemsMax = 20

// problem counts errors, and keeps the first texts.
func (r *run) problem(errors int, text string) {
	r.report.Errors += errors
	if len(r.report.Problems) < problemsMax && !slices.Contains(r.report.Problems, text) {
		r.report.Problems = append(r.report.Problems, text)
	}
}
