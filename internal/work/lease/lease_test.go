package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) *dynamodb.Client {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db.DynamoDB()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rows reads the leases of a worker.
func rows(t testing.TB, l *lease.Leases) map[string]lease.Row {
	t.Helper()
	all, err := l.Rows(t.Context())
	must(t, err)
	return all
}

// If workers reach for one lease at once, one gets it. Its term is one more than the previous
// owner's.
func TestOneTakes(t *testing.T) {
	db := open(t)
	for term := int64(1); term <= 5; term++ {
		var mu sync.Mutex
		var taken []*lease.Lease
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				l := lease.New(db, "c", lease.Options{Exclusive: true})
				all, err := l.Rows(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				row := all["s"]
				row.Shard = "s"
				if row.Term >= term { // another has been faster by now
					return
				}
				h, err := l.Take(t.Context(), row)
				if errors.Is(err, lease.ErrLost) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, h)
			})
		}
		workers.Wait()
		if len(taken) != 1 || taken[0].Term() != term {
			t.Fatalf("term %d: %d have taken it", term, len(taken))
		}
	}
}

// If two workers both believe that they hold the lease, only the one with the higher term writes,
// so a checkpoint never goes back.
func TestSplit(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	a, b := lease.New(db, "c", lease.Options{}), lease.New(db, "c", lease.Options{Exclusive: true})
	first, err := a.Take(ctx, lease.Row{Shard: "s"})
	must(t, err)
	must(t, first.Save(ctx, "10"))
	second, err := b.Take(ctx, rows(t, b)["s"])
	must(t, err)
	if second.Checkpoint() != "10" || second.Term() != 2 {
		t.Errorf("taken over at %q in term %d", second.Checkpoint(), second.Term())
	}
	must(t, second.Save(ctx, "30"))
	for what, err := range map[string]error{"save": first.Save(ctx, "20"), "beat": first.Beat(ctx), "take": second.Beat(ctx)} {
		if (what == "take") != (err == nil) || err != nil && !errors.Is(err, lease.ErrLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, first.Release(ctx))
	if r := rows(t, a)["s"]; r.Checkpoint != "30" || r.Owner != b.Owner() {
		t.Errorf("the row is %+v", r)
	}
}

// A lease is taken over when it has not changed for its duration as the taker sees it, at once when
// it was released, and not while it is renewed.
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		ctx := t.Context()
		a, b := lease.New(db, "c", lease.Options{}), lease.New(db, "c", lease.Options{})
		h, err := a.Take(ctx, lease.Row{Shard: "s"})
		must(t, err)
		time.Sleep(time.Hour) // for b, which has not looked yet, this is nothing
		if b.Free(rows(t, b)["s"]) {
			t.Error("free at first sight")
		}
		for range 5 {
			time.Sleep(8 * time.Second)
			if b.Free(rows(t, b)["s"]) {
				t.Error("free although its owner lives")
			}
			must(t, h.Beat(ctx))
		}
		rows(t, b)
		time.Sleep(10*time.Second - time.Nanosecond)
		if b.Free(rows(t, b)["s"]) {
			t.Error("free too early")
		}
		time.Sleep(time.Nanosecond)
		if !b.Free(rows(t, b)["s"]) {
			t.Error("not free after its duration")
		}
		taken, err := b.Take(ctx, rows(t, b)["s"])
		must(t, err)
		if err := h.Save(ctx, "1"); !errors.Is(err, lease.ErrLost) {
			t.Errorf("the owner before: %v", err)
		}
		must(t, taken.Release(ctx))
		if !a.Free(rows(t, a)["s"]) {
			t.Error("not free although released")
		}
	})
}

// flaky fails calls, before they are made or after, as a network does.
type flaky struct {
	dynamodb.HTTPClient
	before, after func() bool
}

var errNetwork = errors.New("connection reset")

func (f flaky) Do(r *http.Request) (*http.Response, error) {
	if f.before() {
		return nil, errNetwork
	}
	response, err := f.HTTPClient.Do(r)
	if err == nil && f.after() {
		response.Body.Close()
		return nil, errNetwork
	}
	return response, err
}

// Writes whose answer is lost neither cost the lease nor move a checkpoint back.
func TestLostAnswers(t *testing.T) {
	db := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	o := db.Options()
	o.HTTPClient = flaky{o.HTTPClient, func() bool { return random.IntN(4) == 0 }, func() bool { return random.IntN(4) == 0 }}
	l := lease.New(dynamodb.New(o), "c", lease.Options{})
	var h *lease.Lease
	for {
		var err error
		if h, err = l.Take(t.Context(), lease.Row{Shard: "s"}); err == nil {
			break
		}
		if errors.Is(err, lease.ErrLost) {
			t.Fatal(err)
		}
	}
	reader := lease.New(db, "c", lease.Options{})
	last := ""
	for i := range 500 {
		checkpoint := fmt.Sprintf("%05d", i)
		err := h.Save(t.Context(), checkpoint)
		if errors.Is(err, lease.ErrLost) {
			t.Fatal(err)
		}
		now := rows(t, reader)["s"].Checkpoint
		if err == nil && now != checkpoint || now < last {
			t.Fatalf("%q after %q, %q being saved: %v", now, last, checkpoint, err)
		}
		last = now
	}
}

// TestTakeTriedAgain: a take whose answer was lost succeeds when it is tried again.
func TestTakeTriedAgain(t *testing.T) {
	o := open(t).Options()
	lose := false
	o.HTTPClient = flaky{o.HTTPClient, func() bool { return false }, func() bool {
		defer func() { lose = false }()
		return lose
	}}
	db := dynamodb.New(o)
	l := lease.New(db, "c", lease.Options{})
	_, err := l.Note(t.Context(), "s", "1")
	must(t, err)
	row := rows(t, l)["s"]
	lose = true
	if _, err := l.Take(t.Context(), row); !errors.Is(err, errNetwork) {
		t.Fatalf("the answer was not lost: %v", err)
	}
	h, err := l.Take(t.Context(), row)
	must(t, err)
	if h.Term() != row.Term+1 {
		t.Errorf("term %d after %d", h.Term(), row.Term)
	}
}

// TestUnseenIsNotFree: the lease of an owner whose silence was not observed cannot be taken.
func TestUnseenIsNotFree(t *testing.T) {
	l := lease.New(open(t), "c", lease.Options{Owner: "me"})
	if l.Free(lease.Row{Shard: "s", Owner: "other", Term: 1, Beat: 1}) {
		t.Error("a row that was never looked at is free")
	}
}

// A checkpoint whose answer was lost survives the renewal and the release of the lease.
func TestLostAnswerOfACheckpoint(t *testing.T) {
	for name, after := range map[string]func(context.Context, *lease.Lease) error{
		"beat":    func(ctx context.Context, h *lease.Lease) error { return h.Beat(ctx) },
		"release": func(ctx context.Context, h *lease.Lease) error { return h.Release(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			lost := false
			o := db.Options()
			o.HTTPClient = flaky{o.HTTPClient, func() bool { return false }, func() bool { return lost }}
			l := lease.New(dynamodb.New(o), "c", lease.Options{})
			h, err := l.Take(t.Context(), lease.Row{Shard: "s"})
			must(t, err)
			must(t, h.Save(t.Context(), "1"))
			lost = true
			if err := h.Save(t.Context(), "2"); !errors.Is(err, errNetwork) {
				t.Fatalf("the answer was not lost: %v", err)
			}
			lost = false
			must(t, after(t.Context(), h))
			if now := rows(t, l)["s"].Checkpoint; now != "2" || h.Checkpoint() != "2" {
				t.Errorf("the checkpoint is %q, and the lease says %q", now, h.Checkpoint())
			}
		})
	}
}

// Note creates a row once, and Forget deletes only an unchanged row.
func TestNoteAndForget(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	l := lease.New(db, "c", lease.Options{})
	first, err := l.Note(ctx, "s", "1")
	must(t, err)
	second, err := l.Note(ctx, "s", "2")
	must(t, err)
	if first != second || second.Checkpoint != "1" {
		t.Errorf("noted %+v, then %+v", first, second)
	}
	h, err := l.Take(ctx, first)
	must(t, err)
	must(t, l.Forget(ctx, first))
	if rows(t, l)["s"].Term != h.Term() {
		t.Error("forgotten although it was taken")
	}
	must(t, l.Forget(ctx, rows(t, l)["s"]))
	if err := h.Beat(ctx); !errors.Is(err, lease.ErrLost) || len(rows(t, l)) != 0 {
		t.Errorf("after it was forgotten: %v, %v", err, rows(t, l))
	}
	again, err := l.Note(ctx, "s", "1")
	must(t, err)
	other, err := lease.New(db, "c", lease.Options{Owner: "another"}).Take(ctx, again)
	must(t, err)
	must(t, l.Forget(ctx, h.Row())) // a repeated call: the terms are the same, the owner is not
	if other.Term() != h.Term() || rows(t, l)["s"].Owner != "another" {
		t.Errorf("forgotten although it was made again: %+v", rows(t, l)["s"])
	}
	_, err = lease.New(db, "other", lease.Options{}).Note(ctx, "s", "1")
	must(t, err)
	must(t, lease.Clear(ctx, db, "c", lease.Options{}))
	if len(rows(t, l)) != 0 || len(rows(t, lease.New(db, "other", lease.Options{}))) != 1 {
		t.Error("not what was to be cleared")
	}
}

// Mark creates a row, and takes a lease from its owner without touching its checkpoint.
func TestMark(t *testing.T) {
	l := lease.New(open(t), "c", lease.Options{})
	must(t, l.Mark(t.Context(), "s"))
	h, err := l.Take(t.Context(), rows(t, l)["s"])
	must(t, err)
	must(t, h.Save(t.Context(), "1"))
	must(t, l.Mark(t.Context(), "s"))
	row := rows(t, l)["s"]
	if row.Owner != "" || row.Term <= h.Term() || row.Checkpoint != "1" {
		t.Errorf("after Mark: %+v", row)
	}
	must(t, l.Forget(t.Context(), h.Row()))
	if now := rows(t, l)["s"]; now != row {
		t.Errorf("after the row was forgotten as it was before: %+v", now)
	}
}

// Shares add up to all there is, and differ by at most one.
func TestShare(t *testing.T) {
	for n := range 20 {
		for k := 1; k < 8; k++ {
			workers := []string{"a", "b", "c", "d", "e", "f", "g"}[:k]
			var shares []int
			sum := 0
			for _, w := range workers {
				shares = append(shares, lease.Share(n, workers, w))
				sum += shares[len(shares)-1]
			}
			if sum != n || slices.Max(shares)-slices.Min(shares) > 1 {
				t.Errorf("%d among %d: %v", n, k, shares)
			}
		}
	}
}

// A worker that was silent and forgotten comes back at once, even if the others poll right after
// its return and never before.
func TestCrewComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		a, b := lease.New(db, "c", lease.Options{Owner: "a"}), lease.New(db, "c", lease.Options{Owner: "b"})
		crewA, crewB := lease.NewCrew(a), lease.NewCrew(b)
		meet := func(l *lease.Leases, crew *lease.Crew) int {
			workers, err := crew.Meet(t.Context(), rows(t, l))
			must(t, err)
			return len(workers)
		}
		meet(a, crewA)
		meet(b, crewB)
		for range 4 { // a is silent
			time.Sleep(2500 * time.Millisecond)
			meet(b, crewB)
		}
		for range 3 {
			if n := meet(a, crewA); n != 2 {
				t.Errorf("a sees %d workers", n)
			}
			if n := meet(b, crewB); n != 2 {
				t.Errorf("b sees %d workers", n)
			}
			time.Sleep(2500 * time.Millisecond)
		}
	})
}

// TestNewRowDiffersFromUnansweredBeat: a worker whose row was deleted makes one that differs from each
// version that the deleted row may have had. Otherwise a late delete of that row, or one by a worker that
// has seen it silent, deletes the new row.
func TestNewRowDiffersFromUnansweredBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		o, lose := db.Options(), false
		o.HTTPClient = flaky{o.HTTPClient, func() bool { return false }, func() bool { return lose }}
		a, b := lease.New(dynamodb.New(o), "c", lease.Options{Owner: "a"}), lease.New(db, "c", lease.Options{Owner: "b"})
		crewA, crewB := lease.NewCrew(a), lease.NewCrew(b)
		_, err := crewA.Meet(t.Context(), rows(t, a))
		must(t, err)
		before := rows(t, a)
		lose = true
		if _, err := crewA.Meet(t.Context(), before); err == nil {
			t.Fatal("the answer was not lost")
		}
		lose = false
		silent := rows(t, b)["worker/a"]
		if silent.Beat == before["worker/a"].Beat {
			t.Fatal("the write was not executed")
		}
		for range 5 {
			time.Sleep(2500 * time.Millisecond)
			_, err = crewB.Meet(t.Context(), rows(t, b))
			must(t, err)
		}
		if rows(t, b)["worker/a"].Exists() {
			t.Fatal("the silent worker's row was not deleted")
		}
		_, err = crewA.Meet(t.Context(), rows(t, a))
		must(t, err)
		if err := b.Forget(t.Context(), silent); err != nil || !rows(t, b)["worker/a"].Exists() {
			t.Errorf("a late delete of the old row deleted the new one (%v)", err)
		}
	})
}

// Workers notice each other's coming and going: at once if announced, and after the duration of a
// lease for a silent worker.
func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		member := func(name string) (*lease.Crew, func() []string) {
			l := lease.New(db, "c", lease.Options{Owner: name})
			crew := lease.NewCrew(l)
			return crew, func() []string {
				workers, err := crew.Meet(t.Context(), rows(t, l))
				must(t, err)
				return workers
			}
		}
		want := func(got []string, names ...string) {
			t.Helper()
			if !slices.Equal(got, names) {
				t.Errorf("there are %v, want %v", got, names)
			}
		}
		_, a := member("a")
		crewB, b := member("b")
		_, c := member("c")
		want(a(), "a")
		want(c(), "a", "c")
		want(b(), "a", "b", "c")
		want(a(), "a", "b", "c")
		for range 4 { // c is silent
			time.Sleep(2500 * time.Millisecond)
			b()
			a()
		}
		want(a(), "a", "b")
		want(b(), "a", "b")
		want(c(), "a", "b", "c") // it was only slow
		want(a(), "a", "b", "c")
		crewB.Leave(context.Background())
		want(a(), "a", "c")
	})
}

// The state of a lease is available even while a write of it hangs, above all how long it has been
// held.
func TestHangingWrite(t *testing.T) {
	db := open(t)
	stuck, goOn := make(chan struct{}), make(chan struct{})
	leases := lease.New(dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = hanging{o.HTTPClient, stuck, goOn}
	}), "c", lease.Options{Owner: "a"})
	l, err := leases.Take(t.Context(), lease.Row{Shard: "s"})
	must(t, err)
	saved := make(chan error, 1)
	go func() { saved <- l.Save(hangs(t.Context()), "1") }()
	<-stuck
	if l.Age() < 0 || !l.Held() || l.Checkpoint() != "" {
		t.Error("it is not told what the lease was before the write")
	}
	waits, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Beat(waits); !errors.Is(err, context.Canceled) {
		t.Errorf("a write behind one that hangs does not end with its context: %v", err)
	}
	close(goOn)
	must(t, <-saved)
	if l.Checkpoint() != "1" {
		t.Error("the write is not known")
	}
}

type hangKey struct{}

func hangs(ctx context.Context) context.Context { return context.WithValue(ctx, hangKey{}, true) }

// hanging blocks the requests whose context asks for it.
type hanging struct {
	over        dynamodb.HTTPClient
	stuck, goOn chan struct{}
}

func (h hanging) Do(r *http.Request) (*http.Response, error) {
	if r.Context().Value(hangKey{}) != nil {
		close(h.stuck)
		<-h.goOn
	}
	return h.over.Do(r)
}
