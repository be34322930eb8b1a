package index

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
)

const (
	// queries for upcoming deadlines; if it needs more, Count counts fewer minutes
	countQueries = 4_000
	pastWindows  = 60 // windows in which Count counts the backlog
)

// Count counts the items of the index that are due at an instant in ms, and the deadlines of each
// minute from then on, for a number of minutes. It returns nil if the table has no index that a
// worker could sweep.
func Count(ctx context.Context, e *strategy.Env, o Options, at int64, minutes int) (*strategy.Count, error) {
	x := New(e, o)
	if x.find() != nil {
		return nil, nil
	}
	if known, err := x.tryLayout(ctx, x.Shares(Name)); err != nil || !known {
		if p, ok := errors.AsType[*table.Problem](err); ok && p.Code == table.Misconfigured {
			return nil, nil // the number of shards is unknown, which is no error here
		}
		return nil, err
	}
	now, from := at/1000, int64(0)
	perMinute := len(x.layout.shards())
	if x.layout.windows() {
		from = now - pastWindows*x.layout.Granularity
		perMinute *= 1 + int(60/x.layout.Granularity)
	}
	c := &strategy.Count{Upcoming: make([]int64, min(minutes, max(countQueries/perMinute, 1)))}
	for _, shard := range x.layout.shards() {
		n, oldest, err := x.count(ctx, shard, from, now)
		if err != nil {
			return nil, err
		}
		c.AddDue(n, oldest*1000)
		for i := range c.Upcoming {
			low := now + int64(i)*60
			n, _, err := x.count(ctx, shard, low+1, low+60)
			if err != nil {
				return nil, err
			}
			c.Upcoming[i] += n
		}
	}
	return c, nil
}

// count counts the items of a shard with TTLs from low to high, both in epoch seconds and included.
// It also returns the first TTL.
func (x *Strategy) count(ctx context.Context, shard string, low, high int64) (n, first int64, err error) {
	for partition := range x.layout.partitions(shard, low, high) {
		in := x.query(partition, low, high)
		if n == 0 { // the first one is looked at
			one := *in
			one.Limit = aws.Int32(1)
			out, err := x.DB.Query(ctx, &one)
			if err != nil {
				return 0, 0, err
			}
			if len(out.Items) == 0 && out.LastEvaluatedKey == nil {
				continue
			}
			if len(out.Items) > 0 {
				if _, at, err := table.Deadline(out.Items[0][x.Table.Attribute]); err == nil {
					first = at / 1000
				}
			}
		}
		more, err := strategy.CountItems(ctx, x.DB, in)
		if err != nil {
			return 0, 0, err
		}
		n += more
	}
	return n, first, nil
}
