package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// batches is a target that notes its calls and refuses the delivery "bad".
type batches struct {
	sync.Mutex
	calls []string
}

func (b *batches) Deliver(_ context.Context, deliveries []target.Delivery) []error {
	b.Lock()
	defer b.Unlock()
	results := make([]error, len(deliveries))
	var ids []string
	for i, d := range deliveries {
		ids = append(ids, d.ID)
		if d.ID == "bad" {
			results[i] = target.Permanent("Bad", "refused")
		}
	}
	b.calls = append(b.calls, strings.Join(ids, " "))
	return results
}

func parcels(ids ...string) (all []deliver.Parcel) {
	for _, id := range ids {
		all = append(all, deliver.Parcel{Delivery: target.Delivery{ID: id, TargetARN: "arn:x"}})
	}
	return all
}

// Call keeps the order, makes one call at a time, and holds back the parcels after a failure.
func TestCall(t *testing.T) {
	to := &batches{}
	d := startCourier(t, open(t, "", mayfly.Options{}), deliver.Options{Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
		return deliver.Lane{Name: "test", Target: to, Limits: target.Limits{Batch: 2}}, nil
	})}, nil)
	for _, err := range d.Call(t.Context(), parcels("a", "b", "c", "d", "e")...) {
		if err != nil {
			t.Error(err)
		}
	}
	results := d.Call(t.Context(), parcels("f", "bad", "g", "h")...)
	if results[0] != nil || target.AsError(results[1]).Code != "Bad" || !errors.Is(results[2], deliver.ErrHeldBack) || !errors.Is(results[3], deliver.ErrHeldBack) {
		t.Errorf("results %v", results)
	}
	if got := strings.Join(to.calls, ", "); got != "a b, c d, e, f bad" {
		t.Errorf("calls: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if results := d.Call(ctx, parcels("late")...); !errors.Is(results[0], context.Canceled) {
		t.Errorf("after the end: %v", results)
	}
}

// An ARN without a target returns an error that says so.
func TestCallUnmapped(t *testing.T) {
	d := startCourier(t, open(t, "", mayfly.Options{}), deliver.Options{Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
		return deliver.Lane{}, deliver.ErrUnmapped
	})}, nil)
	if err := d.Call(t.Context(), parcels("a")...)[0]; !errors.Is(err, deliver.ErrUnmapped) {
		t.Errorf("Call: %v", err)
	}
	if _, err := d.Invoke(t.Context(), parcels("a")[0]); !errors.Is(err, deliver.ErrUnmapped) {
		t.Errorf("Invoke: %v", err)
	}
}

// function is a target that answers.
type function func(ctx context.Context, d target.Delivery) ([]byte, error)

func (f function) Invoke(ctx context.Context, d target.Delivery) ([]byte, error) { return f(ctx, d) }

func (f function) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	_, err := f(ctx, deliveries[0])
	return []error{err}
}

// Invoke returns the answer of a function, and an error if the function panics, fails or takes too
// long.
func TestInvoke(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	d := startCourier(t, open(t, "", mayfly.Options{}), deliver.Options{Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
		return deliver.Lane{Name: "test", Limits: target.Limits{Timeout: 500 * time.Millisecond}, Target: function(func(ctx context.Context, d target.Delivery) ([]byte, error) {
			switch d.ID {
			case "panics":
				panic("oops")
			case "hangs":
				<-over // and not when ctx is done
			case "fails":
				return []byte("no answer"), &target.FunctionError{Kind: "Unhandled"}
			}
			return []byte("answer to " + d.ID), nil
		})}, nil
	})}, nil)
	for id, want := range map[string]string{
		"works": "answer to works <nil>", "panics": " TargetPanicked: oops", "hangs": " TargetTimeout: no answer within 500ms", "fails": " TargetError: ",
	} {
		answer, err := d.Invoke(t.Context(), parcels(id)[0])
		got := string(answer) + " <nil>"
		if err != nil {
			got = string(answer) + " " + target.AsError(err).Error()
		}
		if !strings.HasPrefix(got, strings.TrimSuffix(want, ": ")) {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// Calls and queued parcels share the lane: its concurrency holds for both.
func TestCallsShareTheLane(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	d := startCourier(t, open(t, "", mayfly.Options{}), deliver.Options{Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
		return deliver.Lane{Name: "test", Limits: target.Limits{Concurrency: 2, Batch: 3}, Target: target.Func(func(context.Context, target.Delivery) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})}, nil
	})}, nil)
	var all sync.WaitGroup
	for i := range 10 {
		all.Add(1)
		d.Deliver(t.Context(), parcels(fmt.Sprint("job", i))[0], all.Done)
		all.Go(func() { d.Call(t.Context(), parcels(fmt.Sprint("call", i), fmt.Sprint("and", i))...) })
		all.Go(func() { _, _ = d.Invoke(t.Context(), parcels(fmt.Sprint("invoke", i))[0]) })
	}
	all.Wait()
	if most != 2 {
		t.Errorf("%d at a time", most)
	}
}
