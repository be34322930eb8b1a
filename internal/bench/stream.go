package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// streamReader reads a table's stream from its opening on: each shard over a connection of its own,
// parents before their children.
type streamReader struct {
	endpoint *endpoint
	arn      string
	removed  func(item int, at time.Time)
	running  sync.WaitGroup
	cancel   context.CancelFunc

	mu      sync.Mutex // guards the following
	started map[string]bool
	err     error // the first failure
}

const (
	// asks the server to wait for a record; servers that do so echo it
	headerWait = "X-Mayfly-Wait-Ms"
	waitMS     = "1000"
	pollEvery  = 50 * time.Millisecond // for other servers
)

// readStream starts a reader. It calls removed for each REMOVE record of an item, with the arrival
// time of its page. It returns nil if the table has no stream.
func (e *endpoint) readStream(ctx context.Context, t *table, removed func(item int, at time.Time)) (*streamReader, error) {
	arn, err := e.streamARN(ctx, t)
	if err != nil || arn == "" {
		return nil, err
	}
	r := &streamReader{endpoint: e, arn: arn, removed: removed, started: map[string]bool{}}
	shards, err := r.shards(ctx)
	if err != nil {
		return nil, err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	for _, s := range shards {
		if s.SequenceNumberRange.EndingSequenceNumber != "" {
			continue
		}
		iterator, err := r.iterator(ctx, s.ShardId, "LATEST")
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.start(ctx, s.ShardId, iterator)
	}
	return r, nil
}

// streamARN returns the ARN of a table's stream, or "" if it has none.
func (e *endpoint) streamARN(ctx context.Context, t *table) (string, error) {
	body, err := e.call(ctx, apiPrefix+"DescribeTable", `{"TableName":"`+t.name+`"}`)
	if err != nil {
		return "", err
	}
	var described struct {
		Table struct{ LatestStreamArn string }
	}
	err = json.Unmarshal(body, &described)
	return described.Table.LatestStreamArn, err
}

// close stops reading, and returns the first failure before that.
func (r *streamReader) close() error {
	r.cancel()
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

type shard struct {
	ShardId, ParentShardId string
	SequenceNumberRange    struct{ EndingSequenceNumber string }
}

func (r *streamReader) shards(ctx context.Context) (all []shard, err error) {
	after := ""
	for {
		body, err := r.endpoint.call(ctx, streamsPrefix+"DescribeStream", `{"StreamArn":"`+r.arn+`"`+after+`}`)
		if err != nil {
			return nil, err
		}
		var page struct {
			StreamDescription struct {
				Shards               []shard
				LastEvaluatedShardId string
			}
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, err
		}
		all = append(all, page.StreamDescription.Shards...)
		last := page.StreamDescription.LastEvaluatedShardId
		if last == "" {
			return all, nil
		}
		after = `,"ExclusiveStartShardId":"` + last + `"`
	}
}

// iterator returns a shard iterator as JSON, with quotes.
func (r *streamReader) iterator(ctx context.Context, shard, kind string) (json.RawMessage, error) {
	body, err := r.endpoint.call(ctx, streamsPrefix+"GetShardIterator",
		`{"StreamArn":"`+r.arn+`","ShardId":"`+shard+`","ShardIteratorType":"`+kind+`"}`)
	if err != nil {
		return nil, err
	}
	var out struct{ ShardIterator json.RawMessage }
	err = json.Unmarshal(body, &out)
	return out.ShardIterator, err
}

// start reads a shard, once, in a goroutine.
func (r *streamReader) start(ctx context.Context, shard string, iterator json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started[shard] {
		return
	}
	r.started[shard] = true
	r.running.Go(func() {
		if err := r.read(ctx, shard, iterator); err != nil && ctx.Err() == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err = errors.Join(r.err, fmt.Errorf("read shard %s of %s: %w", shard, r.endpoint.name, err))
		}
	})
}

// read reads a shard to its end, and then starts its children.
func (r *streamReader) read(ctx context.Context, id string, iterator json.RawMessage) error {
	c, err := dial(ctx, r.endpoint.address)
	if err != nil {
		return err
	}
	defer c.close()
	for iterator != nil {
		a, err := c.call(rawRequest(r.endpoint.address, streamsPrefix+"GetRecords",
			`{"ShardIterator":`+string(iterator)+`,"Limit":1000}`, headerWait+": "+waitMS))
		if err != nil {
			return err
		}
		if a.status != 200 {
			return newRefusal(a)
		}
		at := time.Now()
		records := eachRemoved(a.body, func(item int) { r.removed(item, at) })
		iterator = bytes.Clone(stringMember(a.body, "NextShardIterator"))
		if records == 0 && headerField(a.head, strings.ToLower(headerWait)) == nil {
			if err := pause(ctx, pollEvery); err != nil {
				return err
			}
		}
	}
	return r.startChildren(ctx, id)
}

func (r *streamReader) startChildren(ctx context.Context, parent string) error {
	shards, err := r.shards(ctx)
	if err != nil {
		return err
	}
	for _, s := range shards {
		if s.ParentShardId != parent {
			continue
		}
		iterator, err := r.iterator(ctx, s.ShardId, "TRIM_HORIZON")
		if err != nil {
			return err
		}
		r.start(ctx, s.ShardId, iterator)
	}
	return nil
}

var (
	nameEvent = []byte(`"eventName"`)
	valueGone = []byte(`"REMOVE"`)
	nameKeys  = []byte(`"Keys"`)
	keyHead   = []byte(`"item-`)
)

// keysMost is the maximum distance of a key's end from the name "Keys", in bytes.
const keysMost = 80

// eachRemoved calls removed for the items in a page's REMOVE records, and returns the number of all
// records. It searches for names instead of parsing JSON: none of them occurs in an item.
func eachRemoved(page []byte, removed func(item int)) (records int) {
	_, page, more := bytes.Cut(page, nameEvent)
	for more {
		records++
		var record []byte
		record, page, more = bytes.Cut(page, nameEvent)
		if !bytes.HasPrefix(bytes.TrimLeft(record, ": "), valueGone) {
			continue
		}
		if item, ok := keyIn(record); ok {
			removed(item)
		}
	}
	return records
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
