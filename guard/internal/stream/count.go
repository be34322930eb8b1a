package stream

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Count counts the stored deadlines that are due at an instant in ms, and the deadlines of each
// minute from then on, for a number of minutes. It returns nil if the deadline table has no rows of
// the guarded table. local is as in New.
func Count(ctx context.Context, e *strategy.Env, local *dynamodb.Client, now int64, upcoming int) (*strategy.Count, error) {
	t := newStore(e, local, e.Table.Label())
	set, ok, err := t.readSettings(ctx)
	if ensure.Missing(err) || err == nil && !ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	divisions, _, err := t.readDivisions(ctx, set)
	if err != nil {
		return nil, err
	}
	type part struct {
		d *division
		p int
	}
	var parts []part
	for _, d := range divisions {
		for p := range d.partitions {
			parts = append(parts, part{d, p})
		}
	}
	var mu sync.Mutex
	c := &strategy.Count{Upcoming: make([]int64, upcoming)}
	err = strategy.Parallel(ctx, len(parts), parallel, func(ctx context.Context, i int) error {
		d, p := parts[i].d, parts[i].p
		buckets, err := t.buckets(ctx, d, p, 0, now+int64(upcoming)*minute)
		if err != nil {
			return err
		}
		add := func(part string, low, high int64, found func(n, first int64)) {
			if err != nil {
				return
			}
			var n, first int64
			if n, first, err = t.count(ctx, part, sortText(low), sortText(high)); err == nil && n > 0 {
				mu.Lock()
				defer mu.Unlock()
				found(n, first)
			}
		}
		add(t.inbox(d, p), 0, now, c.AddDue)
		for _, b := range buckets {
			m := minuteOf(b)
			if m <= now {
				add(t.bucket(d, p, b), m, min(m+minute, now), c.AddDue)
			}
			for i := range c.Upcoming { // a minute of the clock overlaps two of those from now on
				low, high := max(now+int64(i)*minute, m), min(now+int64(i+1)*minute, m+minute)
				if low < high {
					add(t.bucket(d, p, b), low, high, func(n, _ int64) { c.Upcoming[i] += n })
				}
			}
		}
		return err
	})
	return c, err
}

// count counts the deadlines of a partition key with sort keys from low to high, without high. It
// also returns the first deadline, in ms.
func (s *store) count(ctx context.Context, part, low, high string) (n, first int64, err error) {
	err = s.query(ctx, part, low, high, 1, func(item map[string]types.AttributeValue) bool {
		if r, err := readRow(item); err == nil {
			n, first = 1, r.at
		}
		return false
	})
	if err != nil || n == 0 {
		return 0, 0, err
	}
	n, err = strategy.CountItems(ctx, s.db, s.rangeOf(part, low, high))
	return n, first, err
}
