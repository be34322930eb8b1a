package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// A worker that has leases and nothing to do makes as many requests as one that has none: a write,
// a look, four times in the duration.
func TestHoldIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		var calls atomic.Int64
		o := db.Options()
		o.HTTPClient = flaky{o.HTTPClient, func() bool { calls.Add(1); return false }, func() bool { return false }}
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("%02d", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var held sync.Map
		ended := make(chan error, 1)
		go func() {
			ended <- lease.Hold(ctx, lease.New(dynamodb.New(o), "c", lease.Options{}), names, func(ctx context.Context, l *lease.Lease) error {
				held.Store(l.Shard(), l)
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Minute)
		before := calls.Load()
		time.Sleep(100 * time.Second)
		if n := calls.Load() - before; n > 2*41 {
			t.Errorf("%d requests in 100 s", n)
		}
		n := 0
		held.Range(func(_, l any) bool {
			if n++; !l.(*lease.Lease).Held() || l.(*lease.Lease).Age() > 3*time.Second {
				t.Errorf("%s is held: %v, of age %v", l.(*lease.Lease).Shard(), l.(*lease.Lease).Held(), l.(*lease.Lease).Age())
			}
			return true
		})
		if n != 50 {
			t.Errorf("%d of 50 are held", n)
		}
		cancel()
		must(t, <-ended)
	})
}

// slow lets requests take long, on their way there and back, or never arrive.
type slow struct {
	over  dynamodb.HTTPClient
	mood  *atomic.Int64 // up to so many ms each way
	roll  func(n int) int
	never int // of 100
}

func (s slow) Do(r *http.Request) (*http.Response, error) {
	there, back := s.roll(1+int(s.mood.Load())), s.roll(1+int(s.mood.Load()))
	if err := travel(r.Context(), there); err != nil || s.mood.Load() > 100 && s.roll(100) < s.never {
		return nil, errNetwork
	}
	// a request under way arrives
	answer, err := s.over.Do(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		return nil, err
	}
	if err := travel(r.Context(), back); err != nil {
		return nil, err
	}
	return answer, nil
}

func travel(ctx context.Context, ms int) error {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// However slow the network is, no two workers hold a lease at once, each by its own clock, and when
// it is well again all leases are held.
func TestHeldByOne(t *testing.T) {
	// Go 1.26's race detector has one context for all timers of a bubble. It crashes or reports races that do not exist if goroutines on two processors receive from expired timers at once.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { heldByOne(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func heldByOne(t *testing.T, dice *rand.Rand) {
	var mu sync.Mutex
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	db := open(t)
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprintf("%02d", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	runs := map[*lease.Lease]bool{} // guarded by mu
	var moods []*atomic.Int64
	var workers sync.WaitGroup
	for w := range 3 {
		moods = append(moods, &atomic.Int64{})
		o := db.Options()
		o.HTTPClient = slow{o.HTTPClient, moods[w], roll, 10}
		leases := lease.New(dynamodb.New(o), "c", lease.Options{Owner: fmt.Sprint(w)})
		workers.Go(func() {
			must(t, lease.Hold(ctx, leases, names, func(ctx context.Context, l *lease.Lease) error {
				mu.Lock()
				runs[l] = true
				mu.Unlock()
				<-ctx.Done()
				return ctx.Err()
			}))
		})
	}
	taken := 0
	for until := time.Now().Add(10 * time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if roll(500) == 0 { // for some ten seconds
			moods[roll(3)].Store([]int64{0, 50, 2000, 6000, 20000}[roll(5)])
		}
		mu.Lock()
		by := map[string]int64{}
		for l := range runs {
			if !l.Held() {
				continue
			}
			if other, is := by[l.Shard()]; is {
				t.Errorf("%s is held in the terms %d and %d at once", l.Shard(), other, l.Term())
			}
			by[l.Shard()] = l.Term()
		}
		taken = len(runs)
		mu.Unlock()
	}
	for _, m := range moods {
		m.Store(0)
	}
	time.Sleep(time.Minute)
	held := 0
	mu.Lock()
	for l := range runs {
		if l.Held() {
			held++
		}
	}
	mu.Unlock()
	if held != len(names) {
		t.Errorf("%d of %d leases are held when all is well", held, len(names))
	}
	t.Logf("leases were taken %d times", taken)
	cancel()
	workers.Wait()
}

// A worker's own row renews its leases only without a gap: when it was away for the duration of a
// lease, it holds none until it has written it, whether its row is a new one or the renewal was
// just very slow.
func TestPresenceAfterGap(t *testing.T) {
	for _, what := range []string{"forgotten", "slow"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := open(t)
				stuck, goOn := make(chan struct{}), make(chan struct{})
				a := lease.New(dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.HTTPClient = hanging{o.HTTPClient, stuck, goOn} }), "c", lease.Options{Owner: "a"})
				b := lease.New(db, "c", lease.Options{Owner: "b"})
				crewA, crewB := lease.NewCrew(a), lease.NewCrew(b)
				_, err := crewA.Meet(t.Context(), rows(t, a))
				must(t, err)
				taken, err := a.Take(t.Context(), lease.Row{Shard: "taken"})
				must(t, err)
				kept, err := a.Take(t.Context(), lease.Row{Shard: "kept"})
				must(t, err)
				for range 3 {
					time.Sleep(8 * time.Second)
					_, err = crewA.Meet(t.Context(), rows(t, a))
					must(t, err)
				}
				if !taken.Held() || taken.Age() != 0 || b.Free(rows(t, b)["taken"]) {
					t.Error("the worker's own row does not renew its leases")
				}
				before := rows(t, a)
				met := make(chan error, 1)
				if what == "slow" {
					go func() {
						_, err := crewA.Meet(hangs(t.Context()), before)
						met <- err
					}()
					<-stuck
				}
				time.Sleep(10 * time.Second)
				if taken.Held() {
					t.Error("held for longer than its duration")
				}
				if !b.Free(rows(t, b)["taken"]) {
					t.Fatal("not free after its duration")
				}
				_, err = b.Take(t.Context(), rows(t, b)["taken"])
				must(t, err)
				if what == "slow" {
					close(goOn)
					must(t, <-met)
				} else {
					_, err = crewB.Meet(t.Context(), rows(t, b))
					must(t, err)
				}
				_, err = crewA.Meet(t.Context(), rows(t, a))
				must(t, err)
				if taken.Held() || kept.Held() {
					t.Error("held although another worker may have it")
				}
				if err := taken.Beat(t.Context()); !errors.Is(err, lease.ErrLost) {
					t.Errorf("the beat of a lease that another worker has taken: %v", err)
				}
				must(t, kept.Beat(t.Context()))
				time.Sleep(8 * time.Second)
				_, err = crewA.Meet(t.Context(), rows(t, a))
				must(t, err)
				time.Sleep(8 * time.Second)
				if taken.Held() || !kept.Held() {
					t.Errorf("held: %v and %v", taken.Held(), kept.Held())
				}
			})
		})
	}
}

// A write that has come through late, although it seemed to fail, is not taken for the one that
// follows: others have seen it for long by then.
func TestLateBeatRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		o := db.Options()
		lost := false
		o.HTTPClient = flaky{o.HTTPClient, func() bool { return false }, func() bool { return lost }}
		a, b := lease.New(dynamodb.New(o), "c", lease.Options{Owner: "a"}), lease.New(db, "c", lease.Options{Owner: "b"})
		l, err := a.Take(t.Context(), lease.Row{Shard: "s"})
		must(t, err)
		lost = true
		if err := l.Beat(t.Context()); err == nil {
			t.Fatal("the answer was not lost")
		}
		lost = false
		rows(t, b)
		time.Sleep(9 * time.Second)
		must(t, l.Beat(t.Context()))
		time.Sleep(2 * time.Second)
		if b.Free(rows(t, b)["s"]) && l.Held() {
			t.Error("free for one, and held by the other")
		}
	})
}

// An owner whose clock stood still, as on a machine that sleeps, does not notice the gap. Its own
// row reveals it: a taker deletes the row before it takes the leases, and leaves them if the row
// has changed by then.
func TestOwnerWhoseClockStops(t *testing.T) {
	db := open(t)
	var clockB time.Duration
	a := lease.New(db, "c", lease.Options{Owner: "a", Elapsed: func() time.Duration { return time.Second }})
	b := lease.New(db, "c", lease.Options{Owner: "b", Elapsed: func() time.Duration { return clockB }})
	crewA, crewB := lease.NewCrew(a), lease.NewCrew(b)
	meetA := func() {
		_, err := crewA.Meet(t.Context(), rows(t, a))
		must(t, err)
	}
	meetA()
	l, err := a.Take(t.Context(), lease.Row{Shard: "s"})
	must(t, err)
	rows(t, b)
	clockB += 20 * time.Second
	read := rows(t, b)
	if !b.Free(read["s"]) {
		t.Fatal("not free after its duration")
	}
	meetA() // it is awake again
	workers, err := crewB.Meet(t.Context(), read)
	must(t, err)
	if b.Free(read["s"]) || len(workers) != 2 {
		t.Errorf("the leases of a worker that has just shown itself are free: %v, and there are %v", b.Free(read["s"]), workers)
	}
	clockB += 20 * time.Second
	read = rows(t, b)
	_, err = crewB.Meet(t.Context(), read)
	must(t, err)
	_, err = b.Take(t.Context(), read["s"])
	must(t, err)
	meetA()
	if err := l.Beat(t.Context()); l.Held() || !errors.Is(err, lease.ErrLost) {
		t.Errorf("held: %v, and the beat: %v", l.Held(), err)
	}
}

// A poll reveals to an owner that it has lost a lease, although its own row is renewed: the lease's
// row was deleted, or a worker with shorter leases took it.
func TestLookShowsLoss(t *testing.T) {
	for _, what := range []string{"deleted", "taken"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1)
				var ran atomic.Int64
				w := f.join("a", func(ctx context.Context, _ *lease.Lease) error {
					ran.Add(1)
					<-ctx.Done()
					return ctx.Err()
				})
				time.Sleep(time.Minute)
				b := lease.New(f.db, "c", lease.Options{Owner: "b", Exclusive: true})
				row := rows(t, b)["00"]
				if what == "deleted" {
					must(t, b.Forget(t.Context(), row))
				} else {
					l, err := b.Take(t.Context(), row)
					must(t, err)
					must(t, l.Release(t.Context()))
				}
				time.Sleep(10 * time.Second)
				if ran.Load() != 2 {
					t.Errorf("it ran %d times", ran.Load())
				}
				must(t, w.stop())
			})
		})
	}
}
