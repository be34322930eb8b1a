package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// streamReader reads a table's stream from the moment on at which it is opened, each shard over a connection of its own, parents
// before their children.
type streamReader struct {
	endpoint *endpoint
	arn      string
	removed  func(item int, at time.Time)
	running  sync.WaitGroup
	cancel   context.CancelFunc

	mu      sync.Mutex // guards what follows
	started map[string]bool
	err     error // the first failure
}

const (
	headerWait = "X-Mayfly-Wait-Ms" // asks to hold a call until there is a record; echoed by a server that does
	waitMS     = "1000"
	pollEvery  = 50 * time.Millisecond // of endpoints that do not
)

// readStream starts to read. Each REMOVE record of an item is handed to removed, together with the time at which its page had
// arrived. It returns nil where the table has no stream.
func (e *endpoint) readStream(ctx context.Context, t *table, removed func(item int, at time.Time)) (*streamReader, error) {
	body, err := e.call(ctx, apiPrefix+"DescribeTable", `{"TableName":"`+t.name+`"}`)
	if err != nil {
		return nil, err
	}
	var described struct {
		Table struct{ LatestStreamArn string }
	}
	if err := json.Unmarshal(body, &described); err != nil {
		return nil, err
	}
	if described.Table.LatestStreamArn == "" {
		return nil, nil
	}
	r := &streamReader{endpoint: e, arn: described.Table.LatestStreamArn, removed: removed, started: map[string]bool{}}
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

// close stops reading. It returns the first failure before.
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

// iterator gives a shard iterator as it stands in JSON, in quotes.
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

// read reads a shard to its end, and starts its children then.
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
	nameEvent  = []byte(`"eventName"`)
	valueGone  = []byte(`"REMOVE"`)
	nameKeys   = []byte(`"Keys"`)
	keyHead    = []byte(`"item-`)
	memberHead = 80 // bytes within which a key follows the name "Keys"
)

// eachRemoved finds the numbers of the items in the REMOVE records of a page, and counts the records. It looks for names rather
// than reading JSON: none of them is part of an item.
func eachRemoved(page []byte, removed func(item int)) (records int) {
	for {
		i := bytes.Index(page, nameEvent)
		if i < 0 {
			return records
		}
		records++
		page = page[i+len(nameEvent):]
		next := bytes.Index(page, nameEvent)
		record := page
		if next >= 0 {
			record = page[:next]
		}
		if !bytes.HasPrefix(bytes.TrimLeft(record, ": "), valueGone) {
			continue
		}
		if item, ok := keyIn(record); ok {
			removed(item)
		}
	}
}

// keyIn finds the number of the item whose record it is.
func keyIn(record []byte) (item int, ok bool) {
	i := bytes.Index(record, nameKeys)
	if i < 0 {
		return 0, false
	}
	keys := record[i:min(len(record), i+memberHead)]
	j := bytes.Index(keys, keyHead)
	if j < 0 || len(keys) < j+len(keyHead)+markBytes {
		return 0, false
	}
	for _, c := range keys[j+len(keyHead):][:markBytes] {
		if c < '0' || c > '9' {
			return 0, false
		}
		item = 10*item + int(c-'0')
	}
	return item, true
}

// stringMember finds a member that is a string without quotes in it, and gives it with its quotes; nil when there is none.
func stringMember(body []byte, name string) []byte {
	value := memberValue(body, name)
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	end := bytes.IndexByte(value[1:], '"')
	if end < 0 {
		return nil
	}
	return value[:end+2]
}
