package trigger

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// Each test here checks one promise from inside, which a mutation run showed to be invisible from
// outside.

// stopped is a clock that does not move.
type stopped struct {
	Clock
	at time.Time
}

func (c *stopped) Now() time.Time { return c.at }

// plainTarget is a target other than a function.
type plainTarget struct{}

func (plainTarget) Deliver(_ context.Context, all []target.Delivery) []error {
	return make([]error, len(all))
}

// insideRun returns a run whose lanes do not start by themselves.
func insideRun(c Clock, p plan) *run {
	p.parallel = max(p.parallel, 1)
	r := &run{plan: &p, o: &Options{Clock: c, Resolver: deliver.ResolverFunc(func(string) (deliver.Lane, error) {
		return deliver.Lane{Name: "plain", Target: plainTarget{}}, nil
	})}}
	r.rests.to(func(time.Time) {})
	r.mu.shards = map[string]*shard{}
	return r
}

func insideLane(c Clock, p plan) *lane {
	l := newShard(context.Background(), insideRun(c, p), "shard").lanes[0]
	l.mu.working = true
	return l
}

// TestAgeCountsFromTheEndOfASecond: a record's instant is known to the second, so a record that may
// be young enough is kept.
func TestAgeCountsFromTheEndOfASecond(t *testing.T) {
	c := &stopped{at: time.Unix(1_900_000_000, 0)}
	l := insideLane(c, plan{age: time.Minute})
	p := &part{entries: []entry{{written: c.at.Add(-time.Minute - 999*time.Millisecond)}}}
	if l.dropExpired(t.Context(), p); len(p.entries) != 1 {
		t.Error("a record was abandoned that may be 59 s old")
	}
}

// TestThrottlingDoesNotCount: a throttled target uses up no retry; a failure does.
func TestThrottlingDoesNotCount(t *testing.T) {
	l := insideLane(&stopped{}, plan{})
	if l.judge(&part{}, &target.Error{Code: "Throttled", Throttled: true}).counts {
		t.Error("throttling counts against the retries")
	}
	if !l.judge(&part{}, &target.Error{Code: "Failed"}).counts {
		t.Error("a failure does not")
	}
}

// TestBatchFitsAnInvocation: a batch fits into a function's payload, and removed records no longer
// count.
func TestBatchFitsAnInvocation(t *testing.T) {
	l := insideLane(&stopped{}, plan{batch: 100})
	l.add([]entry{{json: bytes.Repeat([]byte("x"), payloadMax/2)}, {json: bytes.Repeat([]byte("x"), payloadMax/2)}, {json: []byte("x")}})
	l.mu.Lock()
	defer l.mu.Unlock()
	if batch := l.cutLocked(); len(batch) != 1 {
		t.Errorf("a batch of %d records is larger than %d bytes", len(batch), payloadMax)
	}
	if l.mu.bytes != payloadMax/2+1 {
		t.Errorf("%d bytes count as waiting, want those of two records", l.mu.bytes)
	}
}

// TestWindowBeginsWithTheFirst: later records do not extend a batching window.
func TestWindowBeginsWithTheFirst(t *testing.T) {
	c := &stopped{at: time.Unix(1_900_000_000, 0)}
	l := insideLane(c, plan{batch: 100, window: time.Minute})
	began := c.at
	l.add([]entry{{json: []byte("x")}})
	c.at = c.at.Add(30 * time.Second)
	l.add([]entry{{json: []byte("x")}})
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.since.Equal(began) {
		t.Errorf("the window began %s after the first record", l.mu.since.Sub(began))
	}
}

// TestReadingsDoNotOverlap: a new reading of a shard waits for the lanes of the reading before.
func TestReadingsDoNotOverlap(t *testing.T) {
	r := insideRun(&stopped{}, plan{})
	first, err := r.shard(context.WithValue(t.Context(), ctxKey{}, 1), "shard")
	if err != nil {
		t.Fatal(err)
	}
	first.ends.Add(1)
	again := make(chan error, 1)
	go func() {
		_, err := r.shard(context.WithValue(t.Context(), ctxKey{}, 2), "shard")
		again <- err
	}()
	select {
	case <-again:
		t.Error("a second reading began while a lane of the first works")
	case <-time.After(20 * time.Millisecond):
	}
	first.ends.Done()
	if err := <-again; err != nil {
		t.Error(err)
	}
}

type ctxKey struct{}

// TestSilentTargetIsTriedAtLeisure: after a round without a success, all records with an attempt
// pause, and those without one do not.
func TestSilentTargetIsTriedAtLeisure(t *testing.T) {
	c := &stopped{at: time.Unix(1_900_000_000, 0)}
	l := insideLane(c, plan{})
	l.o.Backoff, l.o.Jitter = deliver.Backoff{First: time.Second, Most: time.Minute}, func() float64 { return 0.5 }
	record := func(key string, invoked int) *part {
		return &part{entries: []entry{{key: []byte(key)}}, invoked: invoked}
	}
	failed, before, fresh := record("failed", 1), record("before", 1), record("fresh", 0)
	all := []*part{failed, before, fresh}
	l.failures = 9
	l.pauseSingles(all[:1], false)
	round, next := l.firstOfKeys(all)
	if len(round) != 1 || round[0] != fresh || !next.Equal(c.at.Add(30*time.Second)) {
		t.Errorf("a round of %d, and the next after %s", len(round), next.Sub(c.at))
	}
	l.pauseSingles(all[:1], true)
	if round, _ := l.firstOfKeys(all); len(round) != 2 || round[0] != fresh || round[1] != before {
		t.Errorf("after a success, a round of %d", len(round))
	}
}

// sleepless is a stopped clock that counts the sleeps.
type sleepless struct {
	stopped
	slept int
}

func (c *sleepless) Sleep(context.Context, int64, <-chan struct{}) error {
	c.slept++
	return nil
}

// TestRecordsBeforeAPauseEndIt: a lane does not pause if records have arrived just before.
func TestRecordsBeforeAPauseEndIt(t *testing.T) {
	c := &sleepless{}
	l := insideLane(c, plan{batch: 100})
	l.add([]entry{{json: []byte("x")}})
	l.awaitMore(t.Context(), c.at.Add(time.Hour))
	if got := l.more(); c.slept != 0 || len(got) != 1 {
		t.Errorf("%d sleeps, and %d records of 1", c.slept, len(got))
	}
	if l.awaitMore(t.Context(), c.at.Add(time.Hour)); c.slept != 1 {
		t.Errorf("%d sleeps without records, want 1", c.slept)
	}
}
