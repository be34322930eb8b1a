package guard

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/index"
	"github.com/mayflydb/mayfly/guard/internal/scan"
	"github.com/mayflydb/mayfly/guard/internal/schedule"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// runner is a strategy: it finds deadlines and arms them until ctx is done. It ends after the last
// removal, so that it can record all outcomes.
type runner interface {
	// Run returns nil once ctx is done, and a *Problem if it cannot continue.
	Run(ctx context.Context) error
}

// horizoner is a strategy that knows how far it has armed.
type horizoner interface {
	// HorizonAt returns an instant in ms: all deadlines before it that this worker has to remove are
	// armed. 0: not known.
	HorizonAt() int64
}

// choose returns the strategy of Options, or for Auto the first that the table offers.
func (g *Guard) choose(ctx context.Context) (Strategy, runner) {
	name := g.o.Strategy
	if name == Auto {
		switch {
		case g.streams != nil && g.table.Stream != "" && g.table.View == types.StreamViewTypeNewAndOldImages:
			name = Stream
		case index.Offered(ctx, g.env(), g.indexOptions()):
			name = Index
		default:
			name = Scan
			g.readiness.reason = g.noStream() + ", and no index of deadlines"
			g.o.Logger.Info(g.readiness.reason+": guard scans the whole table again and again; a stream with NEW_AND_OLD_IMAGES, or the index of mayfly guard init, costs less", "table", g.o.Table)
		}
	}
	switch name {
	case Stream:
		e := g.env()
		e.Segments = cmp.Or(g.o.Segments, stream.Segments)
		return name, stream.New(e, g.localDeadlines())
	case Index:
		return name, index.New(g.env(), g.indexOptions())
	case Schedule:
		return name, g.newSchedule()
	}
	setDefault(&g.o.MaxRCU, scanUnits)
	return name, scan.New(g.env(), g.o.Period)
}

// noStream returns the reason that excludes the stream strategy.
func (g *Guard) noStream() string {
	switch {
	case g.streams == nil:
		return "no client for streams"
	case g.table.Stream == "":
		return "no stream"
	}
	return "the stream has the view type " + string(g.table.View)
}

func (g *Guard) newSchedule() *schedule.Strategy {
	return schedule.New(g.env(), schedule.Options{Scheduler: g.o.Scheduler, Role: g.o.Role, DeadLetters: g.o.DeadLetters})
}

func (g *Guard) indexOptions() index.Options {
	return index.Options{IndexName: g.o.IndexName, Granularity: g.o.Granularity, Shards: g.o.Shards, Period: g.o.Period}
}

// localDeadlines returns the client of the worker's own store for deadlines; nil without one.
func (g *Guard) localDeadlines() *dynamodb.Client {
	if g.o.Deadlines == g.o.DB {
		return nil
	}
	return g.o.Deadlines
}

// env returns guard as strategies see it, once prepare has described the table.
func (g *Guard) env() *strategy.Env {
	return &strategy.Env{
		Guard: verbs{g}, Armed: g.armed, Table: g.table, DB: g.db, Streams: g.streams, Log: g.log, TransactionsFree: g.transactionsFree,
		Leases: lease.Options{
			Owner: g.o.Owner, Duration: g.o.Lease, Exclusive: g.o.Alone, Logger: g.log, Fatal: func(err error) bool { return g.problem("GetItem", err) != nil },
			Table: g.leasesTable(),
		},
		Deadlines: g.o.Tables.settings(g.o.Tables.Deadlines), Partitions: g.o.Partitions,
		Segments: cmp.Or(g.o.Segments, segments), Concurrency: g.o.Concurrency, MaxRCU: g.o.MaxRCU, DryRun: g.o.DryRun, CheckEach: g.checkEach,
	}
}

// leasesTable returns the settings of the table of leases.
func (g *Guard) leasesTable() ensure.Settings { return g.o.Tables.settings(g.o.Tables.Leases) }

// verbs implement strategy.Guard.
type verbs struct{ g *Guard }

func (v verbs) Arm(e armed.Entry)         { v.g.arm(e) }
func (v verbs) ArmNew(e armed.Entry) bool { return v.g.armNew(e) }
func (v verbs) Disarm(k armed.Key)        { v.g.disarm(k) }
func (v verbs) Missed(e armed.Entry)      { v.g.missed(e) }
func (v verbs) Now() int64                { return v.g.now() }
func (v verbs) Fail(p *Problem)           { v.g.fail(p) }
func (v verbs) Raise(p *Problem)          { v.g.raise(p) }
func (v verbs) Settle(code Code)          { v.g.settle(code) }
func (v verbs) Items() int64              { return v.g.items.Load() }
func (v verbs) Rejected() bool            { return v.g.given.any() }

func (v verbs) Removed(k armed.Key, late time.Duration) { v.g.removedBySchedule(k, late) }

func (v verbs) BadValue(k armed.Key, err error) { v.g.badValue(k, err) }

func (v verbs) Sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	return v.g.sleep(ctx, until, wake)
}

func (v verbs) Report(what strategy.What, err error) {
	v.g.observe(Event{What: [...]What{strategy.Armed: Armed, strategy.Disarmed: Disarmed, strategy.Throttled: Throttled}[what], Err: err})
}

func (v verbs) Progress(p strategy.Progress) {
	if p.Ended {
		strategy.Nudge(v.g.first.ended)
	}
	v.g.report(Progress{Doing: Doing(p.Doing), Done: p.Done, Total: p.Total, Unit: p.Unit, Ended: p.Ended, Left: p.Left})
}
