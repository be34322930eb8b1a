package trigger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sink/aws/lambdatest"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

func TestMain(m *testing.M) {
	lambdatest.Main(handlers)
	goleak.VerifyTestMain(m)
}

// patience bounds a test's wait for an event.
const patience = 30 * time.Second

// world is a database with a courier and running triggers.
type world struct {
	*mayfly.DB
	t        testing.TB
	courier  *deliver.Courier
	triggers *trigger.Triggers
	options  trigger.Options
	mu       struct {
		sync.Mutex
		targets map[string]deliver.Lane
		rests   time.Time // the instant that the trigger rests until
	}
}

// progress stores the rest of a trigger.
type progress struct{ w *world }

func (progress) Checkpoint(string, string) {}
func (progress) Passed(string, string)     {}
func (progress) Taken(string, string)      {}
func (progress) Close()                    {}

func (p progress) Rest(until time.Time) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.mu.rests = until
}

// resting returns the instant that the trigger rests until; zero if it does not rest.
func (w *world) resting() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.rests
}

// newWorld opens a database in memory. Triggers run once run is called.
func newWorld(t testing.TB) *world { return newWorldOf(t, mayfly.Options{Shards: 1}) }

func newWorldOf(t testing.TB, o mayfly.Options) *world {
	t.Helper()
	db, err := mayfly.Open("", o)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w := &world{DB: db, t: t}
	w.mu.targets = map[string]deliver.Lane{}
	w.courier = deliver.NewCourier(deliver.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Resolver: deliver.ResolverFunc(w.resolve), Now: db.Clock().Now, Leases: lease.Options{Exclusive: true},
		Backoff: deliver.Backoff{First: time.Millisecond, Most: time.Millisecond}, Grace: 10 * time.Millisecond, Logger: testkit.Logger(t),
	})
	w.background(w.courier.Run)
	w.options = trigger.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Clock: testClock{db.Clock()}, Resolver: deliver.ResolverFunc(w.resolve), Courier: w.courier,
		Region: "us-east-1", Account: "000000000000", Leases: lease.Options{Exclusive: true}, Logger: testkit.Logger(t),
		Backoff:  deliver.Backoff{First: time.Millisecond, Most: time.Millisecond},
		Registry: consume.Registry{Register: func(string, string) consume.Progress { return progress{w} }},
	}
	return w
}

// run runs triggers until stop is called, or the test ends.
func (w *world) run(declared ...trigger.Spec) (stop func()) {
	w.t.Helper()
	must(w.t, trigger.CheckSpecs(declared))
	o := w.options
	o.Declared = declared
	w.triggers = trigger.New(o)
	return w.background(w.triggers.Run)
}

func (w *world) background(f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) resolve(arn string) (deliver.Lane, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lane, ok := w.mu.targets[arn]
	if !ok {
		return lane, deliver.ErrUnmapped
	}
	lane.Name = arn
	return lane, nil
}

// to maps a target to an ARN.
func (w *world) to(arn string, t target.Target, limits target.Limits) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.targets[arn] = deliver.Lane{Target: t, Limits: limits}
}

// testClock sleeps by polling the database's clock.
type testClock struct{ *mayfly.Clock }

func (c testClock) Sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	for c.Now().UnixMilli() < until {
		select {
		case <-time.After(200 * time.Microsecond):
		case <-wake:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// table creates a table with the keys k and n and a stream, and returns the stream's ARN.
func (w *world) table(name string) (stream string) {
	w.t.Helper()
	out, err := w.DynamoDB().CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: "S"}, {AttributeName: aws.String("n"), AttributeType: "N"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: "HASH"}, {AttributeName: aws.String("n"), KeyType: "RANGE"}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	must(w.t, err)
	_, err = w.DynamoDB().UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")},
	})
	must(w.t, err)
	return *out.TableDescription.LatestStreamArn
}

// put writes an item with a value.
func (w *world) put(table, k string, n, value int) {
	w.t.Helper()
	_, err := w.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: k}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}, "v": &types.AttributeValueMemberN{Value: fmt.Sprint(value)},
	}})
	must(w.t, err)
}

// count returns the number of items of a table; 0 if it is missing.
func (w *world) count(table string) int {
	out, err := w.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0
	}
	return len(out.Items)
}

// function is a Lambda function: it receives events and answers.
type function struct {
	answer func(call int, e events.DynamoDBEvent) (any, error) // nil: no failure
	mu     struct {
		sync.Mutex
		batches []string // the values of the records of each call
		events  []events.DynamoDBEvent
		ids     []string
		sizes   []int // of each call, in bytes
	}
}

func (f *function) Invoke(_ context.Context, d target.Delivery) ([]byte, error) {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(d.Body, &e); err != nil {
		return nil, target.Permanent("BadEvent", err.Error())
	}
	f.mu.Lock()
	f.mu.events = append(f.mu.events, e)
	f.mu.batches = append(f.mu.batches, values(e))
	f.mu.ids = append(f.mu.ids, d.ID)
	f.mu.sizes = append(f.mu.sizes, len(d.Body))
	call := len(f.mu.batches)
	f.mu.Unlock()
	if f.answer == nil {
		return nil, nil
	}
	answer, err := f.answer(call, e)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	return text, err
}

func (f *function) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		_, results[i] = f.Invoke(ctx, d)
	}
	return results
}

// values returns the values of v in an event's records.
func values(e events.DynamoDBEvent) string {
	var all []string
	for _, r := range e.Records {
		image := r.Change.NewImage
		if image == nil {
			image = r.Change.OldImage
		}
		v := "-"
		if a, ok := image["v"]; ok {
			v = a.Number()
		}
		if r.EventName == "REMOVE" {
			v = "!" + v
		}
		all = append(all, v)
	}
	return strings.Join(all, " ")
}

// batches returns the values of the records of each call.
func (f *function) batches() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.batches)
}

// got waits for calls and compares them.
func (f *function) got(t testing.TB, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("the function got %q", want), func() bool { return len(f.batches()) >= len(want) }, func() any { return f.batches() })
	if got := f.batches(); !slices.Equal(got, want) {
		t.Fatalf("the function got %q, want %q", got, want)
	}
}

// records returns all received records in their order.
func (f *function) records() []events.DynamoDBEventRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []events.DynamoDBEventRecord
	for _, e := range f.mu.events {
		all = append(all, e.Records...)
	}
	return all
}

// failed returns the error of a function that ran.
func failed(text string) error {
	return &target.Error{Code: "FunctionError", Message: text, Err: &target.FunctionError{Kind: "Unhandled", Version: "$LATEST", Message: text}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await waits for a condition. shows describes the present state.
func await(t testing.TB, what string, holds func() bool, shows ...func() any) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			for _, show := range shows {
				t.Log(show())
			}
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// putLarge writes an item of 300 KB.
func (w *world) putLarge(table string, n int) {
	w.t.Helper()
	_, err := w.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: "large"}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
		"pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 300<<10)},
	}})
	must(w.t, err)
}

// putUntil writes an item with a deadline.
func (w *world) putUntil(table, k string, n, value int, until time.Time) {
	w.t.Helper()
	_, err := w.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: k}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}, "v": &types.AttributeValueMemberN{Value: fmt.Sprint(value)},
		"ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(until.Unix())},
	}})
	must(w.t, err)
}

func (w *world) delete(table, k string, n int) {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: k}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
	}})
	must(w.t, err)
}

func (n noted) Deliver(_ context.Context, deliveries []target.Delivery) []error {
	for _, d := range deliveries {
		n.to <- d
	}
	return make([]error, len(deliveries))
}
