package reminder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time that a test waits for an event.
const patience = 30 * time.Second

// world is a database with a frozen clock, a courier, and a target that records its deliveries.
type world struct {
	*mayfly.DB
	t       testing.TB
	courier *deliver.Courier
	mu      struct {
		sync.Mutex
		got    []target.Delivery
		answer func(target.Delivery) error
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{Start: start.Add(-time.Minute), Frozen: true, Shards: 1})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Clock().Set(t.Context(), start)
	must(t, err)
	w := &world{DB: db, t: t}
	w.courier = deliver.NewCourier(deliver.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Leases: lease.Options{Exclusive: true}, Grace: 10 * time.Millisecond, Logger: testkit.Logger(t),
		Backoff: deliver.Backoff{First: time.Second, Most: time.Second},
		Resolver: deliver.ResolverFunc(func(arn string) (deliver.Lane, error) {
			return deliver.Lane{Name: arn, Target: target.Func(w.take)}, nil
		}),
	})
	w.background(w.courier.Run)
	return w
}

func (w *world) take(_ context.Context, d target.Delivery) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.got = append(w.mu.got, d)
	if w.mu.answer != nil {
		return w.mu.answer(d)
	}
	return nil
}

// run follows rules until stop is called, at the latest at the end of the test.
func (w *world) run(rules ...reminder.Spec) (stop func()) {
	w.t.Helper()
	m := w.reminders(rules...)
	stop = w.background(m.Run)
	select {
	case <-m.Ready():
	case <-time.After(patience):
		w.t.Fatal("the reminders do not get ready")
	}
	return stop
}

// runLogged is run with a log.
func (w *world) runLogged(log io.Writer, rules ...reminder.Spec) (stop func()) {
	w.t.Helper()
	m := reminder.New(reminder.Options{
		DB: w.DynamoDB(), Streams: w.Streams(), Now: w.Clock().Now, Courier: w.courier, Region: "us-east-1", Account: "000000000000", Rules: rules,
		Leases: lease.Options{Exclusive: true}, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	stop = w.background(m.Run)
	<-m.Ready()
	return stop
}

// reminders returns reminders that do not run yet.
func (w *world) reminders(rules ...reminder.Spec) *reminder.Reminders {
	w.t.Helper()
	return w.remindersOf(w.DynamoDB(), rules...)
}

// remindersOf is reminders with another client.
func (w *world) remindersOf(db *dynamodb.Client, rules ...reminder.Spec) *reminder.Reminders {
	w.t.Helper()
	must(w.t, reminder.CheckSpecs(rules))
	return reminder.New(reminder.Options{
		DB: db, Streams: w.Streams(), Now: w.Clock().Now, Courier: w.courier, Region: "us-east-1", Account: "000000000000", Rules: rules,
		Leases: lease.Options{Exclusive: true}, Logger: testkit.Logger(w.t),
	})
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

// table creates a table with the key k and a stream.
func (w *world) table(name string) {
	w.t.Helper()
	_, err := w.DynamoDB().CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: "HASH"}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	must(w.t, err)
}

// put writes an item from names and values.
func (w *world) put(table, k string, attrs ...any) {
	w.t.Helper()
	it := map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: k}}
	for i := 0; i < len(attrs); i += 2 {
		switch v := attrs[i+1].(type) {
		case int64:
			it[attrs[i].(string)] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		case float64:
			it[attrs[i].(string)] = &types.AttributeValueMemberN{Value: fmt.Sprintf("%.3f", v)}
		case types.AttributeValue:
			it[attrs[i].(string)] = v
		default:
			it[attrs[i].(string)] = &types.AttributeValueMemberS{Value: fmt.Sprint(v)}
		}
	}
	_, err := w.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	must(w.t, err)
}

func (w *world) delete(table, k string) {
	w.t.Helper()
	_, err := w.DynamoDB().DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: k}}})
	must(w.t, err)
}

// at returns an instant after start, in epoch seconds.
func at(after time.Duration) int64 { return start.Add(after).Unix() }

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// pending waits until these reminders are pending: "k@after".
func (w *world) pending(want ...string) {
	w.t.Helper()
	var got []string
	await(w.t, fmt.Sprintf("%q are pending", want), func() bool {
		got = nil
		must(w.t, reminder.Each(context.Background(), w.DynamoDB(), "", func(r reminder.Reminder) error {
			var key struct{ K struct{ S string } }
			_ = json.Unmarshal([]byte(r.Key), &key)
			got = append(got, fmt.Sprint(key.K.S, "@", r.Due.Sub(start)))
			return nil
		}))
		slices.Sort(got)
		return slices.Equal(got, want)
	}, func() any { return got }, w.dump)
}

// dump returns the contents of the table of reminders.
func (w *world) dump() any {
	out, err := w.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(reminder.TableName)})
	if err != nil {
		return err
	}
	var all []map[string]any
	_ = attributevalue.UnmarshalListOfMaps(out.Items, &all)
	return fmt.Sprint(w.Clock().Now(), all)
}

// got waits for deliveries with these bodies.
func (w *world) got(want ...string) {
	w.t.Helper()
	bodies := func() (all []string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, d := range w.mu.got {
			all = append(all, string(d.Body))
		}
		return all
	}
	await(w.t, fmt.Sprintf("the target got %q", want), func() bool { return len(bodies()) >= len(want) }, func() any { return bodies() })
	if got := bodies(); !slices.Equal(got, want) {
		w.t.Fatalf("the target got %q, want %q", got, want)
	}
}

// quiet waits until the rule has followed all changes so far: it adds an item with a reminder, and
// removes it.
func (w *world) quiet(table string) {
	w.t.Helper()
	w.put(table, "quiet", "when", at(1000*time.Hour))
	await(w.t, "the changes are followed", func() bool {
		found := false
		must(w.t, reminder.Each(context.Background(), w.DynamoDB(), "", func(r reminder.Reminder) error {
			found = found || strings.Contains(r.Key, "quiet")
			return nil
		}))
		return found
	})
	w.delete(table, "quiet")
	await(w.t, "the changes are followed", func() bool {
		found := false
		must(w.t, reminder.Each(context.Background(), w.DynamoDB(), "", func(r reminder.Reminder) error {
			found = found || strings.Contains(r.Key, "quiet")
			return nil
		}))
		return !found
	})
}

func (w *world) advance(span time.Duration) {
	w.t.Helper()
	_, err := w.Clock().Advance(context.Background(), span)
	must(w.t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until a condition holds, and logs the results of shows if it does not.
func await(t testing.TB, condition string, holds func() bool, shows ...func() any) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			for _, show := range shows {
				t.Log(show())
			}
			t.Fatalf("waited without success until %s", condition)
		}
	}
}
