package lifecycle_test

import (
	"context"
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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an expected event.
const patience = 60 * time.Second

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a database with a frozen clock. Its lifecycles run, with a handler, "note", that records
// its calls.
type world struct {
	*mayfly.DB
	*lifecycle.Lifecycles
	t    testing.TB
	stop func()
	mu   struct {
		sync.Mutex
		calls   []lifecycle.Call
		changes []lifecycle.Change
		answer  func(lifecycle.Call) error
	}
}

func open(t testing.TB, dir string) *mayfly.DB {
	t.Helper()
	db, err := mayfly.Open(dir, mayfly.Options{Start: begin, Frozen: true, ClockControl: mayfly.ClockControlOn})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// newWorld returns a running world in memory.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{DB: open(t, ""), t: t}
	w.run(w.options())
	return w
}

func (w *world) options() lifecycle.Options {
	return lifecycle.Options{
		DB: w.DynamoDB(), Streams: w.Streams(), Now: w.Clock().Now, Registry: w.Registry(), Alone: true, Logger: testkit.Logger(w.t),
		Handlers: map[string]lifecycle.Handler{"note": w.note},
		Observe: func(c lifecycle.Change) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mu.changes = append(w.mu.changes, c)
		},
	}
}

// through returns options whose calls use a transport.
func (w *world) through(transport http.RoundTripper) lifecycle.Options {
	o := w.options()
	client := &http.Client{Transport: transport}
	o.DB = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://mayfly"), HTTPClient: client, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
	})
	o.Streams = dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://mayfly"), HTTPClient: client, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
	})
	return o
}

// gate holds one call of an operation until it is opened. Without an operation it holds none.
type gate struct {
	http.RoundTripper
	operation string
	reached   chan struct{} // closed when the call arrives
	opened    chan struct{}
	once      sync.Once
	skip      int64 // calls that pass first
	calls     atomic.Int64
}

// gate returns lifecycles that do not run. The gate holds their first call of an operation.
func (w *world) gate(operation string) (*lifecycle.Lifecycles, *gate) {
	w.t.Helper()
	g := w.newGate(operation)
	o := w.through(g)
	o.Streams = nil
	l, err := lifecycle.New(o)
	must(w.t, err)
	return l, g
}

func (w *world) newGate(operation string) *gate {
	return &gate{RoundTripper: w.Transport(), operation: operation, reached: make(chan struct{}), opened: make(chan struct{})}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+g.operation) && g.calls.Add(1) > g.skip {
		g.once.Do(func() {
			close(g.reached)
			<-g.opened
		})
	}
	return g.RoundTripper.RoundTrip(r)
}

// wait waits until the call arrives.
func (g *gate) wait(t testing.TB) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(patience):
		t.Fatal("the call that is to be held does not come")
	}
}

func (g *gate) open() { close(g.opened) }

// run runs lifecycles until stop is called or the test ends.
func (w *world) run(o lifecycle.Options) {
	w.t.Helper()
	l, err := lifecycle.New(o)
	must(w.t, err)
	w.Lifecycles = l
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
	select {
	case <-l.Ready():
	case <-time.After(patience):
		w.t.Fatal("the lifecycles do not get ready")
	}
}

func (w *world) note(_ context.Context, c lifecycle.Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.calls = append(w.mu.calls, c)
	if w.mu.answer != nil {
		return w.mu.answer(c)
	}
	return nil
}

// calls returns the calls of the handler: "from→to@since the start".
func (w *world) calls() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.mu.calls {
		all = append(all, fmt.Sprintf("%s %s→%s@%s", c.Entity, c.From, c.To, c.Due.Sub(begin)))
	}
	slices.Sort(all)
	return all
}

func (w *world) apply(yaml string) {
	w.t.Helper()
	_, err := w.Apply(context.Background(), read(w.t, yaml), lifecycle.ApplyOptions{})
	must(w.t, err)
}

func read(t testing.TB, yaml string) lifecycle.Definition {
	t.Helper()
	d, err := lifecycle.Read(strings.NewReader(yaml), nil)
	must(t, err)
	return *d
}

func (w *world) create(lc, id string, attributes ...any) {
	w.t.Helper()
	_, err := w.Create(context.Background(), lc, id, attrs(attributes...))
	must(w.t, err)
}

// attrs returns attributes from alternating names and values.
func attrs(pairs ...any) lifecycle.Item {
	it := lifecycle.Item{}
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case int, int64, float64:
			it[pairs[i].(string)] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		case bool:
			it[pairs[i].(string)] = &types.AttributeValueMemberBOOL{Value: v}
		case nil:
			it[pairs[i].(string)] = nil
		default:
			it[pairs[i].(string)] = &types.AttributeValueMemberS{Value: fmt.Sprint(v)}
		}
	}
	return it
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	moved, err := w.Clock().Advance(context.Background(), d)
	must(w.t, err)
	if moved.Unfinished {
		w.t.Fatalf("the clock did not get there: %v", moved.Busy)
	}
}

// events returns an entity's events as text: "transition egg→larva@96h0m0s".
func (w *world) events(lc, id string) (all []string) {
	w.t.Helper()
	events, err := w.History(context.Background(), lc, id)
	must(w.t, err)
	for _, e := range events {
		at := e.At
		if !e.Due.IsZero() {
			at = e.Due
		}
		all = append(all, fmt.Sprintf("%s %s→%s@%s", e.Kind, e.From, e.To, at.Sub(begin)))
	}
	return all
}

func (w *world) want(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// state returns an entity's state and its next transition: "egg, larva@96h0m0s".
func (w *world) state(lc, id string) string {
	w.t.Helper()
	e, err := w.Get(context.Background(), lc, id)
	must(w.t, err)
	text := e.State
	if e.NextTo != "" {
		text += ", " + e.NextTo + "@" + e.Next.Sub(begin).String()
	}
	if !e.Paused.IsZero() {
		text += " (paused)"
	}
	if e.Ended != "" {
		text += " (" + e.Ended + ")"
	}
	return text
}

// parts counts the items of an entity's table by kind.
func (w *world) parts(lc string) map[string]int {
	w.t.Helper()
	n := map[string]int{}
	table := lifecycle.EntityTable(lc)
	pages := dynamodb.NewScanPaginator(w.DynamoDB(), &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		must(w.t, err)
		for _, it := range page.Items {
			kind, _, _ := strings.Cut(it["part"].(*types.AttributeValueMemberS).Value, "#")
			n[kind]++
		}
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until a condition holds.
func await(t testing.TB, event string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited without success until %s", event)
		}
	}
}
