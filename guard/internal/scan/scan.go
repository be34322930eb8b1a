// Package scan is the strategy that reads the whole table again and again, in segments shared by
// the workers, within a budget. It arms the deadlines that come before the next read of their
// segment. So items go at their instant, except for an item that is written and expires between two
// passes.
package scan

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Strategy is the strategy for one table.
type Strategy struct {
	*strategy.Reader
	every time.Duration // between the beginnings of two passes, at least
	// of a dry run, so that it reports an item and its deadline only once; else nil
	seen *strategy.Sightings
	held atomic.Int64 // leases that this worker has
	mu   struct {
		sync.Mutex
		walks map[*strategy.Walk]bool // of those leases
	}
}

const (
	// Name is the name of the strategy.
	Name = "scan"

	prefix    = "scan/" // of leases
	firstPass = time.Hour
)

// New returns the strategy. Two passes begin at least the period every apart.
func New(e *strategy.Env, every time.Duration) *Strategy {
	x := &Strategy{Reader: e.NewReader(e.MaxRCU), every: every}
	if e.DryRun {
		x.seen = e.NewSightings()
	}
	x.mu.walks = map[*strategy.Walk]bool{}
	return x
}

// Run reads the table until ctx is done.
func (x *Strategy) Run(ctx context.Context) error {
	first, err := x.estimate(ctx)
	if err != nil {
		return strategy.EndOf(ctx, err)
	}
	names := x.SegmentNames(prefix)
	passes := &strategy.Track{Env: x.Env, Doing: strategy.WholeScan, Until: strategy.RoundByRound}
	return strategy.EndOf(ctx, lease.Hold(ctx, x.Shares(Name), names, func(ctx context.Context, l *lease.Lease) error {
		x.Share(x.held.Add(1), len(names))
		defer func() { x.Share(x.held.Add(-1), len(names)) }()
		part := passes.Part(0, len(names))
		defer part.Leave()
		w := &strategy.Walk{
			Reader: x.Reader, Lease: l, Number: strategy.NumberOf(l, prefix), Shares: len(names), Every: x.every, First: first,
			Input: dynamodb.ScanInput{TableName: &x.Table.Name}, Through: part.End,
		}
		w.Visit = func(ctx context.Context, items []map[string]types.AttributeValue, until int64) error {
			part.Add(len(items))
			return x.visit(ctx, items, until, w.Leave)
		}
		x.note(w, true)
		defer x.note(w, false)
		return w.Run(ctx)
	}))
}

// note notes that a walk is under way, or is no more.
func (x *Strategy) note(w *strategy.Walk, walks bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.walks[w] = walks; !walks {
		delete(x.mu.walks, w)
	}
}

// HorizonAt returns the instant before which this worker has armed all deadlines of its segments; 0
// if it has none, or has not read one to its end yet.
func (x *Strategy) HorizonAt() (at int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at = clock.Never
	for w := range x.mu.walks {
		at = min(at, w.ArmedUntil())
	}
	if at == clock.Never {
		return 0
	}
	return at
}

// estimate returns how long the first pass will take, by the endpoint's approximate size of the
// table, and at least firstPass.
func (x *Strategy) estimate(ctx context.Context) (took time.Duration, err error) {
	err = x.AskOther(ctx, "DescribeTable", func() error {
		d, err := table.Description(ctx, x.DB, x.Table.Name)
		if err == nil {
			units := float64(aws.ToInt64(d.TableSizeBytes)) / 8192
			took = time.Duration(min(units/x.MaxRCU, 1e8) * float64(time.Second))
		}
		return err
	})
	return max(took, firstPass), err
}

// visit arms the deadlines that are due before their items are read again. It calls left with
// deadlines that it leaves out for lack of room.
func (x *Strategy) visit(ctx context.Context, items []map[string]types.AttributeValue, until int64, left func(at int64)) error {
	arm := x.Arm
	if x.seen != nil {
		arm = x.seen.See
	}
	for _, item := range items {
		if e, ok := x.EntryOf(item); ok && e.At <= until {
			armed, err := x.ArmWithRoom(ctx, e, arm)
			if err != nil {
				return err
			}
			if !armed {
				left(e.At)
			}
		}
	}
	return nil
}
