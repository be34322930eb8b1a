package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// streamReader reads a table's stream from its opening on: each shard over a connection of its own,
// parents before their children.
type streamReader struct {
	endpoint *endpoint
	arn      string
	removed  func(item int, at time.Time)
	shards   *errgroup.Group
	cancel   context.CancelFunc
}

// pollEvery is the pause after each page. Readers poll as users' programs do: they do not know that
// mayfly can wait for a record.
const pollEvery = 5 * time.Millisecond

// readStream starts a reader. It calls removed for each REMOVE record of an item, with the arrival
// time of its page. It returns nil if the table has no stream.
func (e *endpoint) readStream(ctx context.Context, t *table, removed func(item int, at time.Time)) (*streamReader, error) {
	arn, err := e.streamARN(ctx, t)
	if err != nil || arn == "" {
		return nil, err
	}
	r := &streamReader{endpoint: e, arn: arn, removed: removed}
	ctx, r.cancel = context.WithCancel(ctx)
	r.shards, ctx = errgroup.WithContext(ctx)
	if err := r.start(ctx, "LATEST", func(s shard) bool { return s.SequenceNumberRange.EndingSequenceNumber == "" }); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// streamARN returns the ARN of a table's stream, or "" if it has none.
func (e *endpoint) streamARN(ctx context.Context, t *table) (string, error) {
	var described struct {
		Table struct{ LatestStreamArn string }
	}
	err := e.ask(ctx, apiPrefix+"DescribeTable", `{"TableName":"`+t.name+`"}`, &described)
	return described.Table.LatestStreamArn, err
}

// close stops reading, and returns the first failure before that.
func (r *streamReader) close() error {
	r.cancel()
	return r.shards.Wait()
}

type shard struct {
	ShardId, ParentShardId string
	SequenceNumberRange    struct{ EndingSequenceNumber string }
}

// start starts to read the chosen shards from a position, in a goroutine for each.
func (r *streamReader) start(ctx context.Context, position string, chosen func(shard) bool) error {
	for after := ""; ; {
		var page struct {
			StreamDescription struct {
				Shards               []shard
				LastEvaluatedShardId string
			}
		}
		if err := r.endpoint.ask(ctx, streamsPrefix+"DescribeStream", fmt.Sprintf(`{"StreamArn":%q%s}`, r.arn, after), &page); err != nil {
			return err
		}
		for _, s := range page.StreamDescription.Shards {
			if !chosen(s) {
				continue
			}
			iterator, err := r.iterator(ctx, s.ShardId, position)
			if err != nil {
				return err
			}
			r.shards.Go(func() error {
				if err := r.read(ctx, s.ShardId, iterator); err != nil && ctx.Err() == nil {
					return fmt.Errorf("read shard %s of %s: %w", s.ShardId, r.endpoint.name, err)
				}
				return nil
			})
		}
		last := page.StreamDescription.LastEvaluatedShardId
		if last == "" {
			return nil
		}
		after = fmt.Sprintf(`,"ExclusiveStartShardId":%q`, last)
	}
}

func (r *streamReader) iterator(ctx context.Context, shard, position string) (string, error) {
	var found struct{ ShardIterator string }
	body := fmt.Sprintf(`{"StreamArn":%q,"ShardId":%q,"ShardIteratorType":%q}`, r.arn, shard, position)
	err := r.endpoint.ask(ctx, streamsPrefix+"GetShardIterator", body, &found)
	return found.ShardIterator, err
}

// read reads a shard to its end, and then starts its children.
func (r *streamReader) read(ctx context.Context, id, iterator string) error {
	c, err := dial(ctx, r.endpoint.address)
	if err != nil {
		return err
	}
	defer c.close()
	for more := true; more; {
		body := fmt.Sprintf(`{"ShardIterator":%q,"Limit":1000}`, iterator)
		a, err := c.call(rawRequest(r.endpoint.address, streamsPrefix+"GetRecords", body))
		if err != nil {
			return err
		}
		if a.status != 200 {
			return newRefusal(a)
		}
		at := time.Now()
		eachRemoved(a.body, func(item int) { r.removed(item, at) })
		iterator = ""
		more = member(a.body, "NextShardIterator", &iterator) && iterator != ""
		if err := Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
	return r.start(ctx, "TRIM_HORIZON", func(s shard) bool { return s.ParentShardId == id })
}

var (
	nameEvent = []byte(`"eventName"`)
	valueGone = []byte(`"REMOVE"`)
	nameKeys  = []byte(`"Keys"`)
	keyHead   = []byte(`"item-`)
)

// keysMost is the maximum distance of a key's end from the name "Keys", in bytes.
const keysMost = 80

// eachRemoved calls removed for the items in a page's REMOVE records. It searches for names instead
// of parsing JSON: none of them occurs in an item.
func eachRemoved(page []byte, removed func(item int)) {
	_, page, more := bytes.Cut(page, nameEvent)
	for more {
		var record []byte
		record, page, more = bytes.Cut(page, nameEvent)
		if !bytes.HasPrefix(bytes.TrimLeft(record, ": "), valueGone) {
			continue
		}
		if item, ok := keyIn(record); ok {
			removed(item)
		}
	}
}

// keyIn returns the number of a record's item.
func keyIn(record []byte) (item int, ok bool) {
	i := bytes.Index(record, nameKeys)
	if i < 0 {
		return 0, false
	}
	_, number, _ := bytes.Cut(record[i:min(len(record), i+keysMost)], keyHead)
	n, ok := leadingNumber(number)
	return int(n), ok
}

// leadingNumber returns the number that appendDigits has written at the beginning of a text.
func leadingNumber(text []byte) (n uint64, ok bool) {
	if len(text) < numberBytes {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:numberBytes]), 10, 64)
	return n, err == nil
}
