// Package strategy has the parts that guard's strategies share. A strategy finds the deadlines of a
// table and arms them. It sees guard as an Env: a few verbs, and facts that do not change while it
// runs.
//
//	Reader     reads pages within a budget, with retries
//	Walk       reads segments of a table or an index again and again, under leases
//	Sightings  arms a deadline once that is found repeatedly
//	Track      adds up the progress of long work
//	Lag        knows when the records of a stream were last read late
package strategy

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Guard has the verbs that a strategy needs.
type Guard interface {
	// Arm keeps an entry in memory until its deadline, and removes the item then. It never blocks;
	// to load many deadlines, ask Room first.
	Arm(e armed.Entry)
	// ArmNew is Arm for a key that has no entry in memory. It reports whether that was so.
	ArmNew(e armed.Entry) bool
	Disarm(k armed.Key)
	// Now returns a lower bound of the endpoint's clock, in ms: a deadline that is due by it is due.
	Now() int64
	// Sleep returns nil once Now is at least until, wake receives, or the clock has to be read
	// again; and ctx's error once ctx is done.
	Sleep(ctx context.Context, until int64, wake <-chan struct{}) error
	// Report counts an event that is about no entry in memory. err is the cause, if it has one.
	Report(what What, err error)
	// Removed counts the removal of an item by its schedule.
	Removed(k armed.Key, late time.Duration)
	// BadValue reports a TTL value that is no deadline; k is "" if the item has no key.
	BadValue(k armed.Key, err error)
	// Missed reports an overdue item that the strategy did not know of; its removal is an own event.
	Missed(e armed.Entry)
	Progress(p Progress)
	Items() int64          // of the table, as the endpoint has last counted
	Fail(p *table.Problem) // ends guard
	// Raise notes a problem that may pass, until Settle is called with its code.
	Raise(p *table.Problem)
	Settle(code table.Code)
	// Rejected reports whether removals were rejected, so that found deadlines may need another
	// attempt.
	Rejected() bool
}

// What is the kind of a reported event.
type What int

// The kinds.
const (
	Armed     What = iota // a deadline is waited for, elsewhere
	Disarmed              // one is no longer
	Throttled             // the endpoint wanted to be asked less often, or did not answer
)

// Env is guard as a strategy sees it.
type Env struct {
	Guard
	Armed   *armed.Set
	Table   *table.Table
	DB      *dynamodb.Client // watched, as Streams is; with the caller's retries
	Streams *dynamodbstreams.Client
	Log     *slog.Logger
	Leases  lease.Options // of this worker
	// the table of the stream strategy's deadlines
	Deadlines ensure.Settings
	// reports whether the endpoint's transactions cost no more than their writes one by one; nil:
	// they cost more
	TransactionsFree func() bool
	// the number of partitions of these deadlines, at least; 0: as many as there are
	Partitions int

	// as in guard's Options
	Segments, Concurrency int
	MaxRCU                float64
	DryRun                bool

	CheckEach time.Duration // between two checks of the table, at most
}

// Nudge puts an element into a channel of capacity one, unless it has one.
func Nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Room returns how many more deadlines may be armed. Strategies load less ahead when it is low.
func (e *Env) Room() int { return max(e.Armed.Most-e.Armed.Len(), 0) }

// roomPause is the time between two checks for room.
const roomPause = 50 * time.Millisecond

// AwaitRoom waits until a number of deadlines may be armed. Armed deadlines of a strategy that
// waits are due soon, so removals make room before long.
func (e *Env) AwaitRoom(ctx context.Context, n int) error {
	for e.Room() < n {
		clock.Pause(roomPause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

const (
	// RoomKept is the room below which only near deadlines are armed.
	RoomKept = 100_000
	nearby   = 60_000 // ms: a deadline that is near
)

// ArmWithRoom arms a deadline. With little room, it leaves a distant deadline to a later pass, and
// waits for room for a near one.
func (e *Env) ArmWithRoom(ctx context.Context, one armed.Entry, arm func(armed.Entry)) (armed bool, err error) {
	if e.Room() < RoomKept && one.At > e.Now()+nearby {
		return false, nil
	}
	if err := e.AwaitRoom(ctx, 1); err != nil {
		return false, err
	}
	arm(one)
	return true, nil
}

// EntryOf returns the deadline of an item, or of a projection of the table's Fields. ok is false if
// it has none. It reports a value that is not epoch seconds.
func (e *Env) EntryOf(item map[string]types.AttributeValue) (one armed.Entry, ok bool) {
	one, has, err := e.Table.EntryOf(item, e.Now())
	if err != nil {
		e.BadValue(one.Key, err)
	}
	return one, has && err == nil
}

// Pass waits until the endpoint's clock has advanced by span ms since an instant. If that clock was
// set back meanwhile, it does not wait for the old time to come again.
func (e *Env) Pass(ctx context.Context, since, span int64) error {
	for now := e.Now(); now < since+span && now > since-span; now = e.Now() {
		if err := e.Sleep(ctx, since+span, nil); err != nil {
			return err
		}
	}
	return nil
}

// Problem returns the problem behind an endpoint's error; nil for a transient one.
func (e *Env) Problem(doing string, err error) *table.Problem {
	return table.ProblemOf(doing, e.Table.Name, err)
}

// AtStart returns the problem behind any error before the strategy has begun.
func (e *Env) AtStart(doing string, err error) error {
	return table.AtStart(doing, e.Table.Name, err)
}

// LeasesMost is the maximum number of leases that workers share; more shards or segments share
// them.
const LeasesMost = 32

// Consumer returns the name under which a strategy's leases are stored.
func (e *Env) Consumer(strategy string) string {
	return fmt.Sprintf("guard/%s/%s", e.Table.Label(), strategy)
}

// Shares returns the leases of a strategy's consumer.
func (e *Env) Shares(strategy string) *lease.Leases {
	return lease.New(e.DB, e.Consumer(strategy), e.Leases)
}

// SegmentNames returns a name for each lease on segments.
func (e *Env) SegmentNames(prefix string) (names []string) {
	for i := range min(e.Segments, LeasesMost) {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

// saveLimit is the time limit of writing a checkpoint.
const saveLimit = 5 * time.Second

// Save writes the checkpoint of a lease, unless it is unchanged or the lease lost. It logs a
// failure as message; the next Save repeats the write.
func (e *Env) Save(ctx context.Context, l *lease.Lease, checkpoint, message string) {
	if checkpoint == l.Checkpoint() || !l.Held() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	if err := l.Save(ctx, checkpoint); err != nil && ctx.Err() == nil {
		e.Log.Warn(message, "table", e.Table.Name, "lease", l.Shard(), "error", err)
	}
}

// CheckReading returns the problem with reading a stream, for example a missing permission; else
// nil. A consumer would retry on any error.
func (e *Env) CheckReading(ctx context.Context, arn string) error {
	out, err := e.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		return e.AtStart("DescribeStream", err)
	}
	if len(out.StreamDescription.Shards) == 0 {
		return nil
	}
	shard := out.StreamDescription.Shards[0].ShardId
	place, err := e.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return e.AtStart("GetShardIterator", err)
	}
	_, err = e.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: place.ShardIterator, Limit: aws.Int32(1)})
	if p := e.Problem("GetRecords", err); p != nil {
		return p
	}
	return nil
}

// Stalled is the Stalled function of guard's consumers. The problem passes when the stream can be
// followed again.
func (e *Env) Stalled(reason error) {
	if reason == nil {
		e.Settle(table.NoStream)
		return
	}
	e.Raise(&table.Problem{Code: table.NoStream, Message: fmt.Sprintf("the stream of table %s cannot be followed, so guard scans the table instead", e.Table.Name),
		Next: "if the endpoint's streams do not work, choose the strategy index or scan", Err: reason})
}

// Settled is the Settle function of guard's consumers. It waits for nothing: a strategy ends after
// the last removal, so a record that is not done by then never will be.
func Settled(context.Context, string) {}

// EndOf returns a strategy's error; nil once ctx is done.
func EndOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Retry makes a call until it succeeds, fails for good, or ctx is done. final returns the error
// that ends the attempts; nil if another one may succeed. passing is called before each pause.
func Retry(ctx context.Context, policy retry.Policy, call func() error, final func(error) error, passing func(err error, after time.Duration)) error {
	for pauses := policy.Start(); ; pauses.Wait(ctx) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := call()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if last := final(err); last != nil {
			return last
		}
		passing(err, pauses.Next())
	}
}
