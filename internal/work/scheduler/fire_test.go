package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/timer"
	"github.com/mayflydb/mayfly/target"
)

const defaultTable = "mayfly.schedules.default"

// epoch formats an instant for a request.
func epoch(t time.Time) string { return attr.SecondsText(t) }

// Schedules of each kind fire at their occurrences, and at no other time.
func TestFire(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("once", "at(2030-01-01T00:00:05)")
	w.create("often", "rate(1 minute)")
	w.create("daily", "cron(2 0 * * ? *)")
	w.create("exact", "instant(2030-01-01T00:00:07.250)")
	w.create("fine", "every(20 seconds)", `"EndDate":1893456041`)
	w.advance(0)
	w.want("fine@01-01T00:00:00 often@01-01T00:00:00")
	w.advance(4999 * time.Millisecond)
	w.want("")
	w.advance(time.Millisecond)
	w.want("once@01-01T00:00:05")
	w.advance(115 * time.Second)
	w.want("exact@01-01T00:00:07.25 fine@01-01T00:00:20 fine@01-01T00:00:40 often@01-01T00:01:00 daily@01-01T00:02:00 often@01-01T00:02:00")
	if got := w.count(Fired, "default"); got != 9 {
		t.Errorf("%d were observed", got)
	}
}

// Nothing fires before StartDate, and nothing after EndDate; a one-time schedule ignores both.
func TestDates(t *testing.T) {
	w := newWorld(t, "", nil)
	until := func(s string) string { return `"EndDate":` + epoch(begin.Add(duration(t, s))) }
	from := func(s string) string { return `"StartDate":` + epoch(begin.Add(duration(t, s))) }
	w.create("rate-ahead", "rate(1 hour)", from("90m"), until("3h30m"))
	w.create("rate-just", "rate(1 hour)", from("-4m"), until("1h"))
	w.create("rate-behind", "rate(1 minute)", from("-4m30s"), until("1m"))
	w.create("cron-ahead", "cron(0 * * * ? *)", from("1h"), until("2h"))
	w.create("cron-just", "cron(30 * * * ? *)", from("-1m"), until("31m"))
	w.create("none", "cron(0 12 * * ? *)", until("1h"))
	w.create("over", "rate(1 minute)", until("-1s"))
	w.create("once", "at(2030-01-01T00:10:00)", from("1h"), until("2h"))
	w.advance(5 * time.Hour)
	w.want("rate-just@12-31T23:56:00 rate-behind@12-31T23:59:30 rate-behind@01-01T00:00:30 once@01-01T00:10:00 cron-just@01-01T00:30:00 rate-just@01-01T00:56:00 " +
		"cron-ahead@01-01T01:00:00 rate-ahead@01-01T01:30:00 cron-ahead@01-01T02:00:00 rate-ahead@01-01T02:30:00 rate-ahead@01-01T03:30:00")
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Wall times follow the clocks of their zone: a skipped time does not fire, a repeated time fires
// once, and a rate counts elapsed time.
func TestClocksMoved(t *testing.T) {
	w := newWorld(t, "", nil)
	w.advanceTo(time.Date(2030, 3, 29, 12, 0, 0, 0, time.UTC))
	berlin := `"ScheduleExpressionTimezone":"Europe/Berlin"`
	w.create("in-gap", "cron(30 2 * * ? *)", berlin)
	w.create("daily", "rate(1 day)", berlin)
	w.create("noon", "cron(0 12 * * ? *)", berlin)
	w.advanceTo(time.Date(2030, 4, 1, 12, 0, 0, 0, time.UTC))
	w.want("daily@03-29T12:00:00 in-gap@03-30T01:30:00 noon@03-30T11:00:00 daily@03-30T12:00:00 noon@03-31T10:00:00 daily@03-31T12:00:00 " +
		"in-gap@04-01T00:30:00 noon@04-01T10:00:00 daily@04-01T12:00:00")
	w.must("DELETE", "/schedules/daily", "")
	w.must("DELETE", "/schedules/noon", "")
	w.advanceTo(time.Date(2030, 10, 26, 12, 0, 0, 0, time.UTC))
	w.taken()
	w.advanceTo(time.Date(2030, 10, 28, 12, 0, 0, 0, time.UTC))
	w.want("in-gap@10-27T00:30:00 in-gap@10-28T01:30:00")
}

// In a flexible window the deadline of each firing is fixed. Deadlines are spread over the window,
// and no occurrence is left out although windows overlap.
func TestFlexibleWindow(t *testing.T) {
	w := newWorld(t, "", nil)
	const n = 200
	w.create("s", "rate(1 minute)", `"FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":10}`, `"EndDate":`+epoch(begin.Add((n-1)*time.Minute)))
	e, err := w.entry(t.Context(), defaultTable, "s")
	if err != nil {
		t.Fatal(err)
	}
	_, tm, err := w.readDocument(e.document, e.input)
	if err != nil {
		t.Fatal(err)
	}
	var buckets [10]int
	due := time.Time{}
	w.answerWith(func(d target.Delivery) error {
		// Deliveries are in the order of the occurrences: a firing waits for the deadline of the
		// one before.
		number := int64(d.Time.Sub(begin)/time.Minute) + 1
		late := tm.deadline(d.Time, e.incarnation, number)
		if late.Before(d.Time) || !late.Before(d.Time.Add(10*time.Minute)) {
			t.Errorf("occurrence %d is due %v after it", number, late.Sub(d.Time))
		}
		buckets[late.Sub(d.Time)/time.Minute]++
		if late.After(due) {
			due = late
		}
		if now := w.Scheduler.now(); !now.Equal(due) {
			t.Errorf("occurrence %d came at %v, and not %v", number, now, due)
		}
		return nil
	})
	w.advance(n*time.Minute + 10*time.Minute)
	if got := len(w.taken()); got != n {
		t.Errorf("%d firings, want %d", got, n)
	}
	for minute, got := range buckets {
		if got < n/30 || got > n/3 {
			t.Errorf("%d of %d in minute %d", got, n, minute)
		}
	}
}

// A disabled schedule does not fire. When it is enabled, it fires from then on; a past one-time
// schedule fires at once.
func TestDisabled(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("rate", "rate(1 hour)", `"State":"DISABLED"`)
	w.create("cron", "cron(0 * * * ? *)")
	w.create("once", "at(2030-01-01T00:10:00)", `"State":"DISABLED"`)
	w.must("PUT", "/schedules/cron", body("cron(0 * * * ? *)", `"State":"DISABLED"`))
	if got := w.items(defaultTable); got != "cron definition, once definition, rate definition" {
		t.Errorf("the table has %s", got)
	}
	w.advance(3*time.Hour + 30*time.Minute)
	w.want("")
	w.must("PUT", "/schedules/rate", body("rate(1 hour)"))
	w.must("PUT", "/schedules/cron", body("cron(0 * * * ? *)"))
	w.must("PUT", "/schedules/once", body("at(2030-01-01T00:10:00)"))
	w.advance(0)
	w.want("once@01-01T00:10:00")
	w.advance(time.Hour)
	w.want("cron@01-01T04:00:00 rate@01-01T04:00:00")
}

// A one-time schedule in the past fires at once, even after decades. After its firing an update
// makes it fire again only if it changes the time, or enables the schedule.
func TestPast(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("long", "at(1971-01-01T00:00:00)")
	w.create("skip", "at(2029-12-31T00:00:00)")
	w.must("POST", "/schedules/skipping", body("at(2029-12-31T00:00:00)"), "X-Mayfly-Catch-Up", "skip")
	w.advance(0)
	w.want("long@01-01T00:00:00 skip@12-31T00:00:00 skipping@12-31T00:00:00")
	w.must("PUT", "/schedules/long", body("at(1971-01-01T00:00:00)", `"Description":"again"`))
	w.must("PUT", "/schedules/long", body("at(1971-01-01T00:00:00)", `"Description":"and again"`))
	w.advance(time.Hour)
	w.want("")
	w.must("PUT", "/schedules/long", body("at(1971-01-01T00:00:01)"))
	w.advance(0)
	w.want("long@01-01T00:00:01")
	w.must("PUT", "/schedules/long", body("at(1971-01-01T00:00:01)", `"State":"DISABLED"`))
	w.must("PUT", "/schedules/long", body("at(1971-01-01T00:00:01)"))
	w.advance(0)
	w.want("long@01-01T00:00:01")
}

// An update replaces the armed firing. A rate keeps its pace unless the update changes it.
func TestUpdate(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("s", "rate(1 hour)", targetJSON(lambdaARN, `"Input":"1"`))
	w.advance(30 * time.Minute)
	w.must("PUT", "/schedules/s", body("rate(1 hour)", targetJSON(lambdaARN, `"Input":"2"`)))
	w.advance(time.Hour)
	for i, d := range w.taken() {
		if want := []string{"1", "2"}[i]; string(d.Body) != want {
			t.Errorf("firing %d brings %s", i, d.Body)
		}
	}
	w.must("PUT", "/schedules/s", body("rate(20 minutes)"))
	w.advance(40 * time.Minute)
	w.want("s@01-01T01:30:00 s@01-01T01:50:00 s@01-01T02:10:00")
	w.must("PUT", "/schedules/s", body("at(2030-01-01T06:00:00)"))
	w.must("PUT", "/schedules/s", body("at(2030-01-01T05:00:00)"))
	w.advance(12 * time.Hour)
	w.want("s@01-01T05:00:00")
}

// If a firing comes at the instant of an update, it fires unchanged, and nothing fires twice.
func TestUpdateAtTheInstant(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("s", "cron(0 * * * ? *)", targetJSON(lambdaARN, `"Input":"1"`))
	w.engine.Clock().Freeze()
	w.advance(time.Hour - time.Millisecond)
	// without waiting for consumers
	if err := w.engine.Clock().Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	w.must("PUT", "/schedules/s", body("cron(0 * * * ? *)", targetJSON(lambdaARN, `"Input":"2"`)))
	w.advance(time.Hour)
	var got []string
	for _, d := range w.taken() {
		got = append(got, d.Time.Format("15:04 ")+string(d.Body))
	}
	if s := fmt.Sprint(got); s != "[01:00 1 02:00 2]" {
		t.Errorf("delivered %s", s)
	}
}

// An update is computed again if a firing has changed the definition since it was read. No firing
// is lost or repeated, and a disabled schedule has none.
func TestUpdateOverrun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		state  string
		before func(*world) // runs before the update reads
		after  func(*world) // runs between its read and its write
	}{
		{"it expires", stateEnabled, func(*world) {}, func(w *world) { w.advance(time.Minute) }},
		{"it expires, to be disabled", stateDisabled, func(*world) {}, func(w *world) { w.advance(time.Minute) }},
		{"the next one is armed", stateEnabled, func(w *world) { w.advance(time.Minute) }, func(w *world) { w.armAfter(w.firings(defaultTable)[0]) }},
		{"the next one is armed, to be disabled", stateDisabled, func(w *world) { w.advance(time.Minute) }, func(w *world) { w.armAfter(w.firings(defaultTable)[0]) }},
	} {
		w := newWorld(t, "", nil)
		w.create("s", "cron(* * * * ? *)")
		w.halt()
		tt.before(w)
		read, err := w.entry(t.Context(), defaultTable, "s")
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := w.readDocument(read.document, read.input)
		if err != nil {
			t.Fatal(err)
		}
		d.State = new(tt.state)
		expression, err := w.expressions.parse(*d.ScheduleExpression, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		now := w.Scheduler.now()
		after, f, err := w.updated(read, &checked{group: "default", expression: expression, settings: &d.Settings}, now)
		if err != nil {
			t.Fatal(err)
		}
		tt.after(w)
		before := w.items(defaultTable)
		if err := w.apply(t.Context(), &change{table: defaultTable, before: read, after: after, firing: f, now: now}); !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := w.items(defaultTable); got != before {
			t.Errorf("%s: the table has %s, and had %s", tt.name, got, before)
		}
	}
}

// Where items expire some time after their deadline, an update waits until a due firing has
// expired, so a single caller never gets a conflict. If the firing does not expire, the update is a
// conflict.
func TestUpdateWaitsForExpiry(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("s", "cron(* * * * ? *)")
	w.halt()
	w.advance(time.Minute)
	f := w.firings(defaultTable)[0]
	it := f.item()
	delete(it, attrDue) // it never expires
	if _, err := w.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(defaultTable), Item: it}); err != nil {
		t.Fatal(err)
	}
	w.refused("ConflictException: Schedule s is changed or fires at this moment. Try again.", "PUT", "/schedules/s", body("rate(1 hour)"))
	updated := make(chan error)
	calls := w.calls.Load()
	go func() {
		_, err := w.call("PUT", "/schedules/s", body("rate(1 hour)"))
		updated <- err
	}()
	w.await("some tries", func() bool { return w.calls.Load() > calls+18 })
	if _, err := w.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(defaultTable), Key: key("s", partFiring)}); err != nil {
		t.Fatal(err)
	}
	if err := <-updated; err != nil {
		t.Error(err)
	}
}

// expired returns the expiries in the stream of a table.
func (w *world) expired(table string) (all []timer.Firing) {
	w.Helper()
	ctx := context.Background()
	d, err := w.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		w.Fatal(err)
	}
	stream, err := w.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: d.Table.LatestStreamArn})
	if err != nil {
		w.Fatal(err)
	}
	if n := len(stream.StreamDescription.Shards); n != 1 {
		w.Fatalf("the stream has %d shards", n)
	}
	it, err := w.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: d.Table.LatestStreamArn, ShardId: stream.StreamDescription.Shards[0].ShardId, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		w.Fatal(err)
	}
	for iterator := it.ShardIterator; ; {
		out, err := w.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			w.Fatal(err)
		}
		if len(out.Records) == 0 {
			return all
		}
		for _, r := range out.Records {
			if !consume.Expired(&r, attrDue, "") {
				continue
			}
			it, err := attributevalue.FromDynamoDBStreamsMap(r.Dynamodb.OldImage)
			if err != nil {
				w.Fatal(err)
			}
			all = append(all, timer.Firing{Item: it})
		}
		iterator = out.NextShardIterator
	}
}

// Repeated records repeat deliveries with the same IDs, and arm nothing.
func TestRedelivery(t *testing.T) {
	w := newWorld(t, "", nil)
	w.must("POST", "/schedules/rate", body("rate(1 minute)"), headerCatchUp, "all")
	w.must("POST", "/schedules/cron", body("cron(* * * * ? *)"), headerCatchUp, "all")
	w.create("once", "at(2030-01-01T00:02:00)", `"ActionAfterCompletion":"DELETE"`)
	w.advance(3 * time.Minute)
	before := w.items(defaultTable)
	ids := map[string]int{}
	for _, d := range w.taken() {
		ids[d.ID]++
	}
	if len(ids) != 8 {
		t.Fatalf("%d firings", len(ids))
	}
	for range 2 {
		if err := w.fire(t.Context(), groupPlace("default"), w.expired(defaultTable)); err != nil {
			t.Fatal(err)
		}
		w.await("the deliveries", func() bool {
			w.got.Lock()
			defer w.got.Unlock()
			return len(w.got.all) == 8
		})
		for _, d := range w.taken() {
			ids[d.ID]++
		}
	}
	if len(ids) != 8 {
		t.Errorf("they came with %d ids", len(ids))
	}
	if after := w.items(defaultTable); after != before {
		t.Errorf("the table has %s, and had %s", after, before)
	}
	w.advance(time.Minute)
	w.want("cron@01-01T00:04:00 rate@01-01T00:04:00")
}

// firings returns the expired firings in order.
func (w *world) firings(table string) (all []*firing) {
	for _, e := range w.expired(table) {
		if f := w.firingOf(e.Item, groupPlace("default")); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// armAfter arms the firing after f.
func (w *world) armAfter(f *firing) {
	w.Helper()
	o, err := w.outcome(groupPlace("default"), f, w.Scheduler.now())
	if err == nil {
		err = w.arm(w.Context(), []*outcome{o, {place: o.place, firing: &firing{edition: edition{name: "other"}}}})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// Each firing arms the next one once, however often it comes, also while the next one has expired
// and the one after it is not armed. It arms nothing after an update, a deletion, or a new schedule
// of that name.
func TestArmsOnce(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("s", "cron(* * * * ? *)")
	w.halt()
	const none, armed = "s definition", "s definition, s firing"
	items := func(want string) {
		t.Helper()
		if got := w.items(defaultTable); got != want {
			t.Errorf("the table has %s, want %s", got, want)
		}
	}
	w.advance(time.Minute)
	items(none)
	first := w.firings(defaultTable)[0]
	w.armAfter(first)
	items(armed)
	w.armAfter(first)
	w.advance(time.Minute)
	items(none)
	w.armAfter(first) // the second has expired, and the third is not armed yet
	items(none)
	second := w.firings(defaultTable)[1]
	w.armAfter(second)
	w.armAfter(second)
	w.armAfter(first)
	items(armed)
	w.advance(time.Minute)
	third := w.firings(defaultTable)
	if len(third) != 3 || third[2].number != 3 {
		t.Fatalf("%d firings, the last is %+v", len(third), third[len(third)-1])
	}
	w.must("PUT", "/schedules/s", body("at(2031-01-01T00:00:00)"))
	if _, err := w.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(defaultTable), Key: key("s", partFiring)}); err != nil {
		t.Fatal(err)
	}
	w.armAfter(third[2])
	items(none)
	w.must("DELETE", "/schedules/s", "")
	w.armAfter(third[2])
	items("")
	w.create("s", "at(2031-01-01T00:00:00)", `"State":"DISABLED"`)
	w.armAfter(third[2])
	items(none)
}

// A firing that a user deletes does not fire; nor does a deleted schedule.
func TestDeletedFiring(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("s", "at(2030-01-01T00:01:00)")
	w.create("t", "rate(1 minute)")
	if _, err := w.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(defaultTable), Key: key("s", partFiring)}); err != nil {
		t.Fatal(err)
	}
	w.must("DELETE", "/schedules/t", "")
	w.advance(time.Hour)
	w.want("t@01-01T00:00:00") // it was due before the deletion
	w.must("GET", "/schedules/s", "")
	w.must("PUT", "/schedules/s", body("at(2030-01-01T02:00:00)"))
	w.must("DELETE", "/schedules/s", "")
	if got := w.items(defaultTable); got != "" {
		t.Errorf("the table has %s", got)
	}

	w.create("s", "at(2030-01-01T04:00:00)")
	if _, err := w.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(defaultTable), Key: key("s", partFiring)}); err != nil {
		t.Fatal(err)
	}
	w.must("PUT", "/schedules/s", body("at(2030-01-01T05:00:00)")) // an update arms it again
	w.advance(6 * time.Hour)
	w.want("s@01-01T05:00:00")
}

// A delivery has the input or a notification, and all that identifies its firing.
func TestDelivery(t *testing.T) {
	w := newWorld(t, "", func(w *world) { w.backoff = deliver.Backoff{First: time.Minute} })
	all := `{\"arn\":\"<aws.scheduler.schedule-arn>\",\"time\":\"\\u003caws.scheduler.scheduled-time\\u003e\",\"id\":\"<aws.scheduler.execution-id>\",\"n\":\"<aws.scheduler.attempt-number>\",\"x\":\"<aws.scheduler.unknown>\"}`
	w.create("input", "at(2030-01-01T00:00:01)", targetJSON(lambdaARN, `"Input":"`+all+`"`, `"RetryPolicy":{"MaximumRetryAttempts":2}`))
	w.create("text", "instant(2030-01-01T00:00:02.5)", targetJSON(queueARN, `"Input":"at <aws.scheduler.scheduled-time>"`))
	w.create("none", "at(2030-01-01T00:00:03)", targetJSON(queueARN+".fifo", `"SqsParameters":{"MessageGroupId":"g"}`))
	w.create("stream", "at(2030-01-01T00:00:04)", targetJSON("arn:aws:kinesis:us-east-1:123456789012:stream/s", `"KinesisParameters":{"PartitionKey":"p"}`))
	w.answerWith(func(d target.Delivery) error {
		if d.Attempt < 3 && d.Subject == "input" {
			return fmt.Errorf("attempt %d fails", d.Attempt)
		}
		return nil
	})
	w.advance(10 * time.Minute)
	all3 := w.taken()
	if len(all3) != 6 {
		t.Fatalf("%d deliveries", len(all3))
	}
	byName := map[string][]target.Delivery{}
	for _, d := range all3 {
		byName[d.Subject] = append(byName[d.Subject], d)
	}
	for i, d := range byName["input"] {
		want := fmt.Sprintf(`{"arn":"%sdefault/input","time":"2030-01-01T00:00:01Z","id":"%s","n":"%d","x":"<aws.scheduler.unknown>"}`, scheduleARN, d.ID[:16], i+1)
		if string(d.Body) != want || d.Attempt != i+1 || d.ID != byName["input"][0].ID || d.ContentType != "application/json" {
			t.Errorf("attempt %d, %s\n got %s\nwant %s", d.Attempt, d.ContentType, d.Body, want)
		}
	}
	if d := byName["text"][0]; string(d.Body) != "at 2030-01-01T00:00:02.5Z" || d.ContentType != "text/plain" || d.TargetARN != queueARN {
		t.Errorf("%s %s to %s", d.ContentType, d.Body, d.TargetARN)
	}
	d := byName["none"][0]
	want := `{"version":"0","id":"` + uuid(d.ID) + `","detail-type":"Scheduled Event","source":"aws.scheduler","account":"123456789012","time":"2030-01-01T00:00:03Z",` +
		`"region":"us-east-1","resources":["` + scheduleARN + `default/none"],"detail":"{}"}`
	if string(d.Body) != want {
		t.Errorf("by default\n got %s\nwant %s", d.Body, want)
	}
	if d.Source != scheduleARN+"default/none" || d.Type != "Scheduled Event" || d.Key != "g" || string(d.Parameters) != `{"SqsParameters":{"MessageGroupId":"g"}}` ||
		!d.Time.Equal(begin.Add(3*time.Second)) || len(d.ID) != 32 {
		t.Errorf("%+v", d)
	}
	if d := byName["stream"][0]; d.Key != "p" || string(d.Parameters) != `{"KinesisParameters":{"PartitionKey":"p"}}` {
		t.Errorf("%+v", d)
	}
}

// With ActionAfterCompletion a schedule is deleted after its last delivery has succeeded or failed
// for good, not before. A schedule that was updated since stays.
func TestActionAfterCompletion(t *testing.T) {
	w := newWorld(t, "", func(w *world) { w.backoff = deliver.Backoff{First: time.Minute} })
	once, after := `"RetryPolicy":{"MaximumRetryAttempts":0}`, `"ActionAfterCompletion":"DELETE"`
	w.create("stays", "at(2030-01-01T00:01:00)")
	w.create("goes", "at(2030-01-01T00:01:00)", after)
	w.create("fails", "at(2030-01-01T00:01:00)", after, targetJSON(lambdaARN, once, `"DeadLetterConfig":{"Arn":"`+queueARN+`"}`))
	w.create("later", "at(2030-01-01T00:01:00)", after)
	w.create("kept", "at(2030-01-01T00:01:00)", after)
	w.create("recurs", "rate(1 minute)", after, `"EndDate":`+epoch(begin.Add(2*time.Minute)))
	w.create("forever", "rate(1 hour)", after)
	// it fires once, and stays until its EndDate
	w.create("lasts", "cron(1 0 * * ? *)", after, `"EndDate":`+epoch(begin.Add(30*time.Minute)))
	w.create("never", "cron(0 12 * * ? *)", after, `"EndDate":`+epoch(begin.Add(time.Hour)))
	ok := false
	w.answerWith(func(d target.Delivery) error {
		switch {
		case d.Subject == "fails":
			return target.Permanent("Gone", "it is gone")
		case (d.Subject == "later" || d.Subject == "kept") && !ok:
			return fmt.Errorf("not yet")
		}
		return nil
	})
	definitions := func(want string) {
		t.Helper()
		var got []string
		for it := range strings.SplitSeq(w.items(defaultTable), ", ") {
			if name, found := strings.CutSuffix(it, " "+partDefinition); found {
				got = append(got, name)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("there are\n     %s\nwant %s", s, want)
		}
	}
	w.advance(time.Minute)
	definitions("forever kept lasts later never recurs stays")
	w.got.Lock()
	ok = true
	w.got.Unlock()
	w.must("PUT", "/schedules/kept", body("at(2031-01-01T00:00:00)", after))
	w.advance(20 * time.Minute)
	definitions("forever kept lasts never stays")
	w.advance(time.Hour)
	definitions("forever kept stays")
	if got := w.count(Completed, "default"); got != 5 {
		t.Errorf("%d completions were observed", got)
	}
}

// After its firing, an update that asks for deletion after completion deletes a one-time schedule,
// unless it makes it fire again. The last delivery continues.
func TestDeletedAfterwards(t *testing.T) {
	w := newWorld(t, "", func(w *world) { w.backoff = deliver.Backoff{First: time.Minute} })
	after := `"ActionAfterCompletion":"DELETE"`
	for _, name := range []string{"done", "failing", "again", "disabled"} {
		w.create(name, "at(2030-01-01T00:01:00)")
	}
	w.answerWith(func(d target.Delivery) error {
		if d.Subject == "failing" && d.Attempt == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	w.advance(time.Minute)
	w.taken()
	w.must("PUT", "/schedules/done", body("at(2030-01-01T00:01:00)", after))
	w.must("PUT", "/schedules/failing", body("at(2030-01-01T00:01:00)", after))
	w.must("PUT", "/schedules/again", body("at(2030-01-01T00:02:00)", after))
	w.must("PUT", "/schedules/disabled", body("at(2030-01-01T00:01:00)", after, `"State":"DISABLED"`))
	w.refused("ResourceNotFoundException: Schedule done does not exist.", "GET", "/schedules/done", "")
	if got, want := w.items(defaultTable), "again definition, again firing, disabled definition"; got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
	w.advance(time.Hour)
	w.want("failing@01-01T00:01:00 again@01-01T00:02:00")
	if got := w.items(defaultTable); got != "disabled definition" {
		t.Errorf("the table has %s", got)
	}
}

// The catch-up of a schedule, or else of its group, decides about occurrences missed in a downtime.
func TestCatchUp(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.must("POST", "/schedule-groups/every", `{"Tags":[{"Key":"mayfly:catch-up","Value":"all"}]}`)
	for _, s := range [][3]string{
		{"last", "", "default"}, {"all", "all", "default"}, {"skip", "skip", "default"}, {"group", "", "every"}, {"own", "skip", "every"},
	} {
		w.must("POST", "/schedules/"+s[0], body("rate(10 minutes)", `"GroupName":"`+s[2]+`"`), "X-Mayfly-Catch-Up", s[1])
	}
	w.create("once", "at(2030-01-01T00:15:00)")
	w.must("POST", "/schedules/once-skip", body("at(2030-01-01T00:15:00)", `"ActionAfterCompletion":"DELETE"`), "X-Mayfly-Catch-Up", "skip")
	w.advance(time.Minute)
	w.taken()

	w.restart(34 * time.Minute) // until 00:35; it missed 10, 20 and 30 minutes
	w.want("all@01-01T00:10:00 group@01-01T00:10:00 once@01-01T00:15:00 all@01-01T00:20:00 group@01-01T00:20:00 all@01-01T00:30:00 group@01-01T00:30:00 last@01-01T00:30:00")
	w.advance(5 * time.Minute)
	w.want("all@01-01T00:40:00 group@01-01T00:40:00 last@01-01T00:40:00 own@01-01T00:40:00 skip@01-01T00:40:00")
	w.refused("ResourceNotFoundException: Schedule once-skip does not exist.", "GET", "/schedules/once-skip", "")

	w.restart(10*time.Minute + 59*time.Second) // 59 s late is not missed
	w.want("all@01-01T00:50:00 group@01-01T00:50:00 last@01-01T00:50:00 own@01-01T00:50:00 skip@01-01T00:50:00")
	if w.count(Skipped, "default") != 3 || w.count(Skipped, "every") != 1 {
		t.Errorf("%v", w.events.counts)
	}
}

// Options.CatchUp holds for rules, and for schedules if neither they nor their group have a
// catch-up.
func TestCatchUpOption(t *testing.T) {
	w := newWorld(t, t.TempDir(), func(w *world) { w.options.CatchUp = CatchUpSkip })
	w.must("POST", "/schedule-groups/every", `{"Tags":[{"Key":"mayfly:catch-up","Value":"all"}]}`)
	w.create("default", "rate(10 minutes)")
	w.create("group", "rate(10 minutes)", `"GroupName":"every"`)
	w.must("POST", "/schedules/own", body("rate(10 minutes)"), "X-Mayfly-Catch-Up", "last")
	w.mustAct("PutRule", `{"Name":"rule","ScheduleExpression":"rate(10 minutes)"}`)
	w.mustAct("PutTargets", `{"Rule":"rule","Targets":[{"Id":"1","Arn":"`+lambdaARN+`"}]}`)
	w.advance(11 * time.Minute)
	w.taken()
	w.restart(24 * time.Minute) // until 00:35
	w.advance(0)
	w.want("group@01-01T00:20:00 group@01-01T00:30:00 own@01-01T00:30:00")
}

// No schedule and no firing is lost in restarts, and each firing has one ID.
func TestRestarts(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	for i := range 20 {
		w.must("POST", fmt.Sprintf("/schedules/s%02d", i), body(fmt.Sprintf("rate(%d minutes)", 1+i%7)), "X-Mayfly-Catch-Up", "all")
	}
	ids := map[string]string{}
	for i := range 12 {
		w.advance(time.Duration(i) * 37 * time.Second)
		w.restart(time.Duration(i%3) * time.Minute)
		for _, d := range w.taken() {
			at := d.Subject + " " + d.Time.Format(time.RFC3339)
			if ids[at] != "" && ids[at] != d.ID {
				t.Errorf("%s has two ids", at)
			}
			ids[at] = d.ID
		}
	}
	elapsed := w.Scheduler.now().Sub(begin)
	want := 0
	for i := range 20 {
		n := int(elapsed/(time.Duration(1+i%7)*time.Minute)) + 1
		want += n
		for k := range n {
			if at := fmt.Sprintf("s%02d %s", i, begin.Add(time.Duration(k*(1+i%7))*time.Minute).Format(time.RFC3339)); ids[at] == "" {
				t.Errorf("%s was not delivered", at)
			}
		}
	}
	if len(ids) != want {
		t.Errorf("%d firings, want %d", len(ids), want)
	}
}
