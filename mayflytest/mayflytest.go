// Package mayflytest opens databases for tests: in memory, with the clock standing still, closed when
// the test ends. Its functions fail the test in place of returning errors.
//
//	func TestSessionEnds(t *testing.T) {
//		db := mayflytest.Open(t)
//		db.CreateTable("sessions", "user, device", mayflytest.TTL("expires"))
//		store := NewStore(db.DynamoDB()) // the code under test
//		store.Begin(t.Context(), "ada", "phone", db.Clock().Now().Add(time.Hour))
//		db.Advance(time.Hour)
//		if n := len(db.Expired("sessions")); n != 1 {
//			t.Errorf("%d sessions ended", n)
//		}
//	}
//
// Tests that run in parallel open a database each; one takes some 10 ms. In a bubble of
// testing/synctest pass [Running]: the database then follows the bubble's clock.
package mayflytest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly"
)

// Start is the first instant of a database that Open opens: 2030-01-01, noon, in UTC.
var Start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// DB is a database of a test, with the clients, the clock and the other methods of *mayfly.DB.
type DB struct {
	*mayfly.DB
	t    testing.TB
	read map[string]map[string]string // by table and shard: the sequence number of the last record that Expired has read
}

// kept is the time for which a database keeps stream records, the longest that there is: a test may
// move the clock by months before it asks for expired items.
const kept = 366 * 24 * time.Hour

// Option changes the options of a database before it is opened.
type Option func(o *mayfly.Options)

// Running lets the clock run, from the machine's time on. In a bubble of testing/synctest this is the
// bubble's time, so time.Sleep moves the database.
func Running() Option {
	return func(o *mayfly.Options) { o.Start, o.Frozen = time.Time{}, false }
}

// Open opens a database in memory whose clock stands at [Start], and closes it when the test ends.
func Open(t testing.TB, options ...Option) *DB {
	t.Helper()
	o := mayfly.Options{Start: Start, Frozen: true, Shards: 1, StreamRetention: kept}
	for _, set := range options {
		set(&o)
	}
	db, err := mayfly.Open("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &DB{DB: db, t: t, read: map[string]map[string]string{}}
}

// Advance moves the clock forward. When it returns, items that were due are removed, and schedules,
// triggers and reminders have run. The test fails if that takes a minute of real time.
func (db *DB) Advance(by time.Duration) mayfly.Moved {
	db.t.Helper()
	return db.moved(db.Clock().Advance(context.Background(), by))
}

// Set moves the clock forward to an instant, like [DB.Advance].
func (db *DB) Set(to time.Time) mayfly.Moved {
	db.t.Helper()
	return db.moved(db.Clock().Set(context.Background(), to))
}

func (db *DB) moved(m mayfly.Moved, err error) mayfly.Moved {
	db.t.Helper()
	switch {
	case err != nil:
		db.t.Fatal(err)
	case m.Unfinished:
		db.t.Fatalf("the clock was moved, but after a minute these have not done what was due: %q", m.Busy)
	}
	return m
}

// Expired returns the items of a table that have expired since the last call, in the order of their
// removal. It reads the table's stream, which CreateTable enables with TTL. Items that were deleted
// are not among them. Call it at least once a year of the database's time: its stream keeps no older
// records, and the test fails if some went unread since the last call.
func (db *DB) Expired(table string) (items []map[string]types.AttributeValue) {
	db.t.Helper()
	ctx := context.Background()
	streams, err := db.Streams().ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: &table})
	if err != nil {
		db.t.Fatal(err)
	}
	if len(streams.Streams) == 0 {
		db.t.Fatalf("table %q has no stream; create it with mayflytest.TTL", table)
	}
	for _, stream := range streams.Streams {
		in := &dynamodbstreams.DescribeStreamInput{StreamArn: stream.StreamArn}
		for {
			out, err := db.Streams().DescribeStream(ctx, in)
			if err != nil {
				db.t.Fatal(err)
			}
			for _, shard := range out.StreamDescription.Shards {
				items = append(items, db.expiredOf(ctx, table, *stream.StreamArn, *shard.ShardId)...)
			}
			if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
				break
			}
		}
	}
	return items
}

// expiredOf reads a shard from the last record that was read.
func (db *DB) expiredOf(ctx context.Context, table, stream, shard string) (items []map[string]types.AttributeValue) {
	db.t.Helper()
	from := &dynamodbstreams.GetShardIteratorInput{StreamArn: &stream, ShardId: &shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon}
	if last := db.read[table][shard]; last != "" {
		from.ShardIteratorType, from.SequenceNumber = streamtypes.ShardIteratorTypeAfterSequenceNumber, &last
	}
	at, err := db.Streams().GetShardIterator(ctx, from)
	if err != nil {
		db.tooLate(table, err)
	}
	for next := at.ShardIterator; next != nil; {
		page, err := db.Streams().GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
		if err != nil {
			db.tooLate(table, err)
		}
		for _, r := range page.Records {
			if db.read[table] == nil {
				db.read[table] = map[string]string{}
			}
			db.read[table][shard] = *r.Dynamodb.SequenceNumber
			if r.UserIdentity == nil || *r.UserIdentity.PrincipalId != "dynamodb.amazonaws.com" {
				continue
			}
			item, err := attributevalue.FromDynamoDBStreamsMap(r.Dynamodb.OldImage)
			if err != nil {
				db.t.Fatal(err)
			}
			items = append(items, item)
		}
		if next = page.NextShardIterator; len(page.Records) == 0 { // of an open shard
			break
		}
	}
	return items
}

// tooLate fails the test after an error of a stream, whose records may have been trimmed.
func (db *DB) tooLate(table string, err error) {
	db.t.Helper()
	var trimmed *streamtypes.TrimmedDataAccessException
	if errors.As(err, &trimmed) {
		err = fmt.Errorf("its stream keeps records for a year, and Expired was called later: %w", err)
	}
	db.t.Fatalf("table %q: %v", table, err)
}
