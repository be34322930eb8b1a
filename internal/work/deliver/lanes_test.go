package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// There are a thousand lanes at most besides those that are shared. Lanes that have nothing to do
// make room for others, and when none has the target is shared.
func TestManyLanes(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		var mu sync.Mutex
		lanes := map[string]int{} // attempts by lane
		hold := make(chan struct{})
		d := startCourier(t, e, deliver.Options{
			Resolver: deliver.ResolverFunc(func(arn string) (deliver.Lane, error) {
				return deliver.Lane{Name: "all " + arn, Shared: "all", Limits: target.Limits{Concurrency: 2}, Target: target.Func(func(_ context.Context, d target.Delivery) error {
					if strings.HasPrefix(d.TargetARN, "arn:slow") {
						<-hold
					}
					return nil
				})}, nil
			}),
			Observe: func(e deliver.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.What == deliver.Attempted {
					lanes[e.Target]++
				}
			},
		}, nil)
		send := func(prefix string, n int) *sync.WaitGroup {
			done := &sync.WaitGroup{}
			for _, j := range parcels(slices.Collect(ids(prefix, n))...) {
				done.Add(1)
				j.Delivery.TargetARN = "arn:" + j.Delivery.ID
				d.Deliver(t.Context(), j, done.Done)
			}
			synctest.Wait()
			return done
		}
		seen := func(prefix string) (own, shared int) {
			mu.Lock()
			defer mu.Unlock()
			for name := range lanes {
				if strings.HasPrefix(name, "all arn:"+prefix) {
					own++
				}
			}
			return own, lanes["all"]
		}
		send("quick", 2500).Wait()
		if own, shared := seen("quick"); own+shared != 2500 || own < 1000 {
			t.Errorf("quick: %d lanes, and %d attempts in a shared one", own, shared)
		}
		_, before := seen("")
		slow := send("slow", 1010)
		if own, shared := seen("slow"); own != 1000 || shared-before != 2 {
			t.Errorf("slow: %d lanes, and %d attempts in a shared one", own, shared-before)
		}
		close(hold)
		slow.Wait()
		_, before = seen("")
		send("after", 1).Wait()
		if own, shared := seen("after"); own != 1 || shared != before {
			t.Errorf("after: %d lanes, and %d attempts in a shared one", own, shared-before)
		}
	})
}

// A lane with a rate is kept while a new one in its place would have more capacity: the rate holds
// while other lanes come and go.
func TestRateAmongManyLanes(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		d := startCourier(t, e, deliver.Options{Resolver: deliver.ResolverFunc(func(arn string) (deliver.Lane, error) {
			l := deliver.Lane{Name: arn, Shared: "all", Target: target.Func(func(context.Context, target.Delivery) error { return nil })}
			if arn == "arn:paced" {
				l.Limits.PerSecond = 1
			}
			return l, nil
		})}, nil)
		send := func(id, arn string) {
			done := make(chan struct{})
			d.Deliver(t.Context(), deliver.Parcel{Delivery: target.Delivery{ID: id, TargetARN: arn}}, func() { close(done) })
			<-done
		}
		began := time.Now()
		for i := range 4 {
			send(fmt.Sprint("paced", i), "arn:paced")
			for id := range ids(fmt.Sprint("other", i, "-"), 1100) {
				send(id, "arn:"+id)
			}
		}
		if took := time.Since(began); took < 2900*time.Millisecond {
			t.Errorf("four at one a second took %v", took)
		}
	})
}

// A rate is one of deliveries, however they come together in calls: in batches that grow while the
// lane waits for its turn, and in calls that triggers make.
func TestRateOfBatches(t *testing.T) {
	const perSecond, batch, seconds = 10, 100, 20
	limits := target.Limits{PerSecond: perSecond, Batch: batch}
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{}, map[string]answers{"": func(context.Context, target.Delivery) error { return nil }}, limits)
		for i := range seconds * perSecond {
			for j := range 5 {
				p.send(t, fmt.Sprint(i, "-", j))
			}
			time.Sleep(time.Second / perSecond)
		}
		if n := len(p.attempts()); n < seconds*perSecond || n > seconds*perSecond+2*batch {
			t.Errorf("%d deliveries in %d s at %d a second, and a first burst", n, seconds, perSecond)
		}
		p.stop()
	})
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{}, map[string]answers{"": func(context.Context, target.Delivery) error { return nil }}, limits)
		began := time.Now()
		for range 4 {
			for _, err := range p.Call(t.Context(), parcels(slices.Collect(ids("j", batch))...)...) {
				must(t, err)
			}
		}
		if took := time.Since(began); took < 2*batch/perSecond*time.Second {
			t.Errorf("4 calls of %d at %d a second took %v", batch, perSecond, took)
		}
		p.stop()
	})
}
