package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// openGate returns the gate of a courier whose Run has begun.
func openGate(limits target.Limits) *gate {
	d := NewCourier(Options{})
	close(d.ready)
	return newGate(d, Lane{Name: "x", Limits: limits})
}

// A gate admits callers in the order of their arrival, as places become free. A caller that gives up
// takes no place.
func TestGateOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openGate(target.Limits{Concurrency: 2})
		var mu sync.Mutex
		var order []int
		var callers sync.WaitGroup
		for i := range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i == 3 {
				time.AfterFunc(time.Second/2, cancel)
			}
			callers.Go(func() {
				if err := g.enter(ctx, "", 1); err != nil {
					if i != 3 || !errors.Is(err, context.Canceled) {
						t.Errorf("caller %d: %v", i, err)
					}
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Duration(i+1) * time.Second)
				g.leave()
			})
			synctest.Wait()
		}
		callers.Wait()
		if want := []int{0, 1, 2, 4, 5}; !slices.Equal(order, want) || g.places.mu.free != 2 {
			t.Errorf("admitted: %v, want %v; %d places are free", order, want, g.places.mu.free)
		}
	})
}

// A gate admits deliveries at its rate. Waiting for the rate ends with the caller's context and with
// the courier, and frees the place. An abandoned wait leaves its part of the rate to the next caller.
func TestGateRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openGate(target.Limits{Concurrency: 1, PerSecond: 1, Batch: 10})
		began := time.Now()
		for range 3 {
			if err := g.enter(t.Context(), "", 10); err != nil {
				t.Fatal(err)
			}
			g.leave()
		}
		if took := time.Since(began); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("30 deliveries at one a second, and a burst of ten, took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.enter(ctx, "", 10); !errors.Is(err, context.DeadlineExceeded) || g.places.mu.free != 1 {
			t.Errorf("a caller that gives up: %v; %d places are free", err, g.places.mu.free)
		}
		if err := g.enter(t.Context(), "", 10); err != nil {
			t.Fatal(err)
		}
		g.leave()
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("40 deliveries, and ten that were given up, took %s", took)
		}
		time.AfterFunc(time.Second, func() { g.stop(func() {}) })
		if err := g.enter(t.Context(), "", 10); !errors.Is(err, context.Canceled) || g.places.mu.free != 1 {
			t.Errorf("at the courier's end: %v; %d places are free", err, g.places.mu.free)
		}
	})
}

// A courier whose only target takes a second, or another duration, for each call, and no writes.
type busy struct {
	*Courier
	mu          sync.Mutex
	began       map[string]time.Duration // by ID
	under, most int                      // calls under way, at present and at most
	takes       time.Duration            // duration of a call
}

func newBusy(t *testing.T, limits target.Limits) *busy {
	b := &busy{began: map[string]time.Duration{}, takes: time.Second}
	to := func(_ context.Context, deliveries []target.Delivery) []error {
		b.mu.Lock()
		b.under++
		b.most = max(b.most, b.under)
		for _, d := range deliveries {
			b.began[d.ID] = b.elapsed()
		}
		b.mu.Unlock()
		time.Sleep(b.takes)
		b.mu.Lock()
		b.under--
		b.mu.Unlock()
		return make([]error, len(deliveries))
	}
	b.Courier = NewCourier(Options{Now: time.Now, Resolver: ResolverFunc(func(string) (Lane, error) {
		return Lane{Name: "x", Target: targetFunc(to), Limits: limits}, nil
	})})
	b.attempts.ctx = t.Context()
	close(b.ready)
	return b
}

type targetFunc func(context.Context, []target.Delivery) []error

func (f targetFunc) Deliver(ctx context.Context, batch []target.Delivery) []error {
	return f(ctx, batch)
}

func parcel(group, id string) Parcel {
	return Parcel{Group: group, Delivery: target.Delivery{ID: id, TargetARN: "arn:x"}}
}

// Groups of callers and the queue take turns at a gate: many callers of one group delay a caller of
// another one, and a queued parcel, by a call or two.
func TestGateTurns(t *testing.T) {
	for name, limits := range map[string]target.Limits{"places": {Concurrency: 1}, "rate": {PerSecond: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBusy(t, limits)
				var calls sync.WaitGroup
				for i := range 200 {
					calls.Go(func() { b.Call(t.Context(), parcel("many", fmt.Sprint(i))) })
				}
				time.Sleep(time.Second / 2)
				calls.Go(func() { b.Call(t.Context(), parcel("few", "call")) })
				b.Deliver(t.Context(), parcel("", "parcel"), func() {})
				calls.Wait()
				if call, parcel := b.began["call"], b.began["parcel"]; call > 4*time.Second || parcel > 4*time.Second || parcel == 0 {
					t.Errorf("the call began after %s, the parcel after %s", call, parcel)
				}
			})
		})
	}
}

// At a busy gate each group has the same share, whether its parcels are queued or its callers wait.
func TestGateShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBusy(t, target.Limits{Concurrency: 1})
		b.takes = 10 * time.Millisecond
		var all sync.WaitGroup
		for i := range 200 {
			group, id := string(rune('a'+i%10)), fmt.Sprint(i%10, " ", i)
			all.Add(1)
			b.Deliver(t.Context(), parcel(group, id), all.Done)
		}
		for i := range 60 {
			all.Go(func() { b.Call(t.Context(), parcel("trigger", fmt.Sprint("trigger ", i))) })
		}
		time.Sleep(1100 * time.Millisecond)
		shares := map[string]int{}
		b.mu.Lock()
		for id := range b.began {
			group, _, _ := strings.Cut(id, " ")
			shares[group]++
		}
		b.mu.Unlock()
		for group, n := range shares {
			if n < 8 || n > 12 {
				t.Errorf("group %s has had %d of %d calls", group, n, len(b.began))
			}
		}
		if len(shares) != 11 {
			t.Errorf("%d groups had calls, want 11", len(shares))
		}
		all.Wait()
	})
}

// Calls and queued parcels together do not exceed the concurrency. Afterwards nothing is left of
// them: no worker and no taken place.
func TestGateShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBusy(t, target.Limits{Concurrency: 3})
		var all sync.WaitGroup
		for i := range 20 {
			for _, err := range b.Call(t.Context(), parcel("a", fmt.Sprint("first", i))) {
				if err != nil {
					t.Error(err)
				}
			}
			all.Go(func() { b.Call(t.Context(), parcel("a", fmt.Sprint("call", i))) })
			all.Add(1)
			b.Deliver(t.Context(), parcel("b", fmt.Sprint("parcel", i)), all.Done)
		}
		all.Wait()
		synctest.Wait()
		l := b.lanes.byName["x"]
		if b.most != 3 || len(b.began) != 60 || l.mu.workers > 0 || l.places.mu.free != 3 {
			t.Errorf("%d at once, %d began; %d workers, %d free places", b.most, len(b.began), l.mu.workers, l.places.mu.free)
		}
	})
}

// When the courier ends, no call begins that waits for its turn, and its caller returns.
func TestGateStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBusy(t, target.Limits{Concurrency: 2})
		var calls sync.WaitGroup
		for i := range 10 {
			calls.Go(func() {
				if err := b.Call(t.Context(), parcel("a", fmt.Sprint(i)))[0]; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			b.Deliver(t.Context(), parcel("b", fmt.Sprint("parcel", i)), func() {})
		}
		time.Sleep(time.Second / 2)
		b.stop(func() {})
		if b.under > 0 || len(b.began) != 2 {
			t.Errorf("%d calls are under way, and %d have begun", b.under, len(b.began))
		}
		calls.Wait()
		time.Sleep(time.Minute)
		if len(b.began) != 2 {
			t.Errorf("%d calls have begun after the end", len(b.began)-2)
		}
	})
}

// Once the courier ends, a worker that waits for the rate takes no tasks: the rate has not admitted
// them, and their sources still have them.
func TestNothingIsTakenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lane{gate: openGate(target.Limits{PerSecond: 1, Batch: 1})}
		l.limiter.ReserveN(l.now(), 1)
		l.mu.workers = 1
		l.mu.queue.push(&task{})
		taken := make(chan []*task)
		go func() { taken <- l.take() }()
		synctest.Wait()
		l.attempts.close()
		if got := <-taken; got != nil || l.mu.workers != 0 || l.mu.queue.size != 1 {
			t.Errorf("%d tasks are taken before their turn; %d workers, %d in the queue", len(got), l.mu.workers, l.mu.queue.size)
		}
	})
}
