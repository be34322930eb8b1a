package guard

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// lookIntoDeadlines counts in the deadline table. known is false if that has no rows of the guarded
// table.
func (g *Guard) lookIntoDeadlines(ctx context.Context, s *Status) (known bool, err error) {
	db := g.db
	if g.o.Deadlines != g.o.DB {
		db = g.o.Deadlines
	}
	t := &store{db: db, label: g.table.label()}
	set, ok, err := t.readSettings(ctx)
	if ensure.Missing(err) || err == nil && !ok {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.partitions = set.partitions
	var mu sync.Mutex
	s.Backlog = &Backlog{}
	now := s.At.UnixMilli()
	err = inParallel(t.partitions, func(p int) error {
		minutes, err := t.minutes(ctx, p, 0, now+int64(len(s.Upcoming))*minute)
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
		add(t.inbox(p), 0, now, func(n, first int64) { s.Backlog.add(n, first) })
		for _, m := range minutes {
			if m <= now {
				add(t.bucket(p, m), m, min(m+minute, now), func(n, first int64) { s.Backlog.add(n, first) })
			}
			for i := range s.Upcoming { // a minute of the clock overlaps two of those from now on
				low, high := max(now+int64(i)*minute, m), min(now+int64(i+1)*minute, m+minute)
				if low < high {
					add(t.bucket(p, m), low, high, func(n, _ int64) { s.Upcoming[i] += n })
				}
			}
		}
		return err
	})
	return err == nil, err
}

// horizonAt returns the instant before which this worker has armed all of its partitions; 0 if it
// has none.
func (s *stream) horizonAt() (at int64) {
	for _, p := range s.parts {
		p.mu.Lock()
		if p.mu.owned && (at == 0 || p.mu.loaded < at) {
			at = p.mu.loaded
		}
		p.mu.Unlock()
	}
	return at
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
	in := &dynamodb.QueryInput{
		TableName: aws.String(deadlinesTable), ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#p = :p AND #a BETWEEN :low AND :high"),
		ExpressionAttributeNames:  map[string]string{"#p": attrPart, "#a": attrAt},
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": attr.S(part), ":low": attr.S(low), ":high": attr.S(high)},
		Select:                    types.SelectCount,
	}
	for n = 0; ; {
		out, err := s.db.Query(ctx, in)
		if err != nil {
			return 0, 0, err
		}
		n += int64(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return n, first, nil
		}
	}
}
