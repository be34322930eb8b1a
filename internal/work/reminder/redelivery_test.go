package reminder_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"pgregory.net/rapid"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/reminder"
)

// Repeated records change nothing, in whatever order they come: the pending reminders follow from
// the latest record of each item.
func TestRedelivery(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		w.table("visits")
		want := map[string]time.Duration{}
		for i := range rapid.IntRange(1, 12).Draw(r, "writes") {
			k := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "key")
			switch after := time.Duration(rapid.IntRange(1, 3).Draw(r, "after")) * time.Hour; rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				w.delete("visits", k)
				delete(want, k)
			case 1:
				w.put("visits", k, "mail", i)
				delete(want, k)
			default:
				w.put("visits", k, "when", at(after), "mail", i)
				want[k] = after
			}
		}
		m := w.reminders(rule(nil))
		records, stream := w.records("visits")
		if len(records) == 0 {
			return
		}
		order := rapid.Permutation(records).Draw(r, "order")
		// Every record comes, some twice, in any order.
		for _, record := range append(order, rapid.SliceOfN(rapid.SampledFrom(records), 0, 5).Draw(r, "again")...) {
			must(t, reminder.Follow(t.Context(), m, "visit", stream, consume.Record{Record: record}))
		}
		got := map[string]time.Duration{}
		must(t, reminder.Each(t.Context(), w.DynamoDB(), "visit", func(p reminder.Reminder) error {
			got[p.Key[len(`{"k":{"S":"`):len(p.Key)-len(`"}}`)]] = p.Due.Sub(start)
			return nil
		}))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			r.Fatalf("pending are %v, want %v", got, want)
		}
	})
}

// A scan that is under way at a loss of records cannot store that it is complete.
func TestScanAtLoss(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.put("visits", "a", "when", at(time.Hour))
	m := w.reminders(rule(nil))
	records, stream := w.records("visits")
	must(t, reminder.Follow(t.Context(), m, "visit", stream, consume.Record{Record: records[0]}))
	must(t, reminder.Scan(t.Context(), m, "visit", stream))
	must(t, reminder.ScanAgain(t.Context(), m, "visit", stream))
	var refused *types.ConditionalCheckFailedException
	if err := reminder.Scan(t.Context(), m, "visit", stream); !errors.As(err, &refused) {
		t.Errorf("a scan that began before the loss: %v", err)
	}
}

// A loss of records is stored until the scan for it is complete, so another worker makes it if this
// one ends before.
func TestLossIsKeptUntilScanned(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	stop := w.run(rule(nil))
	w.put("visits", "a", "when", at(100*time.Hour), "mail", "a")
	w.pending("a@100h0m0s")
	stop()
	w.put("visits", "lost", "when", at(100*time.Hour), "mail", "lost")
	w.advance(50 * time.Hour)
	var scans atomic.Int64
	o := w.DynamoDB().Options()
	next := o.HTTPClient.Do
	o.HTTPClient = testkit.Refusals{Next: next, Code: func(operation string, body []byte) string {
		if operation == "Scan" && bytes.Contains(body, []byte(`"visits"`)) {
			scans.Add(1)
			return "InternalServerError"
		}
		return ""
	}}
	m := w.remindersOf(dynamodb.New(o), rule(nil))
	stop = w.background(m.Run)
	await(t, "the scan fails more than once", func() bool { return scans.Load() > 2 })
	stop()
	if w.losses() != 1 {
		t.Errorf("%d losses are stored after the worker has ended in its scan", w.losses())
	}
	w.run(rule(nil))
	w.pending("a@100h0m0s", "lost@100h0m0s")
	await(t, "the loss is forgotten", func() bool { return w.losses() == 0 })
}

// losses returns the number of consumers with a stored loss of records.
func (w *world) losses() int {
	w.t.Helper()
	out, err := w.DynamoDB().Scan(w.t.Context(), &dynamodb.ScanInput{TableName: aws.String(lease.TableName)})
	must(w.t, err)
	n := 0
	for _, row := range out.Items {
		if attr.String(row["shard"]) == "lost" {
			n++
		}
	}
	return n
}

// Scan and stream both find an item, and each writes its reminder before the other one has left its
// mark. The target receives one delivery.
func TestFoundTwice(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	fires := rule(func(s *reminder.Spec) { s.Past = "fire" })
	m := w.reminders(fires)
	w.put("visits", "a", "when", at(-time.Hour), "mail", "a")
	records, stream := w.records("visits")
	must(t, reminder.Follow(t.Context(), m, "visit", stream, consume.Record{Record: records[0]}))
	must(t, reminder.Scan(t.Context(), m, "visit", stream))
	w.run(fires)
	w.got("a at 2029-12-31T23:00:00.000Z") // deliveries of two items have no order
	w.put("visits", "b", "when", at(-time.Hour), "mail", "b")
	w.got("a at 2029-12-31T23:00:00.000Z", "b at 2029-12-31T23:00:00.000Z")
}

// records returns the records of a table's stream.
func (w *world) records(table string) (all []streamtypes.Record, stream string) {
	w.t.Helper()
	list, err := w.Streams().ListStreams(w.t.Context(), &dynamodbstreams.ListStreamsInput{TableName: &table})
	must(w.t, err)
	stream = *list.Streams[0].StreamArn
	d, err := w.Streams().DescribeStream(w.t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &stream})
	must(w.t, err)
	for _, shard := range d.StreamDescription.Shards {
		it, err := w.Streams().GetShardIterator(w.t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &stream, ShardId: shard.ShardId, ShardIteratorType: "TRIM_HORIZON"})
		must(w.t, err)
		out, err := w.Streams().GetRecords(w.t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(1000)})
		must(w.t, err)
		all = append(all, out.Records...)
	}
	return all, stream
}
