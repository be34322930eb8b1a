package demo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

const (
	readEvery = 10 * time.Millisecond // least pause, which fills batches if deadlines are spread
	lookAhead = 40 * time.Millisecond // lead of the last read before a deadline
	readItems = 100                   // limit of BatchGetItem

	// readTime is the time planned for reading an item in a full batch before its deadline. Such a
	// read takes about 4 µs on an idle machine; here everything else runs on the same processors.
	readTime = 20 * time.Microsecond
)

// readBefore reads every item shortly before its deadline. A reader cannot read thousands of items
// in an instant, so the reads of items that are due together follow each other and end lookAhead
// before the deadline. Items whose deadline has passed meanwhile are skipped.
func (d *Demo) readBefore(ctx context.Context) error {
	return d.readAt(ctx, func(e *entry) time.Time {
		return e.deadline.Add(-lookAhead - time.Duration(e.behind)*readTime)
	}, func(e *entry, now time.Time) bool { return !e.deadline.After(now) })
}

// readAfter reads every item as soon as possible after its deadline, and none before it.
func (d *Demo) readAfter(ctx context.Context) error {
	return d.readAt(ctx, func(e *entry) time.Time { return e.deadline }, func(*entry, time.Time) bool { return false })
}

// readAt reads each entry of the plan at the time that when returns, or as soon as possible after
// it, unless skip returns true by then.
func (d *Demo) readAt(ctx context.Context, when func(*entry) time.Time, skip func(*entry, time.Time) bool) error {
	for rest := d.plan; len(rest) > 0; {
		now := d.Now()
		var batch []*entry
		for len(rest) > 0 && len(batch) < readItems && !when(rest[0]).After(now) {
			if !skip(rest[0], now) {
				batch = append(batch, rest[0])
			}
			rest = rest[1:]
		}
		if err := d.readBatch(ctx, batch); err != nil {
			return err
		}
		if len(batch) < readItems && len(rest) > 0 {
			clock.Pause(max(readEvery, when(rest[0]).Sub(d.Now())), ctx.Done())
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// readBatch reads some items and checks each answer against the times at which the call began and
// ended: the answer was true at some moment in between.
func (d *Demo) readBatch(ctx context.Context, batch []*entry) error {
	if len(batch) == 0 {
		return nil
	}
	keys := make([]map[string]types.AttributeValue, len(batch))
	for i, e := range batch {
		keys[i] = e.keyItem()
	}
	acknowledged := d.tally.written(batch)
	began := d.Now()
	found := make(map[string]bool, len(batch))
	pending := map[string]types.KeysAndAttributes{tableName: {
		Keys: keys, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#d, #t"),
		ExpressionAttributeNames: map[string]string{"#d": attrDevice, "#t": attrTime},
	}}
	for len(pending) > 0 {
		out, err := d.DB.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: pending})
		if err != nil {
			return err
		}
		for _, item := range out.Responses[tableName] {
			found[itemKey(item)] = true
		}
		pending = out.UnprocessedKeys
	}
	d.tally.wasRead(batch, acknowledged, found, began, d.Now())
	return nil
}

// itemKey returns the key of an item, or of the keys of a stream record, as entry.key does.
func itemKey[V any](item map[string]V) string {
	return keyOf(attr.String(item[attrDevice]), attr.String(item[attrTime]))
}
