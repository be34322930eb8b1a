package trigger

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/pattern"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Feeds are the hidden streams that the embedded database has for the Kinesis destinations of its
// tables. The zero value has none.
type Feeds struct {
	// Streams reads feeds. No other reader has such a client, so a trigger cannot read a feed.
	Streams *dynamodbstreams.Client
	// List returns the feeds to deliver, oldest first, also those that have ended.
	List func() ([]Feed, error)
	// Precision returns the present ApproximateCreationDateTimePrecision of a feed's destination;
	// empty: not set.
	Precision func(streamARN string) string
	// Finish is called when a feed has ended and all its records are done. It is called again after
	// an error.
	Finish func(streamARN string) error
}

// Feed is one hidden stream.
type Feed struct {
	StreamARN   string
	Table       string
	Destination string // the ARN of the Kinesis stream, which leads to a target
	// an earlier feed of the table for the same destination is not finished, and is delivered first
	Waits    bool
	Finished bool // Finish was called for it, in this process or in an earlier one
}

const (
	// feedPrefix stands for the name of a trigger in the group of a feed's deliveries; the table's
	// name follows. No trigger can have such a name.
	feedPrefix = "kinesis:"

	feedType     = "DynamoDB Item Change"
	feedBatch    = 500            // the most records in a call of PutRecords
	feedParallel = 4              // lanes of a shard
	feedAge      = 24 * time.Hour // for which Amazon keeps undelivered records

	precisionMicros = "MICROSECOND"
)

// feedPlan returns the behaviour of a feed: each record is a delivery of its own, the order of a
// key is kept, and a record that fails for a day is a dead letter.
func feedPlan(f Feed) *plan {
	filter, _ := pattern.Compile() // without patterns it cannot fail, and lets all records pass
	return &plan{
		id: feedID(f), arn: strings.TrimSuffix(f.StreamARN[:strings.LastIndexByte(f.StreamARN, '/')], "/stream"), stream: f.StreamARN, start: consume.TrimHorizon,
		target: f.Destination, filter: filter, batch: feedBatch, parallel: feedParallel, ordered: true, single: true, retries: infinite, age: feedAge,
		feed: &f,
	}
}

// feedID returns the name of a feed's consumer. No other consumer has such a name.
func feedID(f Feed) string {
	return "kinesis." + f.Table + f.StreamARN[strings.LastIndexByte(f.StreamARN, '/'):]
}

// feeding starts the readers of feeds. Its lock covers a look at the list and what follows from it.
// So the checkpoints of a feed that has just finished are not deleted before a look that still
// found it unfinished has ended.
type feeding struct {
	sync.Mutex
	start func(*plan) *run // nil: Run has not begun, or is over, or leaves the feeds to others
	// the finished feeds without checkpoints, by the names of their consumers
	forgotten map[string]bool
}

// begin lets feeds start, or ends that.
func (f *feeding) begin(start func(*plan) *run) {
	f.Lock()
	defer f.Unlock()
	f.start = start
}

// FollowFeeds waits until Run has begun and each feed has a registered reader, or ctx is done. A
// failing target does not delay it.
func (t *Triggers) FollowFeeds(ctx context.Context) {
	select {
	case <-t.ready:
	case <-ctx.Done():
		return
	}
	t.feeding.Lock()
	_, runs, err := t.startFeedsLocked()
	t.feeding.Unlock()
	if err != nil {
		t.wake() // Run tries again
	}
	for _, r := range runs {
		select {
		case <-r.registered:
		case <-ctx.Done():
			return
		}
	}
}

// followFeeds starts the readers of feeds, and deletes the checkpoints of finished ones. A feed is
// finished first, so that a crash in between repeats no delivery.
func (t *Triggers) followFeeds(ctx context.Context) error {
	t.feeding.Lock()
	defer t.feeding.Unlock()
	feeds, _, err := t.startFeedsLocked()
	for _, f := range feeds {
		if err == nil && f.Finished && t.run(feedID(f)) == nil {
			t.forgetFeedLocked(ctx, feedID(f))
		}
	}
	return err
}

// startFeedsLocked starts a reader for each feed that is not finished. All of them read at once, so
// the database keeps their records, however long the delivery of an earlier feed takes; but a feed
// that waits delivers nothing until it takes its turn.
func (t *Triggers) startFeedsLocked() (feeds []Feed, runs []*run, err error) {
	if t.o.Feeds.List == nil || t.feeding.start == nil {
		return nil, nil, nil
	}
	if feeds, err = t.o.Feeds.List(); err != nil {
		return nil, nil, err
	}
	type line struct{ table, destination string }
	last := map[line]*run{}
	for _, f := range feeds {
		if f.Finished {
			continue
		}
		r := t.run(feedID(f))
		if r == nil {
			r = t.feeding.start(feedPlan(f))
		}
		runs = append(runs, r)
		mine := line{f.Table, f.Destination}
		if before := last[mine]; !f.Waits {
			r.takeTurn()
		} else if before != nil {
			before.rests.lead(&r.rests)
		}
		last[mine] = r
	}
	return feeds, runs, nil
}

// forgetFeedLocked deletes the checkpoints of a finished feed, once in this process. After an error
// they stay until the next look: nothing else waits for that.
func (t *Triggers) forgetFeedLocked(ctx context.Context, id string) {
	if t.feeding.forgotten[id] {
		return
	}
	if err := consume.Forget(ctx, t.o.DB, id, t.o.Leases); err != nil {
		t.o.Logger.Warn("the checkpoints of a Kinesis destination were not deleted", "consumer", id, "error", err)
		return
	}
	t.feeding.forgotten[id] = true
}

// finishFeed ends a feed whose records are done.
func (r *run) finishFeed(ctx context.Context) {
	_ = retry.Until(ctx, r.log, retry.Calls, "end a Kinesis destination", func() error { // fails only if ctx is done
		return r.o.Feeds.Finish(r.stream)
	})
}

// feedForm returns the function that appends a record of the feed, for the destination's present
// precision.
func (s *shard) feedForm() func(dst []byte, r *types.Record) []byte {
	precision := s.o.Feeds.Precision(s.stream)
	return func(dst []byte, r *types.Record) []byte { return appendKinesis(dst, r, s.feed.Table, precision) }
}

// appendKinesis appends a record as Amazon writes it to a Kinesis stream. Unlike a stream
// record, its time is in milliseconds or microseconds, and it has no sequence number.
func appendKinesis(dst []byte, r *types.Record, table, precision string) []byte {
	dst = append(dst, `{"awsRegion":`...)
	dst = dynamo.AppendQuoted(dst, aws.ToString(r.AwsRegion))
	dst = append(dst, `,"eventID":`...)
	dst = dynamo.AppendQuoted(dst, feedEventID(aws.ToString(r.EventID)))
	dst = append(dst, `,"eventName":"`...)
	dst = append(dst, r.EventName...)
	dst = append(dst, `","userIdentity":`...)
	if id := r.UserIdentity; id != nil {
		dst = append(dst, `{"type":`...)
		dst = dynamo.AppendQuoted(dst, aws.ToString(id.Type))
		dst = append(dst, `,"principalId":`...)
		dst = dynamo.AppendQuoted(dst, aws.ToString(id.PrincipalId))
		dst = append(dst, '}')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"recordFormat":"application/json","tableName":`...)
	dst = dynamo.AppendQuoted(dst, table)
	dst = append(dst, `,"dynamodb":{`...)
	if d := r.Dynamodb; d != nil {
		dst = appendKinesisChange(dst, d, precision)
	}
	return append(dst, `},"eventSource":"aws:dynamodb"}`...)
}

// appendKinesisChange appends the members of "dynamodb".
func appendKinesisChange(dst []byte, d *types.StreamRecord, precision string) []byte {
	dst = append(dst, `"ApproximateCreationDateTime":`...)
	at := aws.ToTime(d.ApproximateCreationDateTime).UnixMilli()
	if precision == precisionMicros {
		at *= 1000 // the database's instants are milliseconds
	}
	dst = strconv.AppendInt(dst, at, 10)
	dst = append(dst, `,"Keys":`...)
	dst = appendAttributes(dst, d.Keys)
	if d.NewImage != nil {
		dst = append(dst, `,"NewImage":`...)
		dst = appendAttributes(dst, d.NewImage)
	}
	if d.OldImage != nil {
		dst = append(dst, `,"OldImage":`...)
		dst = appendAttributes(dst, d.OldImage)
	}
	dst = append(dst, `,"SizeBytes":`...)
	dst = strconv.AppendInt(dst, aws.ToInt64(d.SizeBytes), 10)
	if precision != "" {
		dst = append(dst, `,"ApproximateCreationDateTimePrecision":`...)
		dst = dynamo.AppendQuoted(dst, precision)
	}
	return dst
}

// feedEventID returns an event ID of 32 hex digits in the form of a UUID, as Amazon's are.
func feedEventID(id string) string {
	if len(id) != 32 {
		return id
	}
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}
