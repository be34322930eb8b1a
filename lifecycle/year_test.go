package lifecycle_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/lifecycle"
)

var (
	entities = flag.Int("entities", 120, "butterflies of TestYear")
	seed     = flag.Uint64("seed", 0, "of TestYear; 0: a new one")
)

// A year of butterflies. Their worker is killed at random moments, and their database is closed and
// opened again now and then. Every transition happens once, in order, for the instant that the
// definition sets. Every call is made, with one ID.
func TestYear(t *testing.T) {
	t.Parallel()
	seed := *seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	entities := *entities
	if testing.Short() {
		entities = min(entities, 30)
	}
	dir := t.TempDir()
	w := &world{DB: open(t, dir), t: t}
	w.run(w.options())
	w.apply(strings.Replace(butterfly, "lifecycle: butterfly", "lifecycle: butterfly\nhistory: 3000d", 1))
	w.stop()

	spans := make([]time.Duration, entities)
	laid := make([]time.Duration, entities)
	for i := range spans {
		spans[i] = time.Duration(5*24*time.Hour.Milliseconds()+random.Int64N(60*24*time.Hour.Milliseconds())) * time.Millisecond
		laid[i] = 200 * 24 * time.Hour / time.Duration(entities) * time.Duration(i)
	}
	kills, opened := 0, 1
	end := 365 * 24 * time.Hour
	for next := 0; w.Clock().Now().Sub(begin) < end; {
		if random.IntN(6) == 0 {
			must(t, w.DB.Close())
			w.DB = open(t, dir)
			opened++
		}
		k := w.mortal(20+random.IntN(6*max(entities, 60)), random.IntN(2) == 0)
		for !k.dead() && w.Clock().Now().Sub(begin) < end {
			now := w.Clock().Now().Sub(begin)
			for ; next < len(laid) && laid[next] <= now; next++ {
				w.create("butterfly", fmt.Sprintf("b-%05d", next), "larva", fmt.Sprintf("%dms", spans[next].Milliseconds()))
			}
			w.advanceTo(begin.Add(min(now+time.Duration(1+random.IntN(72))*time.Hour, end)))
		}
		k.end()
		kills++
	}
	t.Logf("the worker was killed %d times, the database opened %d times", kills, opened)
	w.run(w.options())
	w.advance(0)
	w.check(spans)
}

// A worker is killed at each of its calls in turn, before or after the call. The next worker
// continues: each transition happens once, and each call is made.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	killedAtEach(t, 0)
}

// The same after nobody has read the stream for so long that the records of the first transition
// are trimmed.
func TestKilledAfterLoss(t *testing.T) {
	t.Parallel()
	killedAtEach(t, 30*time.Hour)
}

// killedAtEach runs killedAt for each call that a worker makes.
func killedAtEach(t *testing.T, down time.Duration) {
	// calls. The runs mostly wait for the leases of killed workers, so there are more of them than
	// CPUs
	const beside = 16
	for first, over := 1, new(atomic.Bool); !over.Load(); first += beside {
		var work sync.WaitGroup
		for call := first; call < first+beside; call++ {
			for _, after := range []bool{false, true} {
				work.Go(func() {
					t.Run(fmt.Sprint(call, after), func(t *testing.T) {
						if !killedAt(t, down, call, after) {
							over.Store(true)
						}
					})
				})
			}
		}
		work.Wait()
	}
}

// killedAt lets no worker run for a while, kills the next one at a call, before or after it, and
// reports whether the worker made that call.
func killedAt(t *testing.T, down time.Duration, call int, after bool) bool {
	w := &world{DB: open(t, ""), t: t}
	w.run(w.options())
	w.apply(twoSteps)
	w.create("two", "e")
	w.stop()
	w.advance(down)
	k := w.mortal(call, after)
	w.advance(3 * time.Hour)
	dead := k.dead()
	k.end()
	w.run(w.options())
	if down > 0 {
		await(t, "the lost transition is made", func() bool { return len(w.events("two", "e")) > 1 })
	}
	w.advance(0)
	w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s", "transition b→c@2h0m0s")
	events, err := w.History(bg, "two", "e")
	must(t, err)
	if events[1].Outcome != "delivered" || events[2].Outcome != "delivered" || len(ids(w)) != 2 {
		t.Fatalf("killed at call %d: %+v, calls %v", call, events, w.calls())
	}
	w.stop()
	must(t, w.DB.Close())
	return dead
}

// check compares the history of every butterfly with its definition, and the calls with the
// history.
func (w *world) check(spans []time.Duration) {
	w.t.Helper()
	calls, again := map[string]int{}, 0
	w.mu.Lock()
	for _, c := range w.mu.calls {
		if calls[c.ID]++; calls[c.ID] > 1 {
			again++
		}
	}
	w.mu.Unlock()
	late := 0
	for i, span := range spans {
		id := fmt.Sprintf("b-%05d", i)
		events, err := w.History(context.Background(), "butterfly", id)
		must(w.t, err)
		if len(events) != 5 {
			w.t.Fatalf("%s: %+v", id, events)
		}
		due := events[0].At
		for g, to := range []string{"egg", "larva", "cocoon", "butterfly", "gone"} {
			e := events[g]
			switch g {
			case 1:
				due = due.AddDate(0, 0, 4)
			case 2:
				due = due.Add(span)
			case 3:
				due = due.AddDate(0, 0, 11)
			case 4:
				due = aMonthLater(due)
			}
			if e.Generation != int64(g+1) || e.To != to || g > 0 && !e.Due.Equal(due) || e.At.Before(due) {
				w.t.Errorf("%s: %+v, due %s", id, e, due)
			}
			if e.Lateness() > 0 {
				late++
			}
			if g >= 2 {
				if e.Outcome != "delivered" || calls[e.ID] == 0 {
					w.t.Errorf("%s: the call of %+v was made %d times", id, e, calls[e.ID])
				}
				delete(calls, e.ID)
			}
		}
	}
	if len(calls) > 0 {
		w.t.Errorf("calls that nothing stands for: %v", calls)
	}
	w.t.Logf("%d transitions, %d of them late; %d calls came again", 4*len(spans), late, again)
}

// aMonthLater returns the same day of the next month, or its last day.
func aMonthLater(t time.Time) time.Time {
	if u := t.AddDate(0, 1, 0); u.Day() == t.Day() {
		return u
	}
	return time.Date(t.Year(), t.Month()+2, 0, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// killed is a worker that dies at one of its calls.
type killed struct {
	http.RoundTripper
	left  atomic.Int64 // calls until its death
	after bool         // the call is made, but its answer is lost
	died  chan struct{}
	once  sync.Once
	end   func()
}

func (k *killed) dead() bool {
	select {
	case <-k.died:
		return true
	default:
		return false
	}
}

var errKilled = errors.New("the worker was killed")

// RoundTrip makes calls until the worker is dead.
func (k *killed) RoundTrip(r *http.Request) (*http.Response, error) {
	switch left := k.left.Add(-1); {
	case left > 0:
		return k.RoundTripper.RoundTrip(r)
	case left == 0 && k.after:
		if answer, err := k.RoundTripper.RoundTrip(r); err == nil {
			_ = answer.Body.Close()
		}
	}
	k.once.Do(func() { close(k.died) })
	return nil, errKilled
}

// mortal runs lifecycles that die at a call, before or after it is made.
func (w *world) mortal(call int, after bool) *killed {
	w.t.Helper()
	k := &killed{RoundTripper: w.Transport(), after: after, died: make(chan struct{})}
	k.left.Store(int64(call))
	o := w.through(k)
	o.Logger = nil
	l, err := lifecycle.New(o)
	must(w.t, err)
	// survives, and lays the eggs
	if w.Lifecycles, err = lifecycle.New(w.options()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- l.Run(ctx) }()
	go func() {
		select {
		case <-k.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	k.end = sync.OnceFunc(func() {
		cancel()
		<-ran
	})
	w.t.Cleanup(k.end)
	select {
	case <-l.Ready():
	case <-k.died:
	case <-time.After(patience):
		w.t.Fatal("the lifecycles do not get ready")
	}
	return k
}
