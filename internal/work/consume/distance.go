package consume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Distance is how far a consumer's checkpoints are behind the end of a stream.
type Distance struct {
	Consumer string
	Shards   int       // that it has not finished
	Records  int       // that no checkpoint has passed
	More     bool      // there may be more than Records
	Oldest   time.Time // creation of the oldest of them; zero: none
	Workers  []string  // owners of its leases
}

// Limits of Distances. Of each shard the records of one page are counted.
const (
	distanceRows   = 20_000 // read of the table of leases
	distanceShards = 400    // looked at, over all consumers
	distanceCalls  = 8      // at once
)

// Distances returns the consumers with checkpoints in a stream, by name. It finds those that keep
// them in the table of leases; an endpoint does not know its other readers. It writes nothing.
func Distances(ctx context.Context, db *dynamodb.Client, streams *dynamodbstreams.Client, arn string, o lease.Options) ([]Distance, error) {
	var all []types.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &arn}
	for {
		out, err := streams.DescribeStream(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			break
		}
	}
	consumers, err := consumersOf(ctx, db, all, o)
	if err != nil {
		return nil, err
	}
	var found []*Distance
	var asked []func() error
	for name, rows := range consumers {
		d := &Distance{Consumer: name}
		found = append(found, d)
		var mu sync.Mutex
		for _, s := range all {
			id := aws.ToString(s.ShardId)
			row := rows[id]
			if row.Checkpoint == checkpointEnd {
				continue
			}
			d.Shards++
			if row.Owner != "" && !slices.Contains(d.Workers, row.Owner) {
				d.Workers = append(d.Workers, row.Owner)
			}
			if len(asked) == distanceShards {
				d.More = true
				continue
			}
			asked = append(asked, func() error {
				records, more, err := recordsAfter(ctx, streams, arn, id, row.Checkpoint)
				mu.Lock()
				defer mu.Unlock()
				d.count(records, more)
				return err
			})
		}
		slices.Sort(d.Workers)
	}
	if err := callAll(asked, distanceCalls); err != nil {
		return nil, err
	}
	sorted := make([]Distance, len(found))
	for i, d := range found {
		sorted[i] = *d
	}
	slices.SortFunc(sorted, func(a, b Distance) int { return cmp.Compare(a.Consumer, b.Consumer) })
	return sorted, nil
}

// count adds the records of a shard.
func (d *Distance) count(records []types.Record, more bool) {
	d.Records += len(records)
	d.More = d.More || more
	if len(records) == 0 {
		return
	}
	at := aws.ToTime(records[0].Dynamodb.ApproximateCreationDateTime)
	if d.Oldest.IsZero() || at.Before(d.Oldest) {
		d.Oldest = at
	}
}

// consumersOf returns the rows of the consumers that have one for a shard, by their names.
func consumersOf(ctx context.Context, db *dynamodb.Client, shards []types.Shard, o lease.Options) (map[string]map[string]lease.Row, error) {
	known := map[string]bool{}
	for _, s := range shards {
		known[aws.ToString(s.ShardId)] = true
	}
	consumers := map[string]map[string]lease.Row{}
	read, enough := 0, errors.New("enough")
	err := lease.Each(ctx, db, o, func(consumer string, r lease.Row) error {
		if read++; read > distanceRows {
			return enough
		}
		if known[r.Shard] {
			if consumers[consumer] == nil {
				consumers[consumer] = map[string]lease.Row{}
			}
			consumers[consumer][r.Shard] = r
		}
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return consumers, err
}

// recordsAfter returns the first records of a shard after a checkpoint, and whether more may follow.
// An empty checkpoint is before the oldest record.
func recordsAfter(ctx context.Context, streams *dynamodbstreams.Client, arn, shard, checkpoint string) (records []types.Record, more bool, err error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if checkpoint != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &checkpoint
	}
	it, err := streams.GetShardIterator(ctx, in)
	var trimmed *types.TrimmedDataAccessException
	if errors.As(err, &trimmed) { // the consumer continues with the oldest record
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeTrimHorizon, nil
		it, err = streams.GetShardIterator(ctx, in)
	}
	if err != nil {
		return nil, false, err
	}
	out, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
	if err != nil || len(out.Records) == 0 || out.NextShardIterator == nil {
		return recordsOf(out), false, err
	}
	// a page ends after 1,000 records or 1 MB
	next, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: out.NextShardIterator, Limit: aws.Int32(1)})
	return out.Records, len(recordsOf(next)) > 0, err
}

// Passed reports whether a checkpoint has passed a record of its shard.
func Passed(checkpoint, sequence string) bool {
	if checkpoint == "" || checkpoint == checkpointEnd {
		return checkpoint != ""
	}
	return cmp.Or(cmp.Compare(len(checkpoint), len(sequence)), cmp.Compare(checkpoint, sequence)) >= 0
}

// recordsOf returns the records of an answer; none without one.
func recordsOf(out *dynamodbstreams.GetRecordsOutput) []types.Record {
	if out == nil {
		return nil
	}
	return out.Records
}

// callAll calls functions, a few at once, and returns their errors.
func callAll(all []func() error, atOnce int) error {
	failed := make([]error, len(all))
	slots := make(chan struct{}, atOnce)
	var calls sync.WaitGroup
	for i, f := range all {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			failed[i] = f()
		})
	}
	calls.Wait()
	return errors.Join(failed...)
}
