package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/middleware"

	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/internal/store/service"
	"github.com/mayflydb/mayfly/internal/work/api"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

// world is an embedded database with a scheduler, and a target that records its deliveries. Its
// clock is frozen. advance moves it, and returns when all that was due is done.
type world struct {
	testing.TB
	*Scheduler
	dir      string
	options  Options
	backoff  deliver.Backoff
	downtime time.Duration // before the scheduler starts
	// file system of the directory; its power is cut before stop. nil: the machine's
	disk    *kv.CrashFS
	engine  *engine.Engine
	service *service.Service
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
	courier *deliver.Courier
	calls   atomic.Int64 // of the endpoint
	log     *bytes.Buffer
	logs    sync.Mutex
	stop    func() // stops everything
	halt    func() // stops scheduler and courier, so that expired items stay unprocessed
	events  struct {
		sync.Mutex
		counts map[string]int // by what and group
	}
	got struct {
		sync.Mutex
		all    []target.Delivery
		answer func(target.Delivery) error // nil: success
	}
}

// begin is the first instant of a world.
var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// overTransport calls the endpoint as the SDK does, and counts the calls.
type overTransport struct {
	http.RoundTripper
	calls *atomic.Int64
}

func (c overTransport) Do(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.RoundTrip(r)
}

// dropNetworking makes the clients as lean as the embedded database's.
func dropNetworking(stack *middleware.Stack) error {
	for _, id := range []string{"ClientRequestID", "UserAgent", "RecursionDetection", "SetCredentialSourceMiddleware"} {
		_, _ = stack.Build.Remove(id)
	}
	for _, id := range []string{"DisableAcceptEncodingGzip", "spanRetryLoop", "Retry", "RetryMetricsHeader", "ResolveAuthScheme", "GetIdentity", "ResolveEndpointV2",
		"disableHTTPS", "DiscoverEndpoint", "ComputePayloadHash", "setLegacyContextSigningOptions", "Signing"} {
		_, _ = stack.Finalize.Remove(id)
	}
	return nil
}

// newWorld opens a world in memory, or in a directory.
func newWorld(t testing.TB, dir string, change func(*world)) *world {
	t.Helper()
	w := &world{TB: t, dir: dir, log: &bytes.Buffer{}}
	w.events.counts = map[string]int{}
	if change != nil {
		change(w)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// Write appends to the log.
func (w *world) Write(p []byte) (int, error) {
	w.logs.Lock()
	defer w.logs.Unlock()
	return w.log.Write(p)
}

func (w *world) start() {
	w.Helper()
	durability := kv.Sync
	if w.dir == "" {
		durability = kv.Memory
	}
	logger := slog.New(slog.NewTextHandler(w, nil))
	store, err := engine.Open(engine.Options{
		Dir: w.dir, FS: w.fs(), Durability: durability, CacheBytes: 8 << 20, Start: begin, Frozen: true, ClockControl: true, StreamShards: 4, ShardBytes: 64 << 20,
		StreamRetention: 24 * time.Hour, HoldBytes: 1 << 30, Logger: logger, OnReap: func(engine.Reap) {},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.engine = store
	engineStop, engineCancel := context.WithCancel(context.Background())
	engineRan := make(chan error, 1)
	go func() { engineRan <- store.Run(engineStop) }()
	w.advance(w.downtime)
	registered := store.HoldAll()
	services := service.New(service.Options{Engine: store, Region: "us-east-1", Account: "123456789012", Elapsed: func() time.Duration { return 0 }})
	w.service = services
	server := wire.New(wire.Options{Service: services, Now: time.Now, Logger: logger})
	over := overTransport{wire.Transport{Server: server}, &w.calls}
	w.db = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", HTTPClient: over, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{}, DisableValidateResponseChecksum: true,
		APIOptions: []func(*middleware.Stack) error{dropNetworking},
	})
	w.streams = dynamodbstreams.New(dynamodbstreams.Options{Region: "us-east-1", HTTPClient: over, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{}})
	now := func() time.Time { return store.Now().Time() }
	registry := consume.Registry{Register: func(consumer, arn string) consume.Progress {
		c, err := services.Hold(consumer, arn)
		if err != nil {
			panic(fmt.Sprint("a consumer cannot register: ", err))
		}
		return progress{c}
	}}
	w.courier = deliver.NewCourier(deliver.Options{
		DB: w.db, Streams: w.streams, Now: now, Leases: lease.Options{Exclusive: true}, Registry: registry, Logger: logger, Backoff: w.backoff,
		Resolver: deliver.ResolverFunc(w.resolve),
	})
	o := w.options
	o.DB, o.Streams, o.Now, o.Region, o.Account = w.db, w.streams, now, "us-east-1", "123456789012"
	o.Courier, o.Leases, o.Registry, o.Logger = w.courier, lease.Options{Exclusive: true}, registry, logger
	o.Observe = func(e Event) {
		w.events.Lock()
		defer w.events.Unlock()
		w.events.counts[e.What.String()+" "+e.Group]++
	}
	w.Scheduler = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	run := func(name string, f func(context.Context) error) {
		work.Go(func() {
			if err := f(ctx); err != nil {
				w.Errorf("%s: %v", name, err)
			}
		})
	}
	run("dispatcher", w.courier.Run)
	run("scheduler", w.Scheduler.Run)
	select {
	case <-w.Scheduler.Ready():
	case <-time.After(20 * time.Second):
		w.Fatalf("the scheduler does not get ready:\n%s", w.log)
	}
	registered()
	w.halt = sync.OnceFunc(func() {
		cancel()
		work.Wait()
	})
	w.stop = sync.OnceFunc(func() {
		w.halt()
		engineCancel()
		if err := errors.Join(<-engineRan, store.Close()); err != nil && !errors.Is(err, kv.ErrCut) {
			w.Error(err)
		}
	})
}

func (w *world) fs() kv.FS {
	if w.disk == nil {
		return nil
	}
	return w.disk
}

// restart closes the world and opens it again, after a time in which only the database ran.
func (w *world) restart(downtime time.Duration) {
	w.Helper()
	w.stop()
	w.downtime = downtime
	w.start()
	w.advance(0)
}

// progress adapts the service's consumer.
type progress struct{ *service.Consumer }

func (p progress) Checkpoint(shard, sequence string) { _ = p.Consumer.Checkpoint(shard, sequence) }
func (p progress) Passed(shard, sequence string)     { _ = p.Consumer.Passed(shard, sequence) }
func (p progress) Taken(shard, sequence string)      { _ = p.Consumer.Taken(shard, sequence) }

func (w *world) resolve(arn string) (deliver.Lane, error) {
	if strings.Contains(arn, ":aws-sdk:dynamodb:") {
		return deliver.Lane{Name: "dynamodb", Target: DynamoTarget(w.db)}, nil
	}
	return deliver.Lane{Name: arn, Target: target.Func(w.take), Limits: target.Limits{Concurrency: 1}}, nil
}

// answerWith sets the answer to later deliveries. A schedule with a rate delivers once it is created,
// perhaps at this moment.
func (w *world) answerWith(answer func(target.Delivery) error) {
	w.got.Lock()
	defer w.got.Unlock()
	w.got.answer = answer
}

// take records a delivery.
func (w *world) take(_ context.Context, d target.Delivery) error {
	w.got.Lock()
	defer w.got.Unlock()
	w.got.all = append(w.got.all, d)
	if w.got.answer != nil {
		return w.got.answer(d)
	}
	return nil
}

// advance moves the clock.
func (w *world) advance(span time.Duration) {
	w.Helper()
	r, err := w.engine.Advance(context.Background(), span, 2*time.Minute)
	if err != nil || r.Unfinished {
		w.logs.Lock()
		defer w.logs.Unlock()
		w.Fatalf("advance by %v: unfinished %v, %v\n%s", span, r.Unfinished, err, w.log)
	}
}

// advanceTo moves the clock to an instant.
func (w *world) advanceTo(t time.Time) {
	w.Helper()
	w.advance(t.Sub(w.Scheduler.now()))
}

// taken returns the new deliveries.
func (w *world) taken() []target.Delivery {
	w.got.Lock()
	defer w.got.Unlock()
	all := w.got.all
	w.got.all = nil
	return all
}

// delivered returns the new deliveries as "subject@time", sorted by time and subject.
func (w *world) delivered() string {
	var all []string
	taken := w.taken()
	slices.SortStableFunc(taken, func(a, b target.Delivery) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Subject, b.Subject)
	})
	for _, d := range taken {
		all = append(all, d.Subject+"@"+d.Time.UTC().Format("01-02T15:04:05.999"))
	}
	return strings.Join(all, " ")
}

// want checks the new deliveries.
func (w *world) want(want string) {
	w.Helper()
	if got := w.delivered(); got != want {
		w.Errorf("delivered\n got %s\nwant %s", got, want)
	}
}

// count returns the number of events of a type.
func (w *world) count(event What, group string) int {
	w.events.Lock()
	defer w.events.Unlock()
	return w.events.counts[event.String()+" "+group]
}

const (
	roleARN   = "arn:aws:iam::123456789012:role/scheduler"
	lambdaARN = "arn:aws:lambda:us-east-1:123456789012:function:f"
	queueARN  = "arn:aws:sqs:us-east-1:123456789012:q"
)

// call makes a request of an operation as over the wire: method, path with its query, body.
func (w *world) call(method, path, body string, header ...string) (any, error) {
	u, err := url.Parse(path)
	if err != nil {
		w.Fatal(err)
	}
	r := &api.Request{Path: map[string]string{}, Query: u.Query(), Header: func(name string) string {
		for i := 0; i < len(header); i += 2 {
			if header[i] == name {
				return header[i+1]
			}
		}
		return ""
	}, Decode: func(into any) error {
		if body == "" {
			return nil
		}
		return json.Unmarshal([]byte(body), into)
	}}
	for _, op := range w.Operations() {
		prefix, label, _ := strings.Cut(op.Path, "{")
		more, found := strings.CutPrefix(u.Path, prefix)
		if op.Method != method || !found || (label == "") != (more == "") {
			continue
		}
		if label != "" {
			r.Path[strings.TrimSuffix(label, "}")] = more
		}
		return op.Do(context.Background(), r)
	}
	w.Fatalf("no operation %s %s", method, path)
	return nil, nil
}

// must calls an operation that must succeed, and returns its result as JSON.
func (w *world) must(method, path, body string, header ...string) string {
	w.Helper()
	out, err := w.call(method, path, body, header...)
	if err != nil {
		w.Fatalf("%s %s %s: %v", method, path, body, err)
	}
	return marshalled(w, out)
}

// refused calls an operation that must fail.
func (w *world) refused(want, method, path, body string, header ...string) {
	w.Helper()
	out, err := w.call(method, path, body, header...)
	wantError(w, err, want)
	if err == nil {
		w.Logf("answer: %v", out)
	}
}

func wantError(t testing.TB, err error, want string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Error() != want {
		t.Errorf("error\n got %v\nwant %s", err, want)
	}
}

func marshalled(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// action calls an operation on rules.
func (w *world) action(name, body string) (any, error) {
	for _, a := range w.Actions() {
		if a.Name == name {
			return a.Do(context.Background(), &api.Request{Decode: func(into any) error { return json.Unmarshal([]byte(body), into) }})
		}
	}
	w.Fatalf("no action %s", name)
	return nil, nil
}

// mustAct calls an action that must succeed, and returns its result as JSON.
func (w *world) mustAct(name, body string) string {
	w.Helper()
	out, err := w.action(name, body)
	if err != nil {
		w.Fatalf("%s %s: %v", name, body, err)
	}
	return marshalled(w, out)
}

// body returns the body of a schedule with an expression and further members.
func body(expression string, members ...string) string {
	more := ""
	hasWindow := false
	for _, m := range members {
		more += "," + m
		hasWindow = hasWindow || strings.HasPrefix(m, `"FlexibleTimeWindow"`)
	}
	if !hasWindow {
		more += `,"FlexibleTimeWindow":{"Mode":"OFF"}`
	}
	if !strings.Contains(more, `"Target"`) {
		more += `,"Target":{"Arn":"` + lambdaARN + `","RoleArn":"` + roleARN + `"}`
	}
	return `{"ScheduleExpression":"` + expression + `"` + more + `}`
}

// create creates a schedule.
func (w *world) create(name, expression string, members ...string) {
	w.Helper()
	w.must("POST", "/schedules/"+name, body(expression, members...))
}

// items returns the items of a table, as "name part".
func (w *world) items(table string) string {
	w.Helper()
	out, err := w.db.Scan(context.Background(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, it := range out.Items {
		r := reader{from: it}
		all = append(all, r.text(attrName)+" "+r.text(attrPart))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
