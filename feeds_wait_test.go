package mayfly

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/mayflydb/mayfly/internal/store/service"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/target"
)

// again disables and enables the destination: later changes wait for those written before.
func (f feedTable) again() {
	f.t.Helper()
	f.disable()
	f.enable("")
}

// openFeeds opens a directory with a clock that stands still. The test closes it.
func openFeeds(t *testing.T, dir string, o Options) *DB {
	t.Helper()
	o.Start, o.Frozen, o.ClockControl = midnight, true, ClockControlOn
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func closeFeeds(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// unread returns the feeds that have no reader and are not finished.
func unread(t *testing.T, db *DB) (all []string) {
	t.Helper()
	feeds, err := db.service.Feeds()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range feeds {
		if !f.Finished && !db.service.HasConsumer(f.StreamARN) {
			all = append(all, f.StreamARN)
		}
	}
	return all
}

// deadBodies returns the dead letters as their IDs and bodies.
func deadBodies(t *testing.T, db *DB) map[string]string {
	t.Helper()
	out, err := db.DynamoDB().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("mayfly.deadletters")})
	if err != nil {
		return nil // there is no such table yet
	}
	all := map[string]string{}
	for _, item := range out.Items {
		id, _ := attr.AsString(item["id"])
		all[id], _ = attr.AsString(item["body"])
	}
	return all
}

// A destination that is disabled and enabled again, and fails for longer than the retention, gets
// every change in order once it works, also if the database was closed meanwhile.
func TestFeedsOutliveTheRetention(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restart), func(t *testing.T) {
			k, dir := &kinesisStream{}, t.TempDir()
			o := k.options()
			o.StreamRetention = time.Hour
			k.refuse.Store(true)
			db := openFeeds(t, dir, o)
			tb := newFeedTable(t, db, "")
			tb.enable("")
			var want []string
			for n := range 5 {
				if n > 0 {
					tb.again()
				}
				if missing := unread(t, db); len(missing) > 0 {
					t.Fatalf("no reader: %s", missing)
				}
				for step := range 3 {
					tb.put("a", 3*n+step+1)
					want = append(want, fmt.Sprintf("a MODIFY %d>%d", 3*n+step, 3*n+step+1))
				}
				advance(t, db, 10*time.Minute)
			}
			want[0] = "a INSERT >1"
			for n := range 3 {
				advance(t, db, 2*time.Hour)
				if !restart {
					continue
				}
				makeTable(t, db.DynamoDB(), fmt.Sprint("later", n)) // its instant is stored
				closeFeeds(t, db)
				db = openFeeds(t, dir, o)
				tb.db = db
			}
			tb.put("a", 16)
			k.want(t, "while it fails")
			k.refuse.Store(false)
			advance(t, db, time.Hour)
			k.want(t, "afterwards", append(want, "a MODIFY 15>16")...)
			within(t, "the end of the old feeds", func() bool {
				feeds, err := db.service.Feeds()
				return err == nil && !slices.ContainsFunc(feeds, func(f service.Feed) bool { return f.Waits })
			})
			closeFeeds(t, db)
		})
	}
}

// A destination that fails for longer than a day loses nothing: each change has had an attempt, and
// then is a dead letter with the ID of its deliveries, or arrives.
func TestFeedsBuryNothingWithoutAnAttempt(t *testing.T) {
	k, dir := &kinesisStream{}, t.TempDir()
	var mu sync.Mutex
	tried := map[string]string{} // the bodies of failed deliveries, by their IDs
	o := k.options()
	o.Targets[0].Target = target.Func(func(ctx context.Context, d target.Delivery) error {
		err := k.take(ctx, d)
		if mu.Lock(); err != nil {
			tried[d.ID] = string(d.Body)
		}
		mu.Unlock()
		return err
	})
	k.refuse.Store(true)
	db := openFeeds(t, dir, o)
	tb := newFeedTable(t, db, "")
	tb.enable("")
	// the second change waits for the first in its feed, the third in the next feed
	for n := 1; n <= 3; n++ {
		if n == 3 {
			tb.again()
		}
		tb.put("a", n)
		tb.put("b", n)
	}
	advance(t, db, 12*time.Hour)
	tb.put("late", 1)
	closeFeeds(t, db)
	db = openFeeds(t, dir, o)
	tb.db = db
	defer closeFeeds(t, db)
	advance(t, db, 14*time.Hour)
	dead := deadBodies(t, db)
	if len(dead) != 6 {
		t.Errorf("%d dead letters of 6: %v", len(dead), dead)
	}
	for id, body := range dead {
		if tried[id] != body {
			t.Errorf("the dead letter %s was never tried: %s", id, body)
		}
	}
	k.refuse.Store(false)
	tb.put("a", 4)
	advance(t, db, time.Hour)
	got := k.seen(t)
	slices.Sort(got)
	if want := []string{"a MODIFY 3>4", "late INSERT >1"}; !slices.Equal(got, want) {
		t.Errorf("the stream has %q, want %q", got, want)
	}
}

// A database that was closed for longer than a day tries each change before it gives it up.
func TestFeedsTryOldChanges(t *testing.T) {
	k, dir := &kinesisStream{}, t.TempDir()
	db := openFeeds(t, dir, Options{})
	tb := newFeedTable(t, db, "")
	closeFeeds(t, db)
	k.refuse.Store(true)
	o := k.options()
	o.StreamRetention = 100 * 24 * time.Hour
	db = openFeeds(t, dir, o)
	tb.db = db
	tb.enable("")
	tb.put("a", 1)
	tb.put("a", 2)
	closeFeeds(t, db)
	db = openFeeds(t, dir, Options{StreamRetention: o.StreamRetention})
	advance(t, db, 50*time.Hour)
	tb.db = db
	tb.put("b", 1) // its instant is stored
	closeFeeds(t, db)
	k.refuse.Store(false)
	db = openFeeds(t, dir, o)
	defer closeFeeds(t, db)
	advance(t, db, time.Minute)
	if passed := db.Clock().Now().Sub(midnight); passed < 50*time.Hour {
		t.Fatalf("only %s have passed", passed)
	}
	got := k.seen(t)
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	if want := []string{"a INSERT >1", "a MODIFY 1>2", "b INSERT >1"}; !slices.Equal(got, want) {
		t.Errorf("the stream has %q, want %q", got, want)
	}
}

// An item whose changes fail delays its own changes, and no others.
func TestFeedsPassAFailingItem(t *testing.T) {
	const others = 40
	k := &kinesisStream{}
	o := k.options()
	o.Shards = 1
	var mu sync.Mutex
	tried := map[string]bool{}
	o.Targets[0].Target = target.Func(func(ctx context.Context, d target.Delivery) error {
		if strings.Contains(d.Subject, "bad") {
			mu.Lock()
			defer mu.Unlock()
			tried[d.ID] = true
			return errors.New("not this one")
		}
		return k.take(ctx, d)
	})
	db := openAtMidnight(t, o)
	tb := newFeedTable(t, db, "")
	tb.enable("")
	tb.put("bad", 1)
	tb.put("bad", 2)
	advance(t, db, time.Hour) // its lane has begun a batch
	var want []string
	for n := 1; n <= 20; n++ {
		for i := range others {
			tb.put(fmt.Sprint("k", i), n)
		}
	}
	for i := range others {
		for n := 1; n <= 20; n++ {
			change := fmt.Sprintf("MODIFY %d>%d", n-1, n)
			if n == 1 {
				change = "INSERT >1"
			}
			want = append(want, fmt.Sprintf("k%d %s", i, change))
		}
	}
	advance(t, db, 0) // the clock stands still, and waits for the deliveries
	got := k.seen(t)
	slices.SortStableFunc(got, func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, ' ')], b[:strings.IndexByte(b, ' ')])
	})
	slices.SortStableFunc(want, func(a, b string) int {
		return strings.Compare(a[:strings.IndexByte(a, ' ')], b[:strings.IndexByte(b, ' ')])
	})
	if !slices.Equal(got, want) {
		t.Errorf("%d changes beside the failing item of %d: %q", len(got), len(want), got)
	}
	advance(t, db, 24*time.Hour)
	dead := deadBodies(t, db)
	for id := range dead {
		if !tried[id] {
			t.Errorf("the dead letter %s was never tried", id)
		}
	}
	if len(dead) != 2 {
		t.Errorf("dead letters: %v", dead)
	}
}

// While a delivery hangs, destinations can be enabled, disabled and enabled again, and each feed
// has its reader when the operation answers. No later delivery of the item begins before it ends.
func TestFeedsHaveReadersAtOnce(t *testing.T) {
	k := &kinesisStream{}
	began, let := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(let) })
	var running, together atomic.Int32
	o := k.options()
	o.Targets[0].Target = target.Func(func(ctx context.Context, d target.Delivery) error {
		if running.Add(1) > 1 {
			together.Add(1)
		}
		defer running.Add(-1)
		began <- struct{}{}
		<-let
		return k.take(ctx, d)
	})
	db := openAtMidnight(t, o)
	defer release() // before the database closes
	tb := newFeedTable(t, db, "")
	tb.enable("")
	tb.put("a", 1)
	<-began
	for n := range 3 {
		tb.again()
		if missing := unread(t, db); len(missing) > 0 {
			t.Fatalf("no reader: %s", missing)
		}
		tb.put("a", 2+n)
	}
	if _, err := db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("orders")}); err != nil {
		t.Fatal(err)
	}
	newFeedTable(t, db, "").enable("")
	if missing := unread(t, db); len(missing) > 0 {
		t.Fatalf("no reader: %s", missing)
	}
	release()
	want := []string{"a INSERT >1", "a MODIFY 1>2", "a MODIFY 2>3", "a MODIFY 3>4"}
	within(t, "the deliveries", func() bool { return len(k.seen(t)) >= len(want) })
	advance(t, db, time.Hour)
	k.want(t, "afterwards", want...)
	if n := together.Load(); n > 0 {
		t.Errorf("%d deliveries of the item began during another", n)
	}
}

// Tables with the same destination have feeds of their own: one table's changes never wait for
// another's, and a later feed of a table waits for that table's earlier one.
func TestFeedsOfTwoTables(t *testing.T) {
	k := &kinesisStream{}
	var refuse atomic.Bool
	refuse.Store(true)
	o := k.options()
	o.Targets[0].Target = target.Func(func(ctx context.Context, d target.Delivery) error {
		if refuse.Load() && strings.Contains(string(d.Body), `"tableName":"orders"`) {
			return errors.New("no orders")
		}
		return k.take(ctx, d)
	})
	db := openAtMidnight(t, o)
	a, b := newFeedTable(t, db, ""), newNamedFeedTable(t, db, "others", "")
	a.enable("")
	a.put("a", 1)
	b.enable("")
	b.put("b", 1)
	a.again() // its next feed comes behind the feed of others
	a.put("a", 2)
	within(t, "the first change of others", func() bool { return len(k.seen(t)) == 1 })
	advance(t, db, time.Minute)
	b.again()
	b.put("b", 2)
	a.again()
	a.put("a", 3)
	b.put("b", 3)
	within(t, "all changes of others", func() bool { return len(k.seen(t)) == 3 })
	advance(t, db, time.Hour)
	others := []string{"b INSERT >1", "b MODIFY 1>2", "b MODIFY 2>3"}
	k.want(t, "while orders fail", others...)
	refuse.Store(false)
	advance(t, db, time.Hour)
	k.want(t, "afterwards", append(others, "a INSERT >1", "a MODIFY 1>2", "a MODIFY 2>3")...)
}

// An advance of the clock while a destination is being enabled waits until the feed has its reader,
// and for the records written meanwhile. Without that it could pass their retention.
func TestFeedsHoldTheClock(t *testing.T) {
	k := &kinesisStream{}
	db := openAtMidnight(t, k.options())
	tb := newFeedTable(t, db, "")
	db.work.first.Lock() // the operation gets as far as the beginning of the work
	release := sync.OnceFunc(db.work.first.Unlock)
	defer release() // before the database closes
	enabled := make(chan error, 1)
	go func() { enabled <- tb.tryEnable("") }()
	over, cancel := context.WithDeadline(t.Context(), time.Time{})
	defer cancel()
	within(t, "an operation that holds the clock", func() bool {
		moved, err := db.Clock().Advance(over, 0) // returns at once
		feeds, e := db.service.Feeds()
		return errors.Join(err, e) == nil && len(feeds) == 1 && slices.Contains(moved.Busy, "consumers that are yet to register")
	})
	tb.put("a", 1)
	advanced := make(chan error, 1)
	go func() {
		moved, err := db.Clock().Advance(t.Context(), 48*time.Hour)
		if moved.Unfinished {
			err = fmt.Errorf("unfinished: %q", moved.Busy)
		}
		advanced <- err
	}()
	release()
	if err := errors.Join(<-enabled, <-advanced); err != nil {
		t.Fatal(err)
	}
	k.want(t, "after the advance", "a INSERT >1")
}

// No trigger can read a feed: a feed's ARN is an unknown stream to Lambda's API and to a
// declaration.
func TestTriggersDoNotReadFeeds(t *testing.T) {
	k, in, dir := &kinesisStream{}, new(inbox), t.TempDir()
	o := k.options()
	o.Targets = append(o.Targets, in.mapping(testFunction))
	k.refuse.Store(true)
	db := openFeeds(t, dir, o)
	tb := newFeedTable(t, db, "")
	tb.enable("")
	tb.put("a", 1)
	feeds, err := db.service.Feeds()
	if err != nil || len(feeds) != 1 {
		t.Fatalf("%v, %v", feeds, err)
	}
	feed := feeds[0].StreamARN
	unknown := strings.Replace(feed, "20", "19", 1)
	create := func(arn string) string {
		t.Helper()
		functions := lambda.New(lambda.Options{
			BaseEndpoint: aws.String("http://in.process"), Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, HTTPClient: &http.Client{Transport: db.Transport()},
		})
		_, err := functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
			EventSourceArn: &arn, FunctionName: aws.String("test"), StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
		})
		var refused *lambdatypes.InvalidParameterValueException
		if !errors.As(err, &refused) {
			t.Fatalf("a mapping of %s: %v", arn, err)
		}
		return strings.ReplaceAll(aws.ToString(refused.Message), arn, "ARN")
	}
	if got, want := create(feed), create(unknown); got != want || got != "Stream not found: ARN" {
		t.Errorf("the feed: %s; an unknown stream: %s", got, want)
	}
	closeFeeds(t, db)

	for _, arn := range []string{feed, unknown} {
		o.Triggers = append(o.Triggers, Trigger{Name: fmt.Sprint("t", len(o.Triggers)), Stream: arn, Target: "test", Start: "TRIM_HORIZON"})
	}
	db = openFeeds(t, dir, o)
	defer closeFeeds(t, db)
	advance(t, db, time.Hour)
	if got := in.all(); len(got) > 0 {
		t.Errorf("a declared trigger read the feed: %v", got)
	}
}
