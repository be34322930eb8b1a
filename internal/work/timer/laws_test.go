package timer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	table    = "timers"
	patience = 30 * time.Second // of a test that waits
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a database with a frozen clock, and the timers that have fired.
type world struct {
	*mayfly.DB
	t       *testing.T
	dir     string
	options timer.Options
	mu      struct {
		sync.Mutex
		fired []string
		fails int // Fire returns this many errors
	}
}

func newWorld(t *testing.T, dir string) *world {
	w := &world{t: t, dir: dir}
	w.open()
	w.advance(start.Sub(w.Clock().Now()))
	return w
}

func (w *world) open() {
	w.t.Helper()
	db, err := mayfly.Open(w.dir, mayfly.Options{Start: start.Add(-time.Minute), Frozen: true, ClockControl: mayfly.ClockControlOn, Shards: 1})
	w.must(err)
	w.t.Cleanup(func() { _ = db.Close() })
	w.DB = db
	w.options = timer.Options{
		Name: "timers", Table: ensure.Spec{Name: table, Key: "id", TTL: "due", Stream: true, Shards: 1},
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Leases: lease.Options{Exclusive: true},
		Logger: testkit.Logger(w.t), Fire: w.fire,
	}
}

func (w *world) fire(_ context.Context, firings []timer.Firing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.fails > 0 {
		w.mu.fails--
		return errors.New("the target is down")
	}
	for _, f := range firings {
		w.mu.fired = append(w.mu.fired, attr.String(f.Item["id"]))
		f.Done()
	}
	return nil
}

// run runs timers until stop is called, at the latest at the end of the test. It returns when they
// are ready.
func (w *world) run() (timers *timer.Timers, stop func()) {
	w.t.Helper()
	timers, stop = w.begin()
	select {
	case <-timers.Ready():
	case <-time.After(patience):
		w.t.Fatal("the timers do not become ready")
	}
	return timers, stop
}

// begin is run, but does not wait.
func (w *world) begin() (timers *timer.Timers, stop func()) {
	timers = timer.New(w.options)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- timers.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return timers, stop
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	_, err := w.Clock().Advance(context.Background(), d)
	w.must(err)
}

// arm writes a timer that is due after a span from the start.
func (w *world) arm(id string, after time.Duration) {
	w.t.Helper()
	_, err := w.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: attr.Item{"id": attr.S(id), "due": attr.Seconds(start.Add(after))},
	})
	w.must(err)
}

func (w *world) cancel(id string) {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: attr.Item{"id": attr.S(id)}})
	w.must(err)
}

func (w *world) disableStream() {
	w.t.Helper()
	_, err := w.DynamoDB().UpdateTable(context.Background(), &dynamodb.UpdateTableInput{
		TableName: aws.String(table), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
	})
	w.must(err)
}

// stream returns the ARN of the table's stream, or "".
func (w *world) stream() string {
	out, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if ensure.Missing(err) {
		return ""
	}
	w.must(err)
	if s := out.Table.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) {
		return ""
	}
	return aws.ToString(out.Table.LatestStreamArn)
}

// want waits until exactly these timers have fired, in any order.
func (w *world) want(ids ...string) {
	w.t.Helper()
	fired := func() []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Sorted(slices.Values(w.mu.fired))
	}
	w.await(fmt.Sprintf("%d timers fire", len(ids)), func() bool { return len(fired()) >= len(ids) })
	if got := fired(); !slices.Equal(got, ids) {
		w.t.Fatalf("fired: %q, want %q", got, ids)
	}
}

func (w *world) await(condition string, holds func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("waited without success until %s", condition)
		}
	}
}

// Timers fire that expired while the process was down, and those that failed before fire again, in
// the same process and after a restart of the database.
func TestAtLeastOnce(t *testing.T) {
	w := newWorld(t, t.TempDir())
	_, stop := w.run()
	w.arm("a", time.Minute)
	w.arm("b", 2*time.Minute)
	w.arm("c", 3*time.Minute)
	w.mu.fails = 2
	w.advance(time.Minute)
	w.want("a")
	stop()
	w.advance(time.Minute)
	w.must(w.Close())
	w.open()
	_, stop = w.run()
	w.want("a", "b")
	w.mu.Lock()
	w.mu.fails = 1 << 30
	w.mu.Unlock()
	w.advance(time.Minute)
	stop()
	w.mu.fails = 0
	w.run()
	w.want("a", "b", "c")
}

// A timer that is moved fires once, at its new deadline; a timer that is cancelled does not fire.
func TestOnlyExpiries(t *testing.T) {
	w := newWorld(t, "")
	w.run()
	w.arm("moved", time.Minute)
	w.arm("moved", time.Hour)
	w.arm("cancelled", time.Minute)
	w.cancel("cancelled")
	w.arm("fires", time.Minute)
	w.advance(time.Minute)
	w.want("fires")
	w.advance(time.Hour)
	w.want("fires", "moved")
}

// After somebody disables the stream or deletes the table, new timers fire.
func TestRestored(t *testing.T) {
	w := newWorld(t, "")
	w.run()
	w.arm("a", time.Minute)
	w.advance(time.Minute)
	w.want("a")
	before := w.stream()
	w.disableStream()
	w.await("there is another stream", func() bool { return w.stream() != "" && w.stream() != before })
	w.arm("b", 2*time.Minute)
	w.advance(time.Minute)
	w.want("a", "b")
	before = w.stream()
	_, err := w.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
	w.must(err)
	w.await("there is another table", func() bool { return w.stream() != "" && w.stream() != before })
	w.arm("c", 3*time.Minute)
	w.advance(time.Minute)
	w.want("a", "b", "c")
}

// A timer that expires while its table has no stream fires after a search, before the timers in the
// new stream. A search that fails is repeated.
func TestSearched(t *testing.T) {
	w := newWorld(t, "")
	failures := 2
	w.options.Search = func(_ context.Context, before time.Time) error {
		if failures > 0 {
			failures--
			return errors.New("not now")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.fired = append(w.mu.fired, "searched "+before.Sub(start).String())
		return nil
	}
	_, stop := w.run()
	w.arm("a", time.Minute)
	w.advance(time.Minute)
	w.want("a")
	stop()
	w.disableStream()
	w.arm("lost", 2*time.Minute)
	w.advance(time.Hour)
	w.run()
	w.want("a", "searched 1h1m0s")
	w.arm("b", 2*time.Hour)
	w.advance(time.Hour)
	w.want("a", "b", "searched 1h1m0s")
}

// A table that is not wanted is not created. If it becomes unwanted, Run ends with its stream.
func TestUnwanted(t *testing.T) {
	w := newWorld(t, "")
	wanted := false
	w.options.Wanted = func(context.Context) (bool, error) { return wanted, nil }
	w.must(timer.New(w.options).Run(t.Context()))
	if w.stream() != "" {
		t.Error("the table exists")
	}
	wanted = true
	_, stop := w.run()
	stop()
	wanted = false
	_, err := w.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(table)})
	w.must(err)
	w.must(timer.New(w.options).Run(t.Context()))
	if w.stream() != "" {
		t.Error("the table exists again")
	}
}

// Make creates the table of timers on demand, and they fire from then on. A process that finds the
// table also reads it.
func TestOnDemand(t *testing.T) {
	w := newWorld(t, "")
	w.options.OnDemand = true
	timers, stop := w.begin()
	time.Sleep(50 * time.Millisecond)
	select {
	case <-timers.Ready():
		t.Error("the timers are ready without a table")
	default:
	}
	if w.stream() != "" {
		t.Error("the table exists before Make")
	}
	w.must(timers.Make(t.Context()))
	w.arm("a", time.Minute)
	w.advance(time.Minute)
	w.want("a")
	stop()
	w.arm("b", 2*time.Minute)
	w.advance(time.Minute)
	w.begin()
	w.want("a", "b")
}

// The timers are not ready before the embedded database knows of their consumer, and Make waits for
// that.
func TestRegistered(t *testing.T) {
	w := newWorld(t, "")
	registered := ""
	hold := make(chan struct{})
	w.options.Registry = holding(func(consumer, streamARN string) {
		<-hold
		registered = consumer + " " + streamARN
	})
	timers, _ := w.begin()
	select {
	case <-timers.Ready():
		t.Error("the timers are ready before they have registered")
	case <-time.After(50 * time.Millisecond):
	}
	close(hold)
	w.must(timers.Make(t.Context()))
	if !strings.HasPrefix(registered, "timers arn:aws:dynamodb:") || registered != "timers "+w.stream() {
		t.Errorf("registered: %q", registered)
	}
}

// Restore creates the stream of its own table only.
func TestRestore(t *testing.T) {
	w := newWorld(t, "")
	timers, stop := w.run()
	stop()
	w.disableStream()
	arn, err := timers.Restore(t.Context(), "other")
	if err != nil || arn != "" || w.stream() != "" {
		t.Errorf("another table: %q, %v; stream %q", arn, err, w.stream())
	}
	arn, err = timers.Restore(t.Context(), table)
	if err != nil || arn == "" || arn != w.stream() {
		t.Errorf("got %q, %v; want %q", arn, err, w.stream())
	}
}

// A write that is fenced by a state succeeds in that state only.
func TestFenced(t *testing.T) {
	w := newWorld(t, "")
	w.run()
	state := timer.Fence{"incarnation": attr.S("i"), "generation": attr.Int(7)}
	for name, c := range map[string]struct {
		item attr.Item
		want bool
	}{
		"same":              {attr.Item{"incarnation": attr.S("i"), "generation": attr.Int(7)}, true},
		"later":             {attr.Item{"incarnation": attr.S("i"), "generation": attr.Int(8)}, false},
		"other incarnation": {attr.Item{"incarnation": attr.S("j"), "generation": attr.Int(7)}, false},
		"half":              {attr.Item{"incarnation": attr.S("i")}, false},
		"empty":             {attr.Item{}, false},
	} {
		c.item["id"] = attr.S(name)
		_, err := w.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: c.item})
		w.must(err)
		text, names, values := state.Condition()
		_, err = w.DynamoDB().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String(table), Key: attr.Item{"id": attr.S(name)},
			ConditionExpression: &text, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		var failed *types.ConditionalCheckFailedException
		if (err == nil) != c.want || err != nil && !errors.As(err, &failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
