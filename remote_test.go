package mayfly

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/conformance"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/scheduler"
	"github.com/mayflydb/mayfly/target"
)

// The scheduler runs unchanged at an endpoint elsewhere, on workers that share it: any running
// worker fires, and when one ends the other takes over.
func TestSchedulerElsewhere(t *testing.T) {
	db, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server := httptest.NewServer(db.Handler())
	defer server.Close()
	got := &elsewhere{ids: map[string]string{}}
	first, second := got.worker(t, server.URL, "first"), got.worker(t, server.URL, "second")
	const n = 20
	for i := range n { // half of them are due after the first worker has ended
		at := time.Now().Add(200*time.Millisecond + time.Duration(i%2)*2500*time.Millisecond)
		if _, err := first.CreateSchedule(t.Context(), once(fmt.Sprintf("once-%d", i), at)); err != nil {
			t.Fatal(err)
		}
	}
	got.await(t, n/2)
	first.stop()
	got.await(t, n)
	second.stop()
}

// once returns a schedule with one firing.
func once(name string, at time.Time) *scheduler.CreateScheduleInput {
	in := &scheduler.CreateScheduleInput{Name: name}
	in.Settings = scheduler.Settings{
		ScheduleExpression: aws.String("instant(" + at.UTC().Format("2006-01-02T15:04:05.000") + ")"),
		FlexibleTimeWindow: &scheduler.FlexibleTimeWindow{Mode: aws.String("OFF")},
		Target:             &scheduler.Target{Arn: aws.String(testFunction), RoleArn: aws.String(testRole), Input: aws.String(`"` + name + `"`)},
	}
	return in
}

// elsewhere is the deliveries to the workers' target.
type elsewhere struct {
	mu  sync.Mutex
	ids map[string]string // by schedule; guarded by mu
}

func (e *elsewhere) Deliver(_ context.Context, deliveries []target.Delivery) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		name := string(d.Body)
		if id, again := e.ids[name]; again && id != d.ID {
			results[i] = target.Permanent("Twice", "another id")
			e.ids[name] = "twice"
			continue
		}
		e.ids[name] = d.ID
	}
	return results
}

// await waits until a number of schedules have fired, and checks that none has two ids.
func (e *elsewhere) await(t *testing.T, n int) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		e.mu.Lock()
		fired := len(e.ids)
		for name, id := range e.ids {
			if id == "twice" {
				t.Errorf("%s came under two ids", name)
			}
		}
		e.mu.Unlock()
		if fired >= n {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d have fired", fired, n)
		}
	}
}

// elsewhereWorker is a scheduler with its deliveries, as another process would run it.
type elsewhereWorker struct {
	*scheduler.Scheduler
	stop func()
}

// worker starts a worker that has the endpoint's URL only.
func (e *elsewhere) worker(t *testing.T, url, owner string) *elsewhereWorker {
	t.Helper()
	c := aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), HTTPClient: conformance.HTTPClient(),
	}
	api, streams := dynamodb.NewFromConfig(c), dynamodbstreams.NewFromConfig(c)
	leases := lease.Options{Owner: owner, Duration: time.Second}
	d := deliver.NewCourier(deliver.Options{
		DB: api, Streams: streams, Now: time.Now, Leases: leases, Logger: slog.New(slog.DiscardHandler),
		Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) { return deliver.Lane{Name: "elsewhere", Target: e}, nil }),
	})
	s := scheduler.New(scheduler.Options{
		DB: api, Streams: streams, Now: time.Now, Region: "us-east-1", Account: "000000000000", Courier: d, Leases: leases, Refresh: 100 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{d.Run, s.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("%s: %v", owner, err)
			}
		})
	}
	w := &elsewhereWorker{s, sync.OnceFunc(func() { cancel(); running.Wait() })}
	t.Cleanup(w.stop)
	return w
}
