// Package backlog counts the overdue items of a table before guard removes the first one. A table
// whose items are mostly long overdue is probably guarded by the wrong attribute.
package backlog

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/clock"
)

// Count is the result of reading a table, or a part of it.
type Count struct {
	Read    int64 // items
	Overdue int64 // of them
	Whole   bool  // all items were read
	Late    bool  // Read ended because of its time, not of the number of items
	// some of the overdue ones, at most ExamplesMost
	Examples []armed.Entry
}

// ExamplesMost is the number of examples in a Count.
const ExamplesMost = 10

const parts = 4 // that are read side by side

// Limits end a Read, besides the pages that are under way.
type Limits struct {
	Items int64
	Time  time.Duration
}

// Read reads a table, or an index if it is named, and counts the items whose deadlines are before an
// instant in ms, up to a limit. A part of a table is a fair sample: scans return items in the order of
// their keys' hashes.
func Read(ctx context.Context, e *strategy.Env, index string, before int64, most Limits) (Count, error) {
	c := &counter{Reader: e.NewReader(e.MaxRCU), index: index, before: before, most: most, elapsed: clock.Stopwatch()}
	c.mu.Whole = true
	err := strategy.Parallel(ctx, parts, parts, c.part)
	return c.mu.Count, err
}

// counter reads a table once.
type counter struct {
	*strategy.Reader
	index   string // "": the table itself
	before  int64
	most    Limits
	elapsed clock.Elapsed
	mu      struct {
		sync.Mutex
		Count
	}
}

func (c *counter) part(ctx context.Context, i int) error {
	in := dynamodb.ScanInput{
		TableName: &c.Table.Name, Segment: aws.Int32(int32(i)), TotalSegments: aws.Int32(parts), ExpressionAttributeNames: map[string]string{},
	}
	if c.index != "" {
		in.IndexName = &c.index
	}
	c.Table.Project(&in.ProjectionExpression, in.ExpressionAttributeNames)
	for {
		items, read, err := c.Scan(ctx, &in)
		if err != nil {
			return err
		}
		enough := c.add(items, read)
		if in.ExclusiveStartKey == nil {
			return nil
		}
		if enough {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.mu.Whole, c.mu.Late = false, c.mu.Late || c.mu.Read < c.most.Items
			return nil
		}
	}
}

// add counts a page. Values that are no deadlines are the strategy's to report.
func (c *counter) add(items []map[string]types.AttributeValue, read int) (enough bool) {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.Read += int64(read)
	for _, item := range items {
		one, has, err := c.Table.EntryOf(item, now)
		if !has || err != nil || one.At >= c.before {
			continue
		}
		if c.mu.Overdue++; len(c.mu.Examples) < ExamplesMost {
			c.mu.Examples = append(c.mu.Examples, one)
		}
	}
	return c.mu.Read >= c.most.Items || c.elapsed() >= c.most.Time
}
