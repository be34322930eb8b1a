package expirybench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/bench"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	streamPause = 5 * time.Millisecond // between two reads of a shard
	failedPause = 100 * time.Millisecond
	recordsMost = 1000 // in an answer
	// reads that have failed for so long at the end may have missed records, which is not the endpoint's loss
	failingMost = time.Second
)

// follower reads all shards of a table's stream. It reads each record once, in the order of its shard.
type follower struct {
	table  *table
	record func(types.Record, time.Time) // called by one goroutine at a time
	cancel context.CancelFunc
	shards *errgroup.Group

	mu      sync.Mutex // guards the following, and calls of record
	started map[string]bool
}

// follow starts to read a stream: from its beginning, or the records of later changes only.
func (t *table) follow(ctx context.Context, from types.ShardIteratorType, record func(types.Record, time.Time)) (*follower, error) {
	f := &follower{table: t, record: record, started: map[string]bool{}}
	ctx, f.cancel = context.WithCancel(ctx)
	f.shards, ctx = errgroup.WithContext(ctx)
	if err := f.start(ctx, from); err != nil {
		f.cancel()
		return nil, fmt.Errorf("read the stream of %s: %w", t.name, err)
	}
	return f, nil
}

// stop ends the reading, and returns the first failure before that.
func (f *follower) stop(ctx context.Context) error {
	f.cancel()
	if err := f.shards.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read the stream of %s: %w", f.table.name, err)
	}
	return nil
}

// start reads the shards that are not being read yet.
func (f *follower) start(ctx context.Context, from types.ShardIteratorType) error {
	for after := (*string)(nil); ; {
		out, err := f.table.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &f.table.arn, ExclusiveStartShardId: after})
		if err != nil {
			return err
		}
		for _, s := range out.StreamDescription.Shards {
			if !f.claim(*s.ShardId) { // also a closed shard: some endpoints give every shard an end
				continue
			}
			got, err := f.table.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &f.table.arn, ShardId: s.ShardId, ShardIteratorType: from})
			if err != nil {
				return err
			}
			f.shards.Go(func() error { return f.read(ctx, got.ShardIterator) })
		}
		if after = out.StreamDescription.LastEvaluatedShardId; after == nil {
			return nil
		}
	}
}

// claim reports whether this is the first call for a shard.
func (f *follower) claim(shard string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.started[shard]
	f.started[shard] = true
	return first
}

// read reads a shard to its end, and then the shards that follow it.
func (f *follower) read(ctx context.Context, iterator *string) error {
	var failing time.Time // since when reads have failed; zero: the last one has not
	for iterator != nil {
		out, err := f.table.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: aws.Int32(recordsMost)})
		if err != nil {
			if failing.IsZero() {
				failing = time.Now()
			}
			if ctx.Err() == nil && retry.Classify(err) == retry.Permanent {
				return err
			}
			if bench.Pause(ctx, failedPause) == nil {
				continue
			}
			if time.Since(failing) >= failingMost {
				return err
			}
			return nil
		}
		failing = time.Time{}
		f.pass(out.Records, time.Now())
		iterator = out.NextShardIterator
		if bench.Pause(ctx, streamPause) != nil {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return f.start(ctx, types.ShardIteratorTypeTrimHorizon)
}

func (f *follower) pass(records []types.Record, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		if r.Dynamodb != nil {
			f.record(r, at)
		}
	}
}

// isExpiry reports whether a record is marked as an expiry, as DynamoDB marks its own removals.
func isExpiry(r types.Record) bool {
	u := r.UserIdentity
	return u != nil && aws.ToString(u.Type) == "Service" && aws.ToString(u.PrincipalId) == "dynamodb.amazonaws.com"
}
