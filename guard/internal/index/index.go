// Package index is the strategy that sweeps an index of deadlines (docs/spec/patterns.md (a) and
// (b)), which the table's writers maintain. It avoids the flaws of the published sweepers:
//
//	each period   every shard is queried, page by page, for the TTLs from a while before the last
//	              sweep to two periods ahead, both included, so items go at their instant
//	watermark     in the checkpoint of the shard's lease: after a crash, a failure or a pause the
//	              sweep catches up from there
//	patrol        a slow scan of the whole index finds the items that no sweep queries: items
//	              written long after their expiry, in another window than their TTL's or in an
//	              unknown shard, and TTLs that are not seconds
//
// Removal is guard's own: conditional, one by one, with backoff. Init makes such an index, Once is
// a single sweep, and Count counts the deadlines in the index.
package index

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Options are the part of guard's Options that is about the index.
type Options struct {
	IndexName   string
	Granularity time.Duration
	Shards      int
	Period      time.Duration
}

// Strategy sweeps one index.
type Strategy struct {
	*strategy.Reader // of sweeps
	o                Options
	slow             *strategy.Reader // of the patrol
	index            *expirationIndex
	layout           layout
	// between the beginnings of two patrols; 0: there are none
	PatrolEvery time.Duration
	Back        int64           // seconds that a first sweep reaches back
	sweeps      sync.Map        // the running *sweeper of each shard
	held        atomic.Int64    // leases of sweeps that this worker has
	missed      *strategy.Track // how far catching up is
	waits       atomic.Bool     // for an item that shows the layout
	begun       atomic.Bool     // the layout is known
}

// query returns a query of one of the index's partitions for TTLs from low to high, both in epoch
// seconds and included.
func (x *Strategy) query(partition string, low, high int64) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &x.Table.Name, IndexName: &x.index.name,
		KeyConditionExpression:   aws.String("#p = :p AND #ttl BETWEEN :low AND :high"),
		ExpressionAttributeNames: map[string]string{"#p": x.index.key, "#ttl": x.Table.Attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":p": attr.S(partition), ":low": attr.Int(low), ":high": attr.Int(high),
		},
	}
}

const (
	// Name is the name of the strategy.
	Name = "index"

	patrolEvery = time.Hour
	patrolUnits = 25 // read units a second that the patrol consumes at most, some 2,000 items

	sweepPrefix  = "sweep/"
	patrolPrefix = "patrol/"
)

// LayoutRow is the lease whose checkpoint is the layout that Init has stored.
const LayoutRow = "layout"

// New returns the strategy.
func New(e *strategy.Env, o Options) *Strategy {
	slow := float64(patrolUnits)
	if e.MaxRCU > 0 {
		slow = min(slow, e.MaxRCU/2)
	}
	return &Strategy{
		Reader: e.NewReader(e.MaxRCU), o: o, slow: e.NewReader(slow), PatrolEvery: patrolEvery, Back: firstBack, missed: &strategy.Track{Env: e, Doing: strategy.CatchUp},
	}
}

// Run sweeps until ctx is done.
func (x *Strategy) Run(ctx context.Context) error {
	if err := x.find(); err != nil {
		return err
	}
	leases := x.Shares(Name)
	if err := x.learnLayout(ctx, leases); err != nil {
		return strategy.EndOf(ctx, err)
	}
	x.begun.Store(true)
	x.Log.Info("sweeping", "table", x.Table.Name, "index", x.index.name, "layout", x.layout.String())
	names, shards := x.divide()
	return strategy.EndOf(ctx, lease.Hold(ctx, leases, names, func(ctx context.Context, l *lease.Lease) error {
		if strings.HasPrefix(l.Shard(), patrolPrefix) {
			return x.patrols(ctx, l)
		}
		return x.sweepUnder(ctx, leases, l, shards[l.Shard()])
	}))
}

// Check returns an error if the table has no index that the strategy can use.
func (x *Strategy) Check() error { return x.find() }

// find finds the index among the indexes of the table's first description.
func (x *Strategy) find() error {
	index, why := findIndex(x.Table, x.o.IndexName)
	if why != nil {
		return why
	}
	x.index = index
	return nil
}

// Chosen returns the name of the index that the strategy sweeps.
func Chosen(e *strategy.Env, o Options) (string, error) {
	x, why := findIndex(e.Table, o.IndexName)
	if why != nil {
		return "", why
	}
	return x.name, nil
}

// Offered reports whether the strategy can be chosen without being asked for: the table has a named
// index, one with a known partition key, or one whose layout Init has stored.
func Offered(ctx context.Context, e *strategy.Env, o Options) bool {
	x, why := findIndex(e.Table, o.IndexName)
	if why != nil {
		return false
	}
	if o.IndexName != "" || x.known() {
		return true
	}
	rows, err := e.Shares(Name).Rows(ctx)
	if _, noted := readLayout(rows[LayoutRow].Checkpoint); err == nil && noted {
		return true
	}
	e.Log.Warn("the table has an index that may hold deadlines; name it with --index to use it", "table", e.Table.Name, "index", x.name)
	return false
}

// divide returns the names of the leases, and the shards of each lease of a sweep.
func (x *Strategy) divide() (names []string, shards map[string][]string) {
	shards = map[string][]string{}
	for i, shard := range x.layout.shards() {
		name := sweepPrefix + strconv.Itoa(i%strategy.LeasesMost)
		shards[name] = append(shards[name], shard)
	}
	names = slices.Collect(maps.Keys(shards))
	if x.PatrolEvery > 0 {
		names = append(names, x.SegmentNames(patrolPrefix)...)
	}
	return names, shards
}

// sweepUnder sweeps shards while the lease is held.
func (x *Strategy) sweepUnder(ctx context.Context, leases *lease.Leases, l *lease.Lease, shards []string) error {
	from, err := x.from(ctx, leases, l)
	if err != nil {
		return err
	}
	s := x.newSweeper(l, shards, from, x.Now())
	x.share(1)
	defer x.share(-1)
	for _, shard := range shards {
		x.sweeps.Store(shard, s)
		defer x.sweeps.Delete(shard)
	}
	return s.run(ctx)
}

// share divides MaxRCU among the workers as the shards are.
func (x *Strategy) share(more int64) {
	x.Share(x.held.Add(more), min(len(x.layout.shards()), strategy.LeasesMost))
}

// from returns where a sweep begins: at its watermark; for a new shard at the earliest watermark of
// the others; else a day ago. The patrol finds older deadlines.
func (x *Strategy) from(ctx context.Context, leases *lease.Leases, l *lease.Lease) (int64, error) {
	if mark, ok := ReadWatermark(l.Checkpoint()); ok {
		return mark, nil
	}
	rows, err := x.Rows(ctx, leases)
	if err != nil {
		return 0, err
	}
	from := x.Now() - x.Back*1000
	for name, row := range rows {
		if mark, ok := ReadWatermark(row.Checkpoint); ok && strings.HasPrefix(name, sweepPrefix) {
			from = min(from, mark)
		}
	}
	return from, nil
}

// ReadWatermark parses the checkpoint of a sweep: an instant in ms.
func ReadWatermark(text string) (mark int64, ok bool) {
	mark, err := strconv.ParseInt(text, 10, 64)
	return mark, err == nil && mark >= 0
}

// learnLayout finds the layout: the one that Init has stored, or else the one that the index's
// items have, as soon as there are any.
func (x *Strategy) learnLayout(ctx context.Context, leases *lease.Leases) error {
	for logged := false; ; logged = true {
		known, err := x.tryLayout(ctx, leases)
		if known || err != nil {
			return err
		}
		if x.waits.Store(true); !logged {
			x.Log.Info("the index is empty and has no noted layout; waiting for an item", "table", x.Table.Name, "index", x.index.name)
		}
		if err := x.Sleep(ctx, x.Now()+x.o.Period.Milliseconds(), nil); err != nil {
			return err
		}
	}
}

func (x *Strategy) tryLayout(ctx context.Context, leases *lease.Leases) (known bool, err error) {
	rows, err := x.Rows(ctx, leases)
	if err != nil {
		return false, err
	}
	if x.layout, known = readLayout(rows[LayoutRow].Checkpoint); known {
		x.layout.Shards = max(x.layout.Shards, x.o.Shards) // more shards are added to readers before writers
		return true, nil
	}
	items, err := x.someItems(ctx)
	if err != nil {
		return false, err
	}
	var why *table.Problem
	if x.layout, known, why = guess(items, x.index.key, x.o.Shards); why != nil {
		return false, why
	}
	if given := x.o.Granularity; known && x.layout.windows() && given != x.layout.length() {
		x.Log.Info("the index's windows differ in length from --granularity; guard uses the length found in the index", "table", x.Table.Name, "granularity", x.layout.length(), "options", given)
	}
	return known, nil
}

// someItems returns the partition keys of the first page that has items; none of an empty index. A
// page may be empty although the next ones have items, for example after many removals.
func (x *Strategy) someItems(ctx context.Context) (items []map[string]types.AttributeValue, err error) {
	in := &dynamodb.ScanInput{
		TableName: &x.Table.Name, IndexName: &x.index.name, ProjectionExpression: aws.String("#p"), ExpressionAttributeNames: map[string]string{"#p": x.index.key},
	}
	for more := true; more && len(items) == 0 && err == nil; more = in.ExclusiveStartKey != nil {
		items, _, err = x.Scan(ctx, in)
	}
	return items, err
}

// patrols scans segments of the index again and again.
func (x *Strategy) patrols(ctx context.Context, l *lease.Lease) error {
	seen := x.NewSightings()
	w := &strategy.Walk{
		Reader: x.slow, Lease: l, Number: strategy.NumberOf(l, patrolPrefix), Shares: min(x.Segments, strategy.LeasesMost), Every: x.PatrolEvery, First: x.PatrolEvery,
		Input: dynamodb.ScanInput{TableName: &x.Table.Name, IndexName: &x.index.name}, Extra: []string{x.index.key}, Through: seen.Forget,
		Visit: func(ctx context.Context, items []map[string]types.AttributeValue, until int64) error {
			for _, item := range items {
				if err := x.inspect(ctx, seen, item, until); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return w.Run(ctx)
}

// inspect arms an item of the index that no sweep queries. EntryOf reports bad values.
func (x *Strategy) inspect(ctx context.Context, seen *strategy.Sightings, item map[string]types.AttributeValue, until int64) error {
	e, ok := x.EntryOf(item)
	if !ok || e.At > until {
		return nil
	}
	partition, isText := attr.AsString(item[x.index.key])
	if !isText {
		return nil // a projection that an endpoint has invented
	}
	if shard, swept := x.layout.shardOf(partition, table.WholeSeconds(e.At)); swept {
		if e.At > x.Now()-overlap*1000 {
			return nil
		}
		if s, runs := x.sweeps.Load(shard); runs {
			s.(*sweeper).seen.See(e)
			return nil
		}
	}
	_, err := x.ArmWithRoom(ctx, e, seen.See)
	return err
}

// CaughtUp reports whether all sweeps have caught up and the patrol has ended a pass, in whichever
// workers. within is how long it may take to learn of an item that only the patrol finds.
func (x *Strategy) CaughtUp(ctx context.Context) (within time.Duration, ok bool, err error) {
	within = strategy.Learning + x.o.Period
	if !x.begun.Load() {
		return within, x.waits.Load(), nil // there is nothing to catch up with in an empty index
	}
	rows, err := x.Rows(ctx, x.Shares(Name))
	if err != nil {
		return 0, false, err
	}
	took, ok := x.PatrolEvery, true
	names, _ := x.divide()
	for _, name := range names {
		if strings.HasPrefix(name, patrolPrefix) {
			passes, last := strategy.WholePasses(rows[name].Checkpoint)
			took, ok = max(took, last), ok && passes > 0
			continue
		}
		mark, known := ReadWatermark(rows[name].Checkpoint)
		ok = ok && known && mark >= x.Now()-within.Milliseconds()
	}
	return within + 2*took, ok, nil
}

// HorizonAt returns the instant before which this worker's sweeps have armed everything; 0 if it
// has none.
func (x *Strategy) HorizonAt() (at int64) {
	x.sweeps.Range(func(_, s any) bool {
		if until := s.(*sweeper).armedUntil(); at == 0 || until < at {
			at = until
		}
		return true
	})
	return at
}
