package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// inBubble runs a test in a bubble of fake time, with a courier that is over at its end.
func inBubble(t *testing.T, test func(*testing.T, *endpoint)) {
	synctest.Test(t, func(t *testing.T) { test(t, open(t, "", mayfly.Options{})) })
}

// to sets a parcel's target.
func to(arn string) func(*deliver.Parcel) {
	return func(j *deliver.Parcel) { j.Delivery.TargetARN = arn }
}

// in sets a parcel's group.
func in(group string) func(*deliver.Parcel) {
	return func(j *deliver.Parcel) { j.Group = group }
}

// A target gets no more calls at once than it takes, nor more deliveries in one.
func TestConcurrencyAndBatch(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		var mu sync.Mutex
		now, most, calls, largest := 0, 0, 0, 0
		d := startCourier(t, e, deliver.Options{Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
			return deliver.Lane{Name: "x", Limits: target.Limits{Concurrency: 3, Batch: 10}, Target: targetFunc(func(_ context.Context, batch []target.Delivery) []error {
				mu.Lock()
				now++
				calls++
				most, largest = max(most, now), max(largest, len(batch))
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return make([]error, len(batch))
			})}, nil
		})}, nil)
		var done sync.WaitGroup
		for _, j := range parcels(slices.Collect(ids("j", 100))...) {
			done.Add(1)
			d.Deliver(t.Context(), j, done.Done)
		}
		done.Wait()
		mu.Lock()
		defer mu.Unlock()
		if most != 3 || largest != 10 || calls > 13 {
			t.Errorf("%d at once, %d in a call, %d calls", most, largest, calls)
		}
	})
}

type targetFunc func(context.Context, []target.Delivery) []error

func (f targetFunc) Deliver(ctx context.Context, batch []target.Delivery) []error {
	return f(ctx, batch)
}

// ids yields prefix0 to prefix(n-1).
func ids(prefix string, n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprint(prefix, i)) {
				return
			}
		}
	}
}

// A target with a rate gets no more than that, however much there is; its burst is short.
func TestRate(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		began := time.Now()
		p := e.courier(t, deliver.Options{}, map[string]answers{"": failUntil(1)}, target.Limits{PerSecond: 100})
		for id := range ids("j", 300) {
			p.send(t, id)
		}
		for id := range ids("j", 300) {
			p.isDone(t, id)
		}
		if took := time.Since(began); took < 2900*time.Millisecond || took > 3200*time.Millisecond {
			t.Errorf("300 at 100 a second took %s", took)
		}
	})
}

// Attempts begin in the order of delivery.
func TestOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{}, map[string]answers{"": failUntil(1)}, target.Limits{Concurrency: 1})
		var want []string
		for id := range ids("j", 500) {
			p.send(t, id)
			want = append(want, id+" 1")
		}
		p.isDone(t, "j499")
		if got := p.attempts(); !slices.Equal(got, want) {
			t.Errorf("attempts %v", got)
		}
	})
}

// A burst of any size for a fast target is not parked: its sender waits instead, and the order is
// kept. Parcels of other groups for the same target take turns with it.
func TestBurst(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{}, map[string]answers{"": func(context.Context, target.Delivery) error {
			time.Sleep(500 * time.Microsecond) // 2000 a second
			return nil
		}}, target.Limits{Concurrency: 1})
		const burst = 20_000
		go func() {
			for id := range ids("j", burst) {
				p.send(t, id, in("many"))
			}
		}()
		time.Sleep(100 * time.Millisecond)
		for id := range ids("k", 50) {
			began := time.Now()
			p.send(t, id, in("few"))
			p.isDone(t, id)
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("%s took %s", id, took)
			}
			time.Sleep(100 * time.Millisecond)
		}
		p.isDone(t, fmt.Sprint("j", burst-1))
		p.read(func() {
			if p.events[deliver.LaneFull] > 0 || len(p.made) != burst+50 {
				t.Errorf("%d attempts, events %v", len(p.made), p.events)
			}
		})
		got := slices.DeleteFunc(p.attempts(), func(a string) bool { return strings.HasPrefix(a, "k") })
		for i := range got {
			if got[i] != fmt.Sprint("j", i, " 1") {
				t.Fatalf("attempt %d is %s", i, got[i])
			}
		}
	})
}

// A group's share of a queue is also bounded in bytes: parcels beyond it are parked, and come
// later.
func TestQueueBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		well := make(chan struct{})
		p := e.courier(t, deliver.Options{}, map[string]answers{"": func(ctx context.Context, _ target.Delivery) error {
			select {
			case <-well:
			case <-ctx.Done():
			}
			return ctx.Err()
		}}, target.Limits{Concurrency: 1})
		body := []byte(strings.Repeat("x", 4<<20))
		for id := range ids("j", 20) {
			p.send(t, id, func(j *deliver.Parcel) { j.Delivery.Body = body })
		}
		synctest.Wait() // the clock stands still while there is something to do
		p.read(func() {
			if n := p.events[deliver.LaneFull]; n < 10 || n > 12 {
				t.Errorf("%d of 20 were parked", n)
			}
		})
		close(well)
		time.Sleep(time.Minute)
		p.read(func() {
			if len(p.ended) != 20 {
				t.Errorf("%d have ended", len(p.ended))
			}
		})
	})
}

// A target that hangs delays no other. Parcels beyond its capacity are parked without counting an
// attempt, with growing pauses, and all are delivered when the target recovers.
func TestDeadTargetDelaysNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("it parks some ten thousand jobs")
	}
	inBubble(t, func(t *testing.T, e *endpoint) {
		well := make(chan struct{})
		p := e.courier(t, deliver.Options{}, map[string]answers{
			"arn:dead": func(ctx context.Context, _ target.Delivery) error {
				select {
				case <-well:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
			"arn:well": failUntil(1),
		}, target.Limits{Concurrency: 2, Timeout: 5 * time.Minute})
		const dead = 2500
		var slowest time.Duration
		began := time.Now()
		for i := range dead {
			p.send(t, fmt.Sprint("dead", i), to("arn:dead"))
			if i%10 == 0 {
				id := fmt.Sprint("well", i)
				began := time.Now()
				p.send(t, id, to("arn:well"))
				p.isDone(t, id)
				slowest = max(slowest, time.Since(began))
			}
		}
		if took := time.Since(began); took > time.Second || slowest > 10*time.Millisecond {
			t.Errorf("dispatching took %s, and a healthy target's job %s", took, slowest)
		}
		time.Sleep(10 * time.Second)
		for i := range dead {
			p.isDone(t, fmt.Sprint("dead", i)) // parked, or secured
		}
		if n := e.items(t, deliver.RetriesTable); n < 100 {
			t.Errorf("%d jobs are parked", n)
		}
		time.Sleep(20 * time.Second)
		full := 0
		p.read(func() { full = p.events[deliver.LaneFull] })
		if full > 6*dead {
			t.Errorf("in half a minute %d jobs were parked %d times", dead, full)
		}
		close(well)
		time.Sleep(time.Hour)
		p.read(func() {
			if len(p.ended) != dead+dead/10 {
				t.Errorf("%d jobs have ended", len(p.ended))
			}
			for id, end := range p.ended {
				if !end.Delivered {
					t.Fatalf("%s is a dead letter: %+v", id, end)
				}
			}
		})
	})
}

// An attempt that takes long keeps no source waiting: the parcel is parked meanwhile. When it ends
// well it is not made again; when it fails the next attempt is that of any failure; and should the
// clock run ahead, the parcel waits for the attempt all the same.
func TestLongAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		fails := atomic.Bool{}
		p := e.courier(t, deliver.Options{Jitter: func() float64 { return 0.5 }}, map[string]answers{"": func(ctx context.Context, d target.Delivery) error {
			if d.Attempt > 1 {
				return nil
			}
			time.Sleep(20 * time.Second)
			if fails.Load() {
				return errors.New("no")
			}
			return nil
		}}, target.Limits{})
		p.send(t, "a")
		time.Sleep(3900 * time.Millisecond)
		p.read(func() {
			if p.done["a"] != 0 {
				t.Error("done although nothing is durable")
			}
		})
		time.Sleep(200 * time.Millisecond)
		p.read(func() {
			if p.done["a"] != 1 {
				t.Error("not done, and its source waits")
			}
		})
		_, err := e.Clock().Advance(t.Context(), time.Hour)
		must(t, err)
		time.Sleep(15 * time.Second)
		if end := p.end(t, "a"); !end.Delivered {
			t.Errorf("ended as %+v", end)
		}
		time.Sleep(2 * time.Hour)
		p.read(func() {
			if len(p.made) != 1 || p.done["a"] != 1 || p.ends != 1 {
				t.Errorf("attempts %v, done %v, %d ends", p.made, p.done, p.ends)
			}
		})
		if n := e.items(t, deliver.RetriesTable); n != 0 {
			t.Errorf("%d jobs are parked", n)
		}
		fails.Store(true)
		p.send(t, "b")
		time.Sleep(20*time.Second + 400*time.Millisecond)
		if got := p.attempts(); len(got) != 2 {
			t.Errorf("attempts %v", got)
		}
		time.Sleep(200 * time.Millisecond)
		delivered := p.end(t, "b").Delivered
		p.read(func() {
			if fmt.Sprint(p.made) != "[a 1 b 1 b 2]" || !delivered || p.done["b"] != 1 {
				t.Errorf("attempts %v, done %v", p.made, p.done)
			}
		})
	})
}

// A parked parcel that never had an attempt is a dead letter when it is too old.
func TestTooOldInTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{}, map[string]answers{"": func(ctx context.Context, d target.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}}, target.Limits{Concurrency: 1, Timeout: 15 * time.Minute})
		p.send(t, "first")
		p.send(t, "second", func(j *deliver.Parcel) { j.Policy.MaxAge = time.Minute })
		time.Sleep(10 * time.Minute)
		if end := p.end(t, "second"); end.Exhausted != deliver.ExhaustedAge || end.Last.Code != "TargetBusy" {
			t.Errorf("ended as %+v", end)
		}
	})
}

// When Run ends, attempts under way have a grace period, and their results are kept. The others are
// neither done nor lost.
func TestStop(t *testing.T) {
	inBubble(t, func(t *testing.T, e *endpoint) {
		p := e.courier(t, deliver.Options{Grace: 3 * time.Second}, map[string]answers{
			"arn:quick": func(context.Context, target.Delivery) error { time.Sleep(2 * time.Second); return nil },
			"arn:fails": func(context.Context, target.Delivery) error { time.Sleep(2 * time.Second); return errors.New("no") },
			"arn:slow":  func(ctx context.Context, _ target.Delivery) error { <-ctx.Done(); return ctx.Err() },
		}, target.Limits{Concurrency: 1})
		for _, arn := range []string{"quick", "fails", "slow"} {
			p.send(t, arn, to("arn:"+arn))
			p.send(t, arn+" behind", to("arn:"+arn))
		}
		time.Sleep(time.Second)
		p.stop()
		p.read(func() {
			if fmt.Sprint(p.done) != "map[fails:1 quick:1]" || len(p.made) != 3 || p.ends != 1 {
				t.Errorf("done %v, attempts %v, %d ends", p.done, p.made, p.ends)
			}
		})
		again := e.courier(t, deliver.Options{}, map[string]answers{"": failUntil(1)}, target.Limits{})
		time.Sleep(2 * time.Second)
		if got := fmt.Sprint(again.attempts()); got != "[fails 2]" {
			t.Errorf("after a restart: %s", got)
		}
		again.stop()
	})
}
