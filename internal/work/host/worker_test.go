package host_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

const (
	function = "arn:aws:lambda:us-east-1:000000000000:function:f"
	role     = "arn:aws:iam::000000000000:role/r"
)

// endpoint is a database that leaves all work to others.
type endpoint struct {
	*mayfly.DB
	*testing.T
	mu  sync.Mutex
	got map[string][]string // IDs of the workers that delivered it, by the delivery's ID
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{DatabaseOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &endpoint{DB: db, T: t, got: map[string][]string{}}
}

// run runs a worker. stop ends it and waits.
func (e *endpoint) run(name string, change func(*host.Options)) (w *host.Worker, stop func()) {
	e.Helper()
	o := host.Options{
		DB: e.DynamoDB(), Streams: e.Streams(), Clock: clock.New(), Region: "us-east-1", Account: "000000000000",
		Leases: lease.Options{Owner: name, Duration: 500 * time.Millisecond},
		Targets: []target.Mapping{{ARN: function, Target: target.Func(func(_ context.Context, d target.Delivery) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.got[d.ID] = append(e.got[d.ID], name)
			return nil
		})}},
	}
	if change != nil {
		change(&o)
	}
	w = host.NewWorker(o, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Error(err)
		}
	})
	e.Cleanup(stop)
	return w, stop
}

// by counts the deliveries of a worker.
func (e *endpoint) by(name string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, names := range e.got {
		if slices.Contains(names, name) {
			n++
		}
	}
	return n
}

func (e *endpoint) await(what string, met func() bool) {
	e.Helper()
	for limit := time.Now().Add(30 * time.Second); !met(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			e.Fatalf("waited in vain for %s", what)
		}
	}
}

// Workers beside the endpoint serve and fire schedules; when one ends, another continues.
func TestSchedules(t *testing.T) {
	e := newEndpoint(t)
	first, stopFirst := e.run("first", nil)
	server := httptest.NewServer(first.Handler())
	defer server.Close()
	client := scheduler.New(scheduler.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}})
	create := func(name, expression, arn string) error {
		_, err := client.CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
			Name: &name, ScheduleExpression: &expression, FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: "OFF"},
			Target: &schedulertypes.Target{Arn: &arn, RoleArn: aws.String(role)},
		})
		return err
	}
	if err := create("often", "every(50 milliseconds)", function); err != nil {
		t.Fatal(err)
	}
	if err := create("other", "rate(1 minute)", function+"-else"); err == nil || !strings.Contains(err.Error(), function+"-else: no target is mapped") || !strings.Contains(err.Error(), "--targets") {
		t.Errorf("a target that is not mapped: %v", err)
	}
	if _, err := e.Scheduler().ListSchedules(t.Context(), nil); err == nil {
		t.Error("the database serves schedules although it is to be a database only")
	}
	if _, err := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}}).ListTables(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "UnknownOperationException") {
		t.Errorf("a worker that is asked for tables: %v", err)
	}
	e.await("firings of the first worker", func() bool { return e.by("first") >= 5 })
	_, _ = e.run("second", nil)
	stopFirst()
	e.await("firings of the second worker", func() bool { return e.by("second") >= 5 })
}

// Workers share the shards of a trigger, and each record is delivered although workers start and
// stop.
func TestTriggers(t *testing.T) {
	e := newEndpoint(t)
	_, err := e.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	})
	if err != nil {
		t.Fatal(err)
	}
	specs := []trigger.Spec{{Name: "orders", Table: "orders", Target: function, Per: "record", Batch: 10}}
	aside := func(o *host.Options) { o.Aside, o.Triggers = "orders", specs }
	_, stopFirst := e.run("first", aside)
	_, _ = e.run("second", aside)
	put := func(from, to int) {
		for i := from; i < to; i++ {
			_, err := e.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
				"id": &types.AttributeValueMemberS{Value: fmt.Sprint("o-", i)},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	total := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.got)
	}
	n := 0
	e.await("both to have a share", func() bool {
		put(n, n+20)
		n += 20
		return e.by("first") > 0 && e.by("second") > 0
	})
	stopFirst()
	put(n, n+100)
	n += 100
	e.await("every record", func() bool { return total() >= n })
	if got := total(); got != n {
		t.Errorf("%d deliveries of %d records", got, n)
	}
	if out, err := e.DynamoDB().ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil || slices.Contains(out.TableNames, "mayfly.schedules.default") {
		t.Errorf("a worker aside has made tables of schedules: %v, %v", out.TableNames, err)
	}
}
