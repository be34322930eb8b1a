package conformance

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// StreamReader reads a stream from its oldest record on, and each item's records in the order in
// which they were made.
//
// A stream is a forest of shards. All records of an item go to one shard at a time; when that shard
// is closed, the item's later records go to a child of it. So order holds within a shard, and from
// a parent to its child, and nowhere else: the reader starts on a shard only when it has read the
// shard's parent to the end. A shard whose parent is no longer listed, because it was trimmed, has
// nothing to wait for.
//
// A reader is for one goroutine. It keeps its place between calls of Read.
type StreamReader struct {
	Client    *dynamodbstreams.Client
	StreamARN string

	// IgnoreLineage reads every shard from the start, beside its parent. That is how a consumer
	// loses the order; it is here so that a test can show that it does.
	IgnoreLineage bool

	// PageSize is the most records to take from a shard at a time, 1 to 1,000; 0 is 1,000.
	PageSize int32

	shards map[string]*shardPosition
}

// shardPosition is a reader's position in a shard.
type shardPosition struct {
	parent   string
	iterator string // of the next page; empty before the first
	finished bool   // closed and read to its end
}

// Read returns all records that exist and have not been read yet, in an order that keeps each
// item's records in theirs. An empty answer is no end: later calls return later records. An error
// loses the records that this call has read, so the reader cannot be used any further.
func (r *StreamReader) Read(ctx context.Context) ([]types.Record, error) {
	var records []types.Record
	for {
		order, err := r.list(ctx)
		if err != nil {
			return nil, err
		}
		progress := false
		for _, id := range order {
			if !r.readable(id) {
				continue
			}
			page, err := r.page(ctx, id)
			if err != nil {
				return nil, err
			}
			records = append(records, page...)
			progress = progress || len(page) > 0 || r.shards[id].finished
		}
		if !progress {
			return records, nil
		}
	}
}

// readable reports whether a shard may be read: its parent has been read to the end.
func (r *StreamReader) readable(id string) bool {
	shard := r.shards[id]
	if shard.finished {
		return false
	}
	parent := r.shards[shard.parent]
	return r.IgnoreLineage || parent == nil || parent.finished
}

// list refreshes the reader's shards and returns their IDs in the listed order.
func (r *StreamReader) list(ctx context.Context) ([]string, error) {
	if r.shards == nil {
		r.shards = map[string]*shardPosition{}
	}
	described, err := describeShards(ctx, r.Client, r.StreamARN)
	if err != nil {
		return nil, err
	}
	order := make([]string, len(described))
	for i, shard := range described {
		order[i] = aws.ToString(shard.ShardId)
		if r.shards[order[i]] == nil {
			r.shards[order[i]] = &shardPosition{parent: aws.ToString(shard.ParentShardId)}
		}
	}
	return order, nil
}

// page returns the next page of a shard.
func (r *StreamReader) page(ctx context.Context, id string) ([]types.Record, error) {
	shard := r.shards[id]
	if shard.iterator == "" {
		out, err := r.Client.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &r.StreamARN, ShardId: &id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		if err != nil {
			return nil, fmt.Errorf("start on shard %s: %w", id, err)
		}
		shard.iterator = aws.ToString(out.ShardIterator)
	}
	in := &dynamodbstreams.GetRecordsInput{ShardIterator: &shard.iterator}
	if r.PageSize > 0 {
		in.Limit = &r.PageSize
	}
	out, err := r.Client.GetRecords(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("read shard %s: %w", id, err)
	}
	shard.iterator, shard.finished = aws.ToString(out.NextShardIterator), out.NextShardIterator == nil
	return out.Records, nil
}

// describeShards returns all shards of a stream, read page by page.
func describeShards(ctx context.Context, client *dynamodbstreams.Client, streamARN string) ([]types.Shard, error) {
	var shards []types.Shard
	var start *string
	for {
		out, err := client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &streamARN, ExclusiveStartShardId: start})
		if err != nil {
			return nil, fmt.Errorf("list the shards of %s: %w", streamARN, err)
		}
		shards = append(shards, out.StreamDescription.Shards...)
		if start = out.StreamDescription.LastEvaluatedShardId; start == nil {
			return shards, nil
		}
	}
}
