package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	waitLimit  = 500 * time.Millisecond // time that the server may hold a call without records
	recordsMax = 1000                   // limit of GetRecords
	grace      = 20 * time.Second       // time after the last deadline for every record to arrive
)

// readStream reads all shards from their first record on, parents before their children, until
// every record has arrived or the grace period is over.
func (d *Demo) readStream(ctx context.Context) error {
	table, err := d.DB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(tableName)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	r := &streamReader{Demo: d, arn: aws.ToString(table.Table.LatestStreamArn), cancel: cancel, group: group}
	r.mu.started = map[string]bool{}
	group.Go(func() error { return r.startChildren(ctx, "") })
	return group.Wait()
}

// streamReader reads the shards of one stream, each in a goroutine of its own.
type streamReader struct {
	*Demo
	arn    string
	cancel context.CancelFunc
	group  *errgroup.Group
	mu     struct {
		sync.Mutex
		started map[string]bool // by shard id
	}
}

// startChildren starts readers of the children of parent. For "" it starts readers of shards
// without a parent, or whose parent is no longer listed.
func (r *streamReader) startChildren(ctx context.Context, parent string) error {
	shards, err := r.shards(ctx)
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, s := range shards {
		listed[aws.ToString(s.ShardId)] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range shards {
		id, parentOf := aws.ToString(s.ShardId), aws.ToString(s.ParentShardId)
		first := parent == "" && !listed[parentOf]
		if r.mu.started[id] || (!first && (parent == "" || parentOf != parent)) {
			continue
		}
		r.mu.started[id] = true
		r.group.Go(func() error {
			if err := r.readShard(ctx, id); err != nil {
				return fmt.Errorf("shard %s: %w", id, err)
			}
			return nil
		})
	}
	return nil
}

func (r *streamReader) shards(ctx context.Context) ([]types.Shard, error) {
	var all []types.Shard
	var after *string
	for {
		out, err := r.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &r.arn, ExclusiveStartShardId: after})
		if err != nil {
			return nil, err
		}
		all = append(all, out.StreamDescription.Shards...)
		if after = out.StreamDescription.LastEvaluatedShardId; after == nil {
			return all, nil
		}
	}
}

func (r *streamReader) readShard(ctx context.Context, id string) error {
	start, err := r.Streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &r.arn, ShardId: &id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return err
	}
	for iterator := start.ShardIterator; iterator != nil; {
		if r.finished() {
			r.cancel() // the other shards may be waiting for records that never come
			return nil
		}
		out, waited, err := r.records(ctx, iterator)
		switch {
		case errors.Is(err, context.Canceled) && r.finished():
			return nil
		case err != nil:
			return err
		}
		r.tally.arrived(r.byKey, out.Records, r.Now())
		iterator = out.NextShardIterator
		if len(out.Records) == 0 && !waited {
			clock.Pause(readEvery, ctx.Done())
		}
	}
	return r.startChildren(ctx, id)
}

// records returns one page. It asks the server to hold the call until there is a record. A server
// that does not know the header answers at once, and waited is false.
func (r *streamReader) records(ctx context.Context, iterator *string) (out *dynamodbstreams.GetRecordsOutput, waited bool, err error) {
	wait := strconv.FormatInt(waitLimit.Milliseconds(), 10)
	out, err = r.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: aws.Int32(recordsMax)},
		func(o *dynamodbstreams.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Wait-Ms", wait))
		})
	if err != nil {
		return nil, false, err
	}
	response, ok := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	return out, ok && response.Header.Get("X-Mayfly-Wait-Ms") != "", nil
}

// finished reports whether every record has arrived, or the grace period is over.
func (r *streamReader) finished() bool {
	return r.tally.complete() || r.Now().After(r.plan[len(r.plan)-1].deadline.Add(grace))
}
