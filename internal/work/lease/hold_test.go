package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/lease"
)

// fleet is a group of workers that hold leases of one consumer. It records the running leases.
type fleet struct {
	t     *testing.T
	db    *dynamodb.Client
	names []string
	mu    sync.Mutex
	// by lease: "worker term" of those that run it, and "both" would show here
	at    map[string]string
	wrong []string
}

// holder is one worker of it.
type holder struct {
	cut  atomic.Bool // its network is gone
	stop func() error
}

type cuttable struct {
	dynamodb.HTTPClient
	cut *atomic.Bool
}

func (c cuttable) Do(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errNetwork
	}
	response, err := c.HTTPClient.Do(r)
	if c.cut.Load() {
		return nil, errNetwork
	}
	return response, err
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{t: t, db: open(t), at: map[string]string{}}
	for i := range n {
		f.names = append(f.names, fmt.Sprintf("%02d", i))
	}
	return f
}

// join starts a worker whose leases call run; nil: wait.
func (f *fleet) join(name string, run func(ctx context.Context, l *lease.Lease) error) *holder {
	h := &holder{}
	o := f.db.Options()
	o.HTTPClient = cuttable{o.HTTPClient, &h.cut}
	leases := lease.New(dynamodb.New(o), "c", lease.Options{Owner: name})
	if run == nil {
		run = func(ctx context.Context, l *lease.Lease) error { <-ctx.Done(); return ctx.Err() }
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- lease.Hold(ctx, leases, f.names, func(ctx context.Context, l *lease.Lease) error {
			f.begin(name, l)
			defer f.end(name, l)
			return run(ctx, l)
		})
	}()
	h.stop = func() error { cancel(); return <-ended }
	return h
}

func (f *fleet) begin(name string, l *lease.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.at[l.Shard()]; other != "" {
		f.wrong = append(f.wrong, fmt.Sprintf("%s has %s while %s has it", name, l.Shard(), other))
	}
	f.at[l.Shard()] = name
}

func (f *fleet) end(name string, l *lease.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[l.Shard()] == name {
		delete(f.at, l.Shard())
	}
}

// shares returns the number of leases that each worker runs.
func (f *fleet) shares() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, name := range f.at {
		n[name]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s:%d", name, n[name]))
	}
	return strings.Join(parts, " ")
}

func (f *fleet) want(shares string, within time.Duration) {
	f.t.Helper()
	for began := time.Now(); f.shares() != shares; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) >= within {
			f.t.Fatalf("after %s the shares are %s, want %s", within, f.shares(), shares)
		}
	}
}

// Workers that come and go share the leases fairly. The lease of a worker that ends is free at
// once, and the lease of one that is cut off after about its duration. No two workers run the same
// lease.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 6)
		a := f.join("a", nil)
		f.want("a:6", time.Second)
		b := f.join("b", nil)
		f.want("a:3 b:3", 8*time.Second)
		c, d := f.join("c", nil), f.join("d", nil)
		f.want("a:2 b:2 c:1 d:1", 8*time.Second)
		time.Sleep(time.Minute) // and it stays like that
		f.want("a:2 b:2 c:1 d:1", 0)
		must(t, b.stop())
		f.want("a:2 c:2 d:2", 6*time.Second)
		a.cut.Store(true)
		f.want("c:3 d:3", 13*time.Second)
		a.cut.Store(false) // back it comes
		f.want("a:2 c:2 d:2", 20*time.Second)
		for _, h := range []*holder{a, c, d} {
			must(t, h.stop())
		}
		for shard, r := range rows(t, lease.New(f.db, "c", lease.Options{})) {
			if r.Owner != "" || strings.HasPrefix(shard, "worker/") {
				t.Errorf("after all have ended there is %+v", r)
			}
		}
		if len(f.wrong) > 0 {
			t.Error(f.wrong)
		}
	})
}

// Each worker has its part of each kind of leases, not all leases of the kind that is work.
func TestHoldKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0)
		f.names = []string{"patrol/0", "patrol/1", "patrol/2", "patrol/3", "sweep/0", "sweep/1", "sweep/2", "sweep/3"}
		var all []*holder
		for _, worker := range []string{"a", "b"} {
			all = append(all, f.join(worker, nil))
			time.Sleep(20 * time.Second)
		}
		f.want("a:4 b:4", 0)
		sweeps := map[string]int{}
		for name, worker := range f.at {
			if strings.HasPrefix(name, "sweep/") {
				sweeps[worker]++
			}
		}
		if sweeps["a"] != 2 || sweeps["b"] != 2 {
			t.Errorf("the workers have these numbers of sweeps: %v", sweeps)
		}
		for _, h := range all {
			must(t, h.stop())
		}
	})
}

// Leases that are done are left alone. When all are, every worker's Hold ends.
func TestHoldUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5)
		var ran atomic.Int64
		work := func(ctx context.Context, l *lease.Lease) error {
			if l.Term() == 1 { // at the first time only a part is done
				time.Sleep(time.Second)
				// even if the lease is to be left to the other worker: shares shrink as leases are
				// done
				return l.Save(context.WithoutCancel(ctx), "half")
			}
			if l.Checkpoint() != "half" {
				t.Errorf("%s goes on at %q", l.Shard(), l.Checkpoint())
			}
			ran.Add(1)
			return l.Save(context.WithoutCancel(ctx), lease.Done)
		}
		workers := []*holder{f.join("a", work), f.join("b", work)}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ran.Load() != 5 || len(f.wrong) > 0 {
			t.Errorf("%d of 5 were done once; %v", ran.Load(), f.wrong)
		}
		for _, w := range workers {
			must(t, w.stop())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(t, lease.Hold(ctx, lease.New(f.db, "c", lease.Options{}), f.names, work))
		if ctx.Err() != nil || ran.Load() != 5 {
			t.Error("a worker that comes when all is done does not end at once")
		}
	})
}

// A worker that was paused for longer than its leases last notices the loss, writes nothing, and
// stops.
func TestHoldPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		var paused *lease.Lease
		stopped := make(chan error, 1)
		a := f.join("a", func(ctx context.Context, l *lease.Lease) error {
			paused = l
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return ctx.Err()
		})
		f.want("a:1", time.Second)
		a.cut.Store(true)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if !paused.Held() {
			t.Error("not held although nobody can have taken it")
		}
		time.Sleep(5 * time.Second)
		if err := <-stopped; paused.Held() || !errors.Is(err, lease.ErrLost) {
			t.Errorf("held: %v; stopped because of %v", paused.Held(), err)
		}
		b := f.join("b", nil)
		time.Sleep(20 * time.Second)
		a.cut.Store(false)
		if err := paused.Save(t.Context(), "late"); !errors.Is(err, lease.ErrLost) {
			t.Errorf("a late checkpoint: %v", err)
		}
		must(t, a.stop())
		must(t, b.stop())
	})
}

// A single worker takes all leases at once and never beats. It does not take a lease whose run ends
// by itself in a busy loop.
func TestHoldAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		var calls, ran atomic.Int64
		o := db.Options()
		o.HTTPClient = flaky{o.HTTPClient, func() bool { calls.Add(1); return false }, func() bool { return false }}
		leases := lease.New(dynamodb.New(o), "c", lease.Options{Exclusive: true})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- lease.Hold(ctx, leases, []string{"a", "b", "c"}, func(ctx context.Context, l *lease.Lease) error {
				if l.Shard() == "b" {
					ran.Add(1)
					return nil
				}
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(100*time.Second + 500*time.Millisecond)
		if n := ran.Load(); n != 101 {
			t.Errorf("what ends by itself ran %d times in 100 s", n)
		}
		if n := calls.Load(); n > 3*101+20 {
			t.Errorf("%d calls", n)
		}
		cancel()
		must(t, <-ended)
	})
}

// An error of run ends everything, and so does a fatal one of the table; others are asked again.
func TestHoldErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		wrong := errors.New("wrong")
		began := make(chan struct{})
		err := lease.Hold(t.Context(), lease.New(db, "c", lease.Options{}), []string{"a", "b"}, func(ctx context.Context, l *lease.Lease) error {
			if l.Shard() == "a" {
				close(began)
				<-ctx.Done()
				return ctx.Err()
			}
			<-began
			return fmt.Errorf("b: %w", wrong)
		})
		if !errors.Is(err, wrong) {
			t.Errorf("ended with %v", err)
		}
		o := db.Options()
		failures := 0
		o.HTTPClient = flaky{o.HTTPClient, func() bool { failures++; return failures < 20 }, func() bool { return false }}
		leases := lease.New(dynamodb.New(o), "c", lease.Options{})
		must(t, lease.Hold(t.Context(), leases, []string{"a"}, func(ctx context.Context, l *lease.Lease) error { return l.Save(ctx, lease.Done) }))
		failures = 0
		fatal := func(err error) bool { return errors.Is(err, errNetwork) }
		err = lease.Hold(t.Context(), lease.New(dynamodb.New(o), "c", lease.Options{Fatal: fatal}), []string{"x"}, nil)
		if !errors.Is(err, errNetwork) {
			t.Errorf("ended with %v", err)
		}
	})
}

// A single worker also takes a lease that an earlier process began to take, in a write between the
// worker's poll and its own.
func TestHoldAfterLateTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		earlier := lease.New(db, "c", lease.Options{Exclusive: true})
		_, err := earlier.Take(t.Context(), lease.Row{Shard: "a"})
		must(t, err)
		o := db.Options()
		late := sync.OnceFunc(func() {
			if _, err := earlier.Take(t.Context(), rows(t, earlier)["a"]); err != nil {
				t.Error(err)
			}
		})
		// behind the look
		o.HTTPClient = flaky{o.HTTPClient, func() bool { return false }, func() bool { late(); return false }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ran := false
		must(t, lease.Hold(ctx, lease.New(dynamodb.New(o), "c", lease.Options{Exclusive: true}), []string{"a"}, func(ctx context.Context, l *lease.Lease) error {
			ran = true
			return l.Save(ctx, lease.Done)
		}))
		if !ran {
			t.Error("the lease was not taken in a minute")
		}
	})
}

// Names that come up while others are held, as the children of a shard that was read to its end,
// are held in their turn; an error of the list is asked again, unless it is fatal.
func TestHoldListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("it cannot be listed")
		fatal := false
		leases := lease.New(open(t), "c", lease.Options{Fatal: func(err error) bool { return fatal && errors.Is(err, wrong) }})
		failures := 3
		children := map[string][]string{"a": {"b", "c"}, "b": {"d"}}
		list := func(_ context.Context, rows map[string]lease.Row) ([]string, error) {
			if failures--; failures >= 0 {
				return nil, wrong
			}
			names := []string{"a"}
			for _, parent := range []string{"a", "b"} {
				if rows[parent].Checkpoint == lease.Done {
					names = append(names, children[parent]...)
				}
			}
			return names, nil
		}
		var mu sync.Mutex
		var ran []string
		must(t, lease.HoldListed(t.Context(), leases, list, func(ctx context.Context, l *lease.Lease) error {
			mu.Lock()
			ran = append(ran, l.Shard())
			mu.Unlock()
			return l.Save(ctx, lease.Done)
		}))
		if sorted := slices.Sorted(slices.Values(ran)); strings.Join(sorted, " ") != "a b c d" || ran[0] != "a" || slices.Index(ran, "d") < slices.Index(ran, "b") {
			t.Errorf("ran are %s", ran)
		}
		failures, fatal = 1, true
		if err := lease.HoldListed(t.Context(), leases, list, nil); !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
	})
}
