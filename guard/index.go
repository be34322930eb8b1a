package guard

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The index strategy sweeps an index of deadlines (docs/spec/patterns.md (a) and (b)) that the
// table's writers maintain. It avoids the flaws of the published sweepers:
//
//	each period   every shard is queried, page by page, for the TTLs from a while before the last
//	              sweep to two periods ahead, both included, so items go at their instant
//	watermark     in the checkpoint of the shard's lease: after a crash, a failure or a pause the
//	              sweep catches up from there
//	patrol        a slow scan of the whole index finds the items that no sweep queries: items
//	              written long after their expiry, in another window than their TTL's or in an
//	              unknown shard, and TTLs that are not seconds
//
// Removal is guard's own: conditional, one by one, with backoff.
type indexing struct {
	g      *Guard
	ask    *asker // of sweeps
	slow   *asker // of the patrol
	index  *expirationIndex
	layout layout
	// between the beginnings of two patrols; 0: there are none
	patrol time.Duration
	back   int64                               // seconds that a first sweep reaches back
	sweeps atomic.Pointer[map[string]*sweeper] // that run, by their shards
	held   atomic.Int64                        // leases of sweeps that this worker has
	missed *track                              // how far catching up is
}

// query returns a query of one of the index's partitions for TTLs from low to high, both in epoch
// seconds and included.
func (x *indexing) query(partition string, low, high int64) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &x.g.o.Table, IndexName: &x.index.name,
		KeyConditionExpression:   aws.String("#p = :p AND #ttl BETWEEN :low AND :high"),
		ExpressionAttributeNames: map[string]string{"#p": x.index.key, "#ttl": x.g.o.Attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":p": attr.S(partition), ":low": attr.Int(low), ":high": attr.Int(high),
		},
	}
}

const (
	patrolEvery = time.Hour
	patrolUnits = 25 // read units a second that the patrol consumes at most, some 2,000 items

	sweepPrefix  = "sweep/"
	patrolPrefix = "patrol/"
	layoutName   = "layout" // row whose checkpoint is the layout that Init has stored
)

func newIndex(g *Guard) strategy { return newIndexing(g) }

func newIndexing(g *Guard) *indexing {
	slow := float64(patrolUnits)
	if g.o.MaxRCU > 0 {
		slow = min(slow, g.o.MaxRCU/2)
	}
	return &indexing{g: g, ask: &asker{g, pace.NewBudget(g.o.MaxRCU)}, slow: &asker{g, pace.NewBudget(slow)}, patrol: patrolEvery, back: firstBack, missed: &track{g: g, doing: CatchUp}}
}

func (x *indexing) run(ctx context.Context) error {
	if err := x.find(); err != nil {
		return err
	}
	leases := x.g.shares(Index)
	if err := x.learnLayout(ctx, leases); err != nil {
		return endOf(ctx, err)
	}
	x.g.log.Info("sweeping", "table", x.g.o.Table, "index", x.index.name, "layout", x.layout.String())
	names, shards := x.divide()
	return endOf(ctx, lease.Hold(ctx, leases, names, func(ctx context.Context, l *lease.Lease) error {
		if strings.HasPrefix(l.Shard(), patrolPrefix) {
			return x.patrols(ctx, l)
		}
		return x.sweepUnder(ctx, leases, l, shards[l.Shard()])
	}))
}

// find finds the index among the indexes of the table's first description.
func (x *indexing) find() error {
	index, why := x.g.table.expirationIndex(x.g.o)
	if why != nil {
		return why
	}
	x.index = index
	return nil
}

// divide returns the names of the leases, and the shards of each lease of a sweep.
func (x *indexing) divide() (names []string, shards map[string][]string) {
	shards = map[string][]string{}
	for i, shard := range x.layout.shards() {
		name := sweepPrefix + strconv.Itoa(i%leasesMost)
		shards[name] = append(shards[name], shard)
	}
	names = slices.Collect(maps.Keys(shards))
	if x.patrol > 0 {
		for i := range min(x.g.o.Segments, leasesMost) {
			names = append(names, patrolPrefix+strconv.Itoa(i))
		}
	}
	return names, shards
}

// sweepUnder sweeps shards while the lease is held.
func (x *indexing) sweepUnder(ctx context.Context, leases *lease.Leases, l *lease.Lease, shards []string) error {
	from, err := x.from(ctx, leases, l)
	if err != nil {
		return err
	}
	s := x.newSweeper(l, shards, from, x.g.now())
	x.share(1)
	defer x.share(-1)
	for _, shard := range shards {
		x.setSweeper(shard, s)
	}
	defer func() {
		for _, shard := range shards {
			x.setSweeper(shard, nil)
		}
	}()
	return s.run(ctx)
}

// share divides MaxRCU among the workers as the shards are.
func (x *indexing) share(more int64) {
	held := x.held.Add(more)
	if x.g.o.MaxRCU > 0 {
		x.ask.budget.Share(x.g.o.MaxRCU * max(float64(held), 0.5) / float64(min(len(x.layout.shards()), leasesMost)))
	}
}

// setSweeper sets the sweeper of a shard, which knows its armed deadlines; nil if there is none any
// longer.
func (x *indexing) setSweeper(shard string, s *sweeper) {
	for {
		before := x.sweeps.Load()
		after := map[string]*sweeper{}
		if before != nil {
			after = maps.Clone(*before)
		}
		if after[shard] = s; s == nil {
			delete(after, shard)
		}
		if x.sweeps.CompareAndSwap(before, &after) {
			return
		}
	}
}

// from returns where a sweep begins: at its watermark; for a new shard at the earliest watermark of
// the others; else a day ago. The patrol finds older deadlines.
func (x *indexing) from(ctx context.Context, leases *lease.Leases, l *lease.Lease) (int64, error) {
	if mark, ok := readWatermark(l.Checkpoint()); ok {
		return mark, nil
	}
	var rows map[string]lease.Row
	err := x.ask.again(ctx, "Query on "+lease.TableName, func() (int, *types.ConsumedCapacity, error) {
		var err error
		rows, err = leases.Rows(ctx)
		return 0, nil, err
	})
	if err != nil {
		return 0, err
	}
	from := x.g.now() - x.back*1000
	for name, row := range rows {
		if mark, ok := readWatermark(row.Checkpoint); ok && strings.HasPrefix(name, sweepPrefix) {
			from = min(from, mark)
		}
	}
	return from, nil
}

// readWatermark reads a checkpoint of a sweep.
func readWatermark(text string) (mark int64, ok bool) {
	mark, err := strconv.ParseInt(text, 10, 64)
	return mark, err == nil && mark >= 0
}

// learnLayout finds the layout: the one that Init has stored, or else the one that the index's
// items have, as soon as there are any.
func (x *indexing) learnLayout(ctx context.Context, leases *lease.Leases) error {
	for logged := false; ; logged = true {
		known, err := x.tryLayout(ctx, leases)
		if known || err != nil {
			return err
		}
		if !logged {
			x.g.log.Info("the index is empty and has no noted layout; waiting for an item", "table", x.g.o.Table, "index", x.index.name)
		}
		if err := x.g.sleep(ctx, x.g.now()+x.g.o.Period.Milliseconds(), nil); err != nil {
			return err
		}
	}
}

func (x *indexing) tryLayout(ctx context.Context, leases *lease.Leases) (known bool, err error) {
	var rows map[string]lease.Row
	err = x.ask.again(ctx, "Query on "+lease.TableName, func() (int, *types.ConsumedCapacity, error) {
		rows, err = leases.Rows(ctx)
		return 0, nil, err
	})
	if err != nil {
		return false, err
	}
	if x.layout, known = readLayout(rows[layoutName].Checkpoint); known {
		x.layout.Shards = max(x.layout.Shards, x.g.o.Shards) // the reader is taught first
		return true, nil
	}
	items, _, err := x.ask.scan(ctx, &dynamodb.ScanInput{
		TableName: &x.g.o.Table, IndexName: &x.index.name, ProjectionExpression: aws.String("#p"), ExpressionAttributeNames: map[string]string{"#p": x.index.key},
	})
	if err != nil {
		return false, err
	}
	var why *Problem
	if x.layout, known, why = guess(items, x.index.key, x.g.o.Shards); why != nil {
		return false, why
	}
	if given := x.g.o.Granularity; known && x.layout.windows() && given != x.layout.length() {
		x.g.log.Info("the index's windows differ in length from --granularity; guard uses the length found in the index", "table", x.g.o.Table, "granularity", x.layout.length(), "options", given)
	}
	return known, nil
}

// patrols scans segments of the index again and again.
func (x *indexing) patrols(ctx context.Context, l *lease.Lease) error {
	seen := newSightings(x.g)
	w := &walk{
		g: x.g, ask: x.slow, lease: l, number: numberOf(l, patrolPrefix), leases: min(x.g.o.Segments, leasesMost), every: x.patrol, first: x.patrol,
		scan: dynamodb.ScanInput{TableName: &x.g.o.Table, IndexName: &x.index.name},
		visit: func(ctx context.Context, items []map[string]types.AttributeValue, until int64) error {
			for _, item := range items {
				if err := x.inspect(ctx, seen, item, until); err != nil {
					return err
				}
			}
			return nil
		},
		through: seen.forget,
		extra:   []string{x.index.key},
	}
	return w.run(ctx)
}

// inspect arms an item of the index that no sweep queries. entryOf reports bad values.
func (x *indexing) inspect(ctx context.Context, seen *sightings, item map[string]types.AttributeValue, until int64) error {
	e, ok := x.g.entryOf(item)
	if !ok || e.At > until {
		return nil
	}
	partition, isText := attr.AsString(item[x.index.key])
	if !isText {
		return nil // a projection that an endpoint has invented
	}
	if shard, swept := x.layout.shardOf(partition, wholeSeconds(e.At)); swept {
		if e.At > x.g.now()-overlap*1000 {
			return nil
		}
		if sweeps := x.sweeps.Load(); sweeps != nil && (*sweeps)[shard] != nil {
			(*sweeps)[shard].seen.see(e)
			return nil
		}
	}
	_, err := armWithRoom(ctx, x.g, e, seen.see)
	return err
}

// horizonAt returns the instant before which this worker's sweeps have armed everything; 0 if it
// has none.
func (x *indexing) horizonAt() (at int64) {
	if sweeps := x.sweeps.Load(); sweeps != nil {
		for _, s := range *sweeps {
			if until := s.armedUntil(); at == 0 || until < at {
				at = until
			}
		}
	}
	return at
}
