package guard

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/testkit"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

func TestMain(m *testing.M) {
	flag.Parse()
	// Parallel tests mostly wait, so two cores are enough for eight at once. Under the race
	// detector, where the tests are short, all takes ten times as long, and eight at once have no
	// time left within their patience.
	if testing.Short() {
		testkit.AtOnce(1)
	} else {
		testkit.AtOnce(8)
	}
	testkit.CollectSeldom()
	goleak.VerifyTestMain(m)
}

// patience is the time limit of a test's waits.
const patience = 30 * time.Second

// epoch is the first instant of a frozen world: a whole second.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a database in which only guard removes expired items: it is in aws expiry, with a delay
// of a year. Its clock is frozen, and guards use a clock that moves with it: see advance. Its table
// "items" has the partition key pk, a string, optionally the sort key sk, a number, the TTL
// attribute ttl, and a stream of both images.
type world struct {
	*mayfly.DB
	t testing.TB
	// as guard gets it; tests may put another in its place before they start a guard
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
	local   *clock.Clock // the guards' clock; nil: the machine's, each its own
	sorted  bool         // the table has a sort key
	changes []func(*dynamodb.CreateTableInput)
	opened  []func(*mayfly.Options)
	over    bool // HTTP
	running bool // the clock is the machine's
}

const worldTable = "items"

// tableMade is when the table of a world with a frozen clock is made: so early that tests can change
// its TTL once.
var tableMade = epoch.Add(-2 * time.Hour)

// withSort adds a sort key to the table.
func withSort(w *world) { w.sorted = true }

// overHTTP puts a socket between guard and the database.
func overHTTP(w *world) { w.over = true }

// inRealTime runs the database by the machine's clock, and the guards by the endpoint's Date
// headers. It needs overHTTP.
func inRealTime(w *world) { w.running = true }

// withTable changes how the table is made.
func withTable(change func(*dynamodb.CreateTableInput)) func(*world) {
	return func(w *world) { w.changes = append(w.changes, change) }
}

// withOptions changes how the database is opened.
func withOptions(change func(*mayfly.Options)) func(*world) {
	return func(w *world) { w.opened = append(w.opened, change) }
}

// newWorld opens a world for the length of a test.
func newWorld(t testing.TB, with ...func(*world)) *world {
	t.Helper()
	w := &world{t: t}
	for _, f := range with {
		f(w)
	}
	o := mayfly.Options{Start: tableMade, Frozen: true, Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"}
	if w.running {
		o.Start, o.Frozen = time.Time{}, false
	} else {
		w.local = clock.NewFrozenAt(epoch)
	}
	for _, change := range w.opened {
		change(&o)
	}
	db, err := mayfly.Open("", o)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	w.DB, w.db, w.streams = db, db.DynamoDB(), db.Streams()
	if w.over {
		w.dial()
	}
	w.createTable(worldTable)
	if !w.running {
		_, err := db.Clock().Set(t.Context(), epoch)
		must(t, err)
	}
	return w
}

// dial sets the world's clients to HTTP.
func (w *world) dial() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, listener) }()
	w.t.Cleanup(func() {
		cancel()
		must(w.t, <-served)
	})
	url := "http://" + listener.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	w.t.Cleanup(transport.CloseIdleConnections)
	config := aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport},
	}
	w.db, w.streams = dynamodb.NewFromConfig(config), dynamodbstreams.NewFromConfig(config)
}

func (w *world) createTable(name string) {
	w.t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	if w.sorted {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("sk"), AttributeType: "N"})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("sk"), KeyType: "RANGE"})
	}
	for _, change := range w.changes {
		change(in)
	}
	_, err := w.DynamoDB().CreateTable(context.Background(), in)
	must(w.t, err)
	_, err = w.DynamoDB().UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
	})
	must(w.t, err)
}

// through is a transport of a client.
type through func(*http.Request) (*http.Response, error)

func (f through) Do(r *http.Request) (*http.Response, error) { return f(r) }

// via sends the requests of the world's client through f, which may send them on, once or more, or
// respond itself.
func (w *world) via(f func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error)) {
	w.db = dynamodb.New(w.db.Options(), func(o *dynamodb.Options) {
		to := o.HTTPClient
		o.HTTPClient = through(func(r *http.Request) (*http.Response, error) { return f(r, to.Do) })
	})
}

// answer lets f change every answer.
func (w *world) answer(f func(*http.Response)) {
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		answer, err := send(r)
		if err == nil {
			f(answer)
		}
		return answer, err
	})
}

// operation returns the operation of a request, for example "DeleteItem".
func operation(r *http.Request) string {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return name
}

// fault is an answer that refuses a request.
func fault(r *http.Request, status int, code string) *http.Response {
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"by the test"}`, code)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// now is the database's clock.
func (w *world) now() time.Time { return w.Clock().Now() }

// in returns a TTL so many seconds from now.
func (w *world) in(seconds int64) string { return strconv.FormatInt(w.now().Unix()+seconds, 10) }

// advance moves a frozen world's clock: the database's first, so that guards are never ahead of it.
func (w *world) advance(by time.Duration) {
	w.t.Helper()
	_, err := w.Clock().Advance(context.Background(), by)
	must(w.t, err)
	must(w.t, w.local.Advance(by))
}

// key returns a key's attributes: "name", or "name/number" with a sort key.
func (w *world) key(name string) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: name}}
	if w.sorted {
		pk, sk, _ := strings.Cut(name, "/")
		item["pk"] = &types.AttributeValueMemberS{Value: pk}
		item["sk"] = &types.AttributeValueMemberN{Value: sk}
	}
	return item
}

// put writes an item with a deadline in epoch seconds, which may have a fraction; "" for none.
func (w *world) put(name, ttl string, more ...map[string]types.AttributeValue) {
	w.t.Helper()
	item := w.key(name)
	if ttl != "" {
		item["ttl"] = &types.AttributeValueMemberN{Value: ttl}
	}
	for _, m := range more {
		maps.Copy(item, m)
	}
	_, err := w.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(worldTable), Item: item})
	must(w.t, err)
}

// fill writes n items prefix0 to prefix<n-1> with one deadline, by batches. There is no sort key.
func (w *world) fill(prefix string, n int, ttl string) {
	w.t.Helper()
	for from := 0; from < n; from += 25 {
		var writes []types.WriteRequest
		for i := from; i < min(n, from+25); i++ {
			item := w.key(fmt.Sprint(prefix, i))
			item["ttl"] = &types.AttributeValueMemberN{Value: ttl}
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		_, err := w.DynamoDB().BatchWriteItem(context.Background(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{worldTable: writes}})
		must(w.t, err)
	}
}

// renew changes an item's deadline.
func (w *world) renew(name, ttl string) {
	w.t.Helper()
	_, err := w.DynamoDB().UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: aws.String(worldTable), Key: w.key(name), UpdateExpression: aws.String("SET #ttl = :ttl"), ExpressionAttributeNames: map[string]string{"#ttl": "ttl"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":ttl": &types.AttributeValueMemberN{Value: ttl}},
	})
	must(w.t, err)
}

// remove deletes an item as a user would.
func (w *world) remove(name string) {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: aws.String(worldTable), Key: w.key(name)})
	must(w.t, err)
}

// get returns an item, or nil.
func (w *world) get(name string) map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.DynamoDB().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(worldTable), Key: w.key(name), ConsistentRead: aws.Bool(true)})
	must(w.t, err)
	return out.Item
}

// has reports whether an item is there.
func (w *world) has(name string) bool {
	w.t.Helper()
	return w.get(name) != nil
}

// count is how many items there are.
func (w *world) count() (n int) {
	w.t.Helper()
	pages := dynamodb.NewScanPaginator(w.DynamoDB(), &dynamodb.ScanInput{TableName: aws.String(worldTable), ConsistentRead: aws.Bool(true), Select: types.SelectCount})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		must(w.t, err)
		n += int(page.Count)
	}
	return n
}

// options returns options for a guard of the world's table; tests change them.
func (w *world) options(s Strategy) Options {
	return Options{
		DB: w.db, Streams: w.streams, Table: worldTable, Attribute: "ttl", Strategy: s, Alone: true, clock: w.local, LocalClock: w.local != nil, AcceptOverdue: -1,
		Logger: slog.New(slog.NewTextHandler(writerTo{w.t}, nil)),
	}
}

// guarding is a guard that runs.
type guarding struct {
	*Guard
	t    testing.TB
	stop func() error // ends it, and returns Run's error; the test's end calls it, too
	over chan struct{}
	err  error // of Run, once over is closed
}

// start runs a guard until stop is called, or the test ends. Run must have returned nil then,
// unless the test has called stop for the error.
func (w *world) start(o Options) *guarding {
	w.t.Helper()
	g, err := New(o)
	must(w.t, err)
	return w.run(g, g.Run)
}

// startWith runs a guard with a strategy of the test's.
func (w *world) startWith(o Options, s func(*Guard) runner) *guarding {
	w.t.Helper()
	g, err := New(o)
	must(w.t, err)
	return w.run(g, func(ctx context.Context) error {
		if err := g.prepare(ctx); err != nil {
			return err
		}
		return g.work(ctx, s(g))
	})
}

// run runs f, by default g.Run.
func (w *world) run(g *Guard, f func(context.Context) error) *guarding {
	if f == nil {
		f = g.Run
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &guarding{Guard: g, t: w.t, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.err = f(ctx)
	}()
	asked := false
	r.stop = func() error {
		asked = true
		cancel()
		<-r.over
		return r.err
	}
	w.t.Cleanup(func() {
		if was := asked; r.stop() != nil && !was {
			w.t.Errorf("guard ended with %v", r.err)
		}
	})
	return r
}

// await waits until a condition holds, which must be able to while guard runs.
func (r *guarding) await(what string, holds func() bool) {
	r.t.Helper()
	await(r.t, what, func() bool {
		select {
		case <-r.over:
			if !holds() {
				r.t.Fatalf("guard ended (%v) before %s", r.err, what)
			}
		default:
		}
		return holds()
	})
}

// awaitCount waits for a number of events of a kind.
func (r *guarding) awaitCount(what What, n int64) {
	r.t.Helper()
	r.await(fmt.Sprintf("%d events of kind %d", n, what), func() bool { return r.Stats().Counts[what] >= n })
}

// idle is a strategy that finds nothing: tests arm by themselves, once ready is closed.
type idle struct{ ready chan struct{} }

func (s *idle) Run(ctx context.Context) error {
	close(s.ready)
	<-ctx.Done()
	return nil
}

// startIdle runs a guard without strategy, and returns when one can arm.
func (w *world) startIdle(o Options) *guarding {
	w.t.Helper()
	s := &idle{make(chan struct{})}
	r := w.startWith(o, func(*Guard) runner { return s })
	select {
	case <-s.ready:
	case <-r.over:
		w.t.Fatalf("guard ended with %v", r.err)
	}
	return r
}

// entry is the entry of an item as it is now.
func (r *guarding) entry(w *world, name string) armed.Entry {
	r.t.Helper()
	e, ok := r.env().EntryOf(w.get(name))
	if !ok {
		r.t.Fatalf("%s has no deadline", name)
	}
	return e
}

// recorder keeps events.
type recorder struct {
	mu  sync.Mutex
	all []Event // guarded by mu
}

func (r *recorder) observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, e)
}

func (r *recorder) of(what What) (some []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.all {
		if e.What == what {
			some = append(some, e)
		}
	}
	return some
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until a condition holds. It checks with growing pauses: in virtual time only the
// checks take any time.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	pause := time.Millisecond
	for limit := time.Now().Add(patience); !holds(); time.Sleep(pause) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain until %s", what)
		}
		pause = min(pause+pause/4, 25*time.Millisecond)
	}
}

// writerTo writes to the test's log.
type writerTo struct{ t testing.TB }

func (w writerTo) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
