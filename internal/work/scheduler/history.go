package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Run is a past firing of a schedule.
type Run struct {
	Name       string    // of the schedule
	ID         string    // of its delivery
	Number     int64     // of the occurrence, from 1 on; a new version of the schedule begins anew
	Occurrence time.Time // instant of the expression
	Due        time.Time // its deadline, within the flexible time window
	At         time.Time // when it fired, by the database's clock: some endpoints have whole seconds
	Missed     bool      // it fired so late that the catch-up decided whether it runs
	Under      bool      // its delivery is under way: nothing below is known yet
	Fate       *deliver.Fate
}

// History is what an endpoint keeps of the past of schedules.
type History struct {
	Runs []Run // the newest first
	// the firings are read from the records of a stream. It keeps none before this instant, or only
	// a part was read; zero: unknown
	Since time.Time
	Part  bool // the stream has more records than a call reads
}

// Limits of ReadHistory.
const (
	historyRecords = 50_000 // read of the stream
	historyShards  = 50
)

// ReadHistory reads the past firings of those schedules of a group whose names are accepted, at most
// most of them. The scheduler keeps no list of them, so that a firing writes nothing for it: they are
// read from the stream of the group's table, which keeps its records for a day. What became of the
// deliveries is read from the retries and the dead letters. arn is the ARN of a schedule of the group
// without the schedule's name.
func ReadHistory(ctx context.Context, db *dynamodb.Client, streams *dynamodbstreams.Client, group, arn string, accepts func(name string) bool, most int) (*History, error) {
	place := groupPlace(group)
	table, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &place.table})
	if noTable(err) {
		return &History{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	label := table.Table.LatestStreamArn
	if label == nil {
		return &History{}, nil
	}
	h := &historian{streams: streams, stream: *label, arn: arn, accepts: accepts, most: most}
	if h.rows, err = lease.New(db, consumerOf(place), lease.Options{}).Rows(ctx); err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	if err := h.read(ctx); err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	return &h.found, h.addFates(ctx, db)
}

// historian reads the history of schedules.
type historian struct {
	streams *dynamodbstreams.Client
	stream  string // ARN
	arn     string
	accepts func(name string) bool
	most    int
	rows    map[string]lease.Row // of the scheduler's consumer, by shard
	left    int                  // records to read
	found   History
}

// read reads the shards, the newest first.
func (h *historian) read(ctx context.Context) error {
	h.left = historyRecords
	var shards []streamtypes.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &h.stream}
	for {
		out, err := h.streams.DescribeStream(ctx, in)
		if err != nil {
			return err
		}
		shards = append(shards, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			break
		}
	}
	for i, s := range slices.Backward(shards) {
		if len(h.found.Runs) >= h.most || h.left <= 0 || len(shards)-i > historyShards {
			h.found.Part = true
			break
		}
		runs, err := h.shard(ctx, aws.ToString(s.ShardId))
		if err != nil {
			return err
		}
		slices.Reverse(runs)
		h.found.Runs = append(h.found.Runs, runs...)
	}
	slices.SortStableFunc(h.found.Runs, func(a, b Run) int { return b.At.Compare(a.At) })
	h.found.Runs = h.found.Runs[:min(len(h.found.Runs), h.most)]
	return nil
}

// shard returns the firings of a shard, the oldest first.
func (h *historian) shard(ctx context.Context, id string) (runs []Run, err error) {
	it, err := h.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &h.stream, ShardId: &id, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return nil, err
	}
	for next := it.ShardIterator; next != nil; {
		out, err := h.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
		var trimmed *streamtypes.TrimmedDataAccessException
		if errors.As(err, &trimmed) {
			return runs, nil
		}
		if err != nil {
			return nil, err
		}
		if next = out.NextShardIterator; len(out.Records) == 0 {
			return runs, nil
		}
		for i := range out.Records {
			if run, ok := h.run(id, &out.Records[i]); ok {
				runs = append(runs, run)
			}
		}
		if at := aws.ToTime(out.Records[0].Dynamodb.ApproximateCreationDateTime); h.found.Since.IsZero() || at.Before(h.found.Since) {
			h.found.Since = at
		}
		if h.left -= len(out.Records); h.left <= 0 {
			h.found.Part = true
			return runs, nil
		}
	}
	return runs, nil
}

// run returns the firing that a record stands for.
func (h *historian) run(shard string, r *streamtypes.Record) (Run, bool) {
	name, _ := r.Dynamodb.Keys[attrName].(*streamtypes.AttributeValueMemberS)
	if name == nil || !consume.Expired(r, attrDue, "") || !h.accepts(name.Value) {
		return Run{}, false
	}
	image, err := attributevalue.FromDynamoDBStreamsMap(r.Dynamodb.OldImage)
	if part := attr.String(image[attrPart]); err != nil || part != partFiring && part != partRemains {
		return Run{}, false
	}
	f, err := readFiring(image)
	if err != nil {
		return Run{}, false // the scheduler has logged it
	}
	run := Run{
		Name: f.name, ID: f.id(h.arn + f.name), Number: f.number, Occurrence: f.occurrence, Due: f.deadline, At: aws.ToTime(r.Dynamodb.ApproximateCreationDateTime),
		Under: !consume.Passed(h.rows[shard].Checkpoint, aws.ToString(r.Dynamodb.SequenceNumber)),
	}
	run.Missed = run.At.Sub(run.Due) > missedAfter
	return run, true
}

// addFates adds the deliveries that have failed or wait.
func (h *historian) addFates(ctx context.Context, db *dynamodb.Client) error {
	ids := make([]string, len(h.found.Runs))
	for i, run := range h.found.Runs {
		ids[i] = run.ID
	}
	fates, err := deliver.Fates(ctx, db, ids...)
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	for i := range h.found.Runs {
		if fate, ok := fates[h.found.Runs[i].ID]; ok {
			h.found.Runs[i].Fate, h.found.Runs[i].Under = &fate, false
		}
	}
	return nil
}
