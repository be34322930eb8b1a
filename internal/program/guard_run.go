package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/front/admin"
)

type guardRunCommand struct {
	Config configFlag `help:"YAML or JSON file that sets any of these flags by name. The command line and the environment override it." placeholder:"FILE"`

	Table     []string `help:"Table to guard. Repeatable." required:"" placeholder:"NAME"`
	Attribute string   `help:"TTL attribute, a number of epoch seconds. Default: the table's own TTL attribute." placeholder:"NAME"`
	Version   string   `name:"version-attribute" help:"Attribute that changes with each write of an item. Removals are conditional on it, too." placeholder:"NAME"`
	Strategy  string   `help:"How guard learns deadlines: stream, index, schedule or scan. auto takes the first of stream, index and scan that the table has." enum:"auto,stream,index,schedule,scan" default:"auto"`

	Deadlines         string        `help:"Directory for the deadlines of the stream strategy, with a single worker. Default: the table mayfly.deadlines at the endpoint." placeholder:"DIR"`
	Index             string        `help:"Index of the index strategy. Default: found by its shape." placeholder:"NAME"`
	Granularity       time.Duration `help:"Length of the index's windows. Default: found in the index; a difference is logged." placeholder:"TIME"`
	Shards            int           `help:"Shards of the index. Default: as noted by mayfly guard init." placeholder:"N"`
	Period            time.Duration `help:"How often the index is queried, from 1s to 1h." default:"5s"`
	Partitions        int           `help:"Number of partitions of the stream strategy's deadlines: a power of two up to 256. At most as many workers share the removals. It grows while other workers run, and never shrinks. Default: as many as the table has, or 16." placeholder:"N"`
	Segments          int           `help:"Number of parts of a scan, up to 1,000,000: as many workers can share it. Default: 32 for the stream strategy, else 4." placeholder:"N"`
	SchedulerEndpoint string        `help:"With the schedule strategy: the Scheduler's endpoint, http://host:port, or aws. Default: AWS_ENDPOINT_URL_SCHEDULER, then --endpoint." placeholder:"URL"`
	SchedulerRole     string        `help:"ARN of the role that the schedules assume." placeholder:"ARN"`
	SchedulerQueue    string        `help:"ARN of the SQS queue for deletions that the schedules failed to make." placeholder:"ARN"`

	MaxWCU      float64       `name:"max-wcu" help:"Most write units a second for this worker's removals. Default: no limit." placeholder:"N"`
	MaxRCU      float64       `name:"max-rcu" help:"Most read units a second for scans and sweeps, of all workers together. Default: 100 for the scan strategy, else no limit." placeholder:"N"`
	AuditRCU    float64       `name:"audit-rcu" help:"Most read units a second for the audit, a slow scan that finds overdue items which the strategy missed; 0 switches it off." default:"5" placeholder:"N"`
	AuditEvery  time.Duration `help:"Least time between the beginnings of two audits of a table, from 1m to 8760h." default:"24h"`
	Concurrency int           `help:"Parallel removals, up to 1,024." default:"64"`
	Batch       batchSize     `help:"Removals in one transaction, up to 100; 0 uses no transactions. auto uses them at a mayfly whose stream guard reads, where they are free, and not elsewhere: Amazon charges twice for them." placeholder:"N" default:"auto"`
	limitFlags
	DryRun  bool   `help:"Remove nothing; report what would be removed."`
	Mark    string `help:"Attribute to set to the TTL value right before the removal, so that stream readers can tell expiries from deletions." placeholder:"NAME"`
	Archive string `help:"Where to send each item before its removal: the ARN or name of a target, with --targets; or, for a table of mayfly series, Parquet files: parquet:DIR or s3://bucket/prefix." placeholder:"ARN"`
	Targets string `help:"File of targets; see docs/targets.md." placeholder:"FILE"`

	Undo        string        `help:"Directory or s3://bucket/prefix for the image of each item, written before its removal, so that mayfly guard undo can put it back." placeholder:"DIR"`
	ArchiveWait time.Duration `help:"How long an item waits for others to share a Parquet file, from 1ms to 1m. Its removal is as much later." default:"100ms"`

	leasesFlag
	deadlinesTableFlag
	ownTableFlags

	MaxSkew time.Duration `help:"Most difference between this machine's clock and the endpoint's, from 100ms to 1h. Beyond it, removals wait." default:"5s"`
	endpointClockFlag
	Lease  time.Duration `help:"Time after which others take over a silent worker's share, from 1s to 1h. With the default, a takeover takes up to 10s." default:"6s"`
	Worker string        `help:"Name of this worker; a random suffix is added. Default: the machine's name." placeholder:"NAME"`
	Alone  bool          `help:"Promise that no other worker guards these tables, and renew no leases."`

	MetricsPort *int   `help:"Port for /metrics, /healthz and /readyz; 0 chooses a free one and prints it. Default: none." placeholder:"PORT"`
	MetricsHost string `help:"Address for --metrics-port." default:"127.0.0.1"`
	JSON        bool   `name:"json" help:"Print events as JSON lines."`
	endpointFlags
	logFlags
}

func (guardRunCommand) Help() string {
	return `Examples:

    mayfly guard run --endpoint aws --table orders --deadlines ./deadlines
    mayfly guard --endpoint aws --table orders --table sessions --strategy stream --metrics-port 9100
    mayfly guard --endpoint http://127.0.0.1:8000 --table orders --attribute ttl --strategy scan --max-rcu 50 --dry-run
    mayfly guard --config guard.yaml

Items are removed at their deadlines by the endpoint's clock, never before, and never if they were renewed. Start as many
workers as you like: they share the tables. Exit codes: 3 if the table, its stream or its index is not suitable, 4 for
credentials and permissions, 5 for the clock, 6 if the endpoint does not answer, 7 for overdue items that nobody has
accepted and for --max-removals. Standard output lists removals, standard error has the log; on a terminal a bar shows the
progress of scans.`
}

// Run guards the tables until ctx is done, or guarding one of them fails.
func (c guardRunCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return adviseCredentials(err)
	}
	e.widen(c.Concurrency + 16)
	holdHeap()
	bar := &sharedBar{bar: newBar(s.err)}
	s = streams{bar.above(s.out), bar.above(s.err)}
	base := c.options(e)
	base.Tables, _ = c.tables(c.LeasesTable, c.DeadlinesTable) // check has seen its error
	base.Logger = c.logger(s.err)
	shutDeadlines, err := c.openDeadlines(&base)
	if err != nil {
		return err
	}
	if c.Undo != "" {
		if base.Undo, err = openJournal(ctx, c.Undo, base.Logger); err != nil {
			return errors.Join(misused(fmt.Errorf("--undo: %w", err), "use --undo DIR or s3://bucket/prefix"), shutDeadlines())
		}
	}
	shutArchive, err := c.openArchive(ctx, &base)
	if err != nil {
		return errors.Join(err, shutDeadlines())
	}
	base.Removals = &guard.Removals{}
	err = c.guardAsking(ctx, func(ctx context.Context, accepted map[string]bool) ([]*guarded, error) {
		return c.guard(ctx, s, bar, e, base, accepted)
	}, func(err error, done guardWork) (string, error) { return askOverdue(s, err, done) })
	return errors.Join(err, shutArchive(), shutDeadlines())
}

// check returns an error for contradicting flags. guard validates the options.
func (c guardRunCommand) check() error {
	for i, name := range c.Table {
		if slices.Contains(c.Table[:i], name) {
			return misused(fmt.Errorf("--table %s is given twice", name), "give each table once")
		}
	}
	byStream := c.Strategy == "auto" || c.Strategy == string(guard.Stream)
	switch {
	case c.Deadlines != "" && !byStream:
		return misused(errors.New("--deadlines works only with the stream strategy"), "drop --deadlines, or use --strategy stream")
	case c.Deadlines != "" && c.DeadlinesTable != guard.DeadlinesTable:
		return misused(errors.New("--deadlines keeps the deadlines in a directory, and --deadlines-table in a table"), "drop one of them")
	case c.SchedulerEndpoint != "" && c.Strategy != string(guard.Schedule):
		return misused(errors.New("--scheduler-endpoint works only with the schedule strategy"), "drop --scheduler-endpoint, or use --strategy schedule")
	}
	if _, err := c.tables(c.LeasesTable, c.DeadlinesTable); err != nil {
		return err
	}
	return errors.Join(c.checkArchive(), needBucket(c.Undo), c.limitFlags.check())
}

// options returns the options that all tables share.
func (c guardRunCommand) options(e *endpoint) guard.Options {
	o := guard.Options{
		DB: e.DynamoDB(), Streams: e.Streams(), Attribute: c.Attribute, Version: c.Version, IndexName: c.Index, Granularity: c.Granularity, Shards: c.Shards, Period: c.Period,
		Partitions: c.Partitions, Segments: c.Segments, MaxRCU: c.MaxRCU, MaxWCU: c.MaxWCU, Concurrency: c.Concurrency, Batch: int(c.Batch), DryRun: c.DryRun, Mark: c.Mark, Role: c.SchedulerRole, DeadLetters: c.SchedulerQueue,
		MaxSkew: c.MaxSkew, LocalClock: c.localClock(), Lease: c.Lease, AuditEvery: c.AuditEvery, Owner: c.worker(), Alone: c.Alone,
	}
	if o.AuditRCU = c.AuditRCU; c.AuditRCU == 0 {
		o.AuditRCU = -1
	}
	c.limitFlags.apply(&o)
	if c.Strategy != "auto" {
		o.Strategy = guard.Strategy(c.Strategy)
	}
	return o
}

// deadlinesOptions are the options of a directory of deadlines. It stores tens of bytes for each, and
// reads each once, so a small cache and small memtables are enough. Writes need not wait for the
// disk: the checkpoints of the stream and of scans are in the same log behind the deadlines that they
// stand for, so a crash of the machine undoes both, and guard reads the records and pages again.
var deadlinesOptions = mayfly.Options{DatabaseOnly: true, Durability: mayfly.Async, CacheBytes: 4 << 20, MemTableBytes: 8 << 20}

// openDeadlines opens the directory of deadlines. Its lock excludes other workers.
func (c guardRunCommand) openDeadlines(o *guard.Options) (shut func() error, err error) {
	if c.Deadlines == "" {
		return func() error { return nil }, nil
	}
	db, err := mayfly.Open(c.Deadlines, deadlinesOptions)
	if err != nil {
		return nil, adviseOpen(err, c.Deadlines)
	}
	o.Deadlines, o.Alone = db.DynamoDB(), true
	return func() error { return closeDB(db) }, nil
}

// guarded is a table with its guard and its counts.
type guarded struct {
	table string
	*guard.Guard
	tally
}

// guard guards all tables, and returns them. If one fails, all end. Any overdue items of the
// accepted tables are removed.
func (c guardRunCommand) guard(ctx context.Context, s streams, bar *sharedBar, e *endpoint, base guard.Options, accepted map[string]bool) (tables []*guarded, err error) {
	if base.Strategy == guard.Schedule {
		at, err := c.schedulerFlags().connect(ctx, serviceScheduler)
		if err != nil {
			return nil, err
		}
		base.Scheduler = at.Scheduler()
	}
	lines := &guardLines{out: s.out, json: c.JSON}
	progress := &guardProgress{lines: lines, log: base.Logger, bar: bar, now: time.Now}
	metrics := admin.NewGuard(func() []admin.GuardTable { return tableMetrics(tables) })
	for _, name := range c.Table {
		t := &guarded{table: name}
		o := base
		if o.Table = name; accepted[name] {
			o.AcceptOverdue = -1
		}
		o.Observe = t.observer(metrics, name, c.DryRun)
		o.Progress = progress.observer(name)
		if t.Guard, err = guard.New(o); err != nil {
			return nil, misusedOptions(err, optionFlag, "mayfly guard run --help")
		}
		metrics.Begin(name)
		tables = append(tables, t)
	}
	stop, err := c.serveMetrics(s, metrics, tables)
	if err != nil {
		return nil, err
	}
	defer stop()
	lines.tables = tables
	return tables, e.adviseGuard(c.runAll(ctx, e, lines, progress))
}

// schedulerFlags returns the flags of the Scheduler's endpoint.
func (c guardRunCommand) schedulerFlags() endpointFlags {
	f := c.endpointFlags
	if c.SchedulerEndpoint != "" {
		f.Endpoint = c.SchedulerEndpoint
	}
	return f
}

func (c guardRunCommand) runAll(ctx context.Context, e *endpoint, lines *guardLines, progress *guardProgress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var printing sync.WaitGroup
	printing.Go(func() { lines.run(ctx) })
	printing.Go(func() { progress.run(ctx) })
	var all errgroup.Group
	for _, t := range lines.tables {
		printing.Go(func() {
			select {
			case <-t.Ready():
				attribute, strategy := t.Guarded()
				lines.begin(t, attribute, strategy, e.name(), c.DryRun)
			case <-ctx.Done():
			}
		})
		printing.Go(func() { t.Report(ctx) })
		all.Go(func() error {
			defer cancel()
			return t.Run(ctx)
		})
	}
	err := all.Wait() // the others end because of the first, or for the same reason
	cancel()
	printing.Wait()
	lines.flush()
	return err
}

// serveMetrics serves health checks and metrics.
func (c guardRunCommand) serveMetrics(s streams, metrics *admin.Guard, tables []*guarded) (stop func(), err error) {
	if c.MetricsPort == nil {
		return func() {}, nil
	}
	listener, err := listen(c.MetricsHost, *c.MetricsPort)
	if a := (*advised)(nil); errors.As(err, &a) {
		a.next = strings.NewReplacer("--port", "--metrics-port", "--host", "--metrics-host").Replace(a.next)
	}
	if err != nil {
		return nil, err
	}
	ready := func() error {
		for _, t := range tables {
			if _, strategy := t.Guarded(); strategy == guard.Auto {
				return fmt.Errorf("%s is not guarded yet", t.table)
			}
			if open := t.Problems(); len(open) > 0 {
				return fmt.Errorf("%s: %w", t.table, open[0])
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = serveUntil(ctx, metrics.Handler(ready), listener, c.logger(s.err)) // guard runs without metrics too
	}()
	fmt.Fprintf(s.out, "listening on http://%s\n", listener.Addr())
	return func() {
		cancel()
		<-served
	}, nil
}
