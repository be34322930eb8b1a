package due

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// drained is a drained entry with its instant of removal.
type drained struct {
	due, at int64
}

// list is a source with entries in memory.
type list struct {
	name  string
	slice int // most entries that one Drain removes
	trace *[]string
	hook  func() // called in each Drain, between removing the entries and answering
	mu    sync.Mutex
	due   []int64 // ascending
	gone  []drained
	calls int
	fail  error
}

func (l *list) Drain(_ context.Context, now int64) (int64, error) {
	l.mu.Lock()
	l.calls++
	if l.trace != nil {
		*l.trace = append(*l.trace, l.name)
	}
	if l.fail != nil {
		defer l.mu.Unlock()
		return 0, l.fail
	}
	for n := 0; n < l.slice && len(l.due) > 0 && l.due[0] <= now; n++ {
		l.gone = append(l.gone, drained{l.due[0], now})
		l.due = l.due[1:]
	}
	next := Never
	if len(l.due) > 0 {
		next = l.due[0]
	}
	l.mu.Unlock()
	if l.hook != nil {
		l.hook()
	}
	return next, nil
}

// add inserts an entry and then wakes the queue, as a commit does.
func (l *list) add(h *Handle, due int64) {
	l.mu.Lock()
	at, _ := slices.BinarySearch(l.due, due)
	l.due = slices.Insert(l.due, at, due)
	l.mu.Unlock()
	h.Wake(due)
}

func (l *list) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.due)
}

// bench is a running queue.
type bench struct {
	*Queue
	t     *testing.T
	clock *clock.Clock
	errs  []error
	stop  context.CancelFunc
	ended chan error
}

// start runs a queue inside a bubble. Its error callback collects the errors, and ends Run on
// errFatal.
func start(t *testing.T) *bench {
	ctx, stop := context.WithCancel(t.Context())
	b := &bench{t: t, clock: clock.New(), stop: stop, ended: make(chan error, 1)}
	b.Queue = New(b.clock, func(_ Source, err error) error {
		b.errs = append(b.errs, err)
		if errors.Is(err, errFatal) {
			return err
		}
		return nil
	})
	go func() { b.ended <- b.Run(ctx) }()
	synctest.Wait()
	return b
}

var errFatal = errors.New("fatal")

// end stops the queue and checks the error of Run.
func (b *bench) end() {
	b.stop()
	if err := <-b.ended; !errors.Is(err, context.Canceled) {
		b.t.Errorf("run ended with %v", err)
	}
}

func (b *bench) add(slice int) (*list, *Handle) {
	l := &list{slice: slice}
	return l, b.Add(l)
}

// Every entry is drained exactly at its instant, in any order of arrival.
func TestNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(100)
		start := b.clock.Millis()
		rng := rand.New(rand.NewPCG(1, 2))
		for range 1000 {
			l.add(h, start+1+rng.Int64N(86_400_000))
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(l.gone) != 1000 {
			t.Errorf("%d of 1000 drained", len(l.gone))
		}
		for _, d := range l.gone {
			if d.at != d.due {
				t.Fatalf("due at %d, drained at %d", d.due, d.at)
			}
		}
		if l.calls > 1000 {
			t.Errorf("drained %d times for 1000 entries", l.calls)
		}
	})
}

// An entry before the end of the queue's sleep is drained at its own instant.
func TestSoonerWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(10)
		start := b.clock.Millis()
		for _, ahead := range []int64{3_600_000, 60_000, 1000, 5000, 1} {
			l.add(h, start+ahead)
			synctest.Wait()
		}
		for _, ahead := range []int64{1, 1000, 5000, 60_000, 3_600_000} {
			if head := b.Head(); head != start+ahead || h.Head() != head {
				t.Errorf("head is %d, want %d", head-start, ahead)
			}
			time.Sleep(time.Duration(start+ahead-b.clock.Millis()) * time.Millisecond)
			synctest.Wait()
			if last := l.gone[len(l.gone)-1]; last != (drained{start + ahead, start + ahead}) {
				t.Errorf("last drained %+v, want %d", last, start+ahead)
			}
		}
		if b.Head() != Never || b.Lateness() != 0 {
			t.Errorf("head %d, lateness %v of an empty queue", b.Head(), b.Lateness())
		}
	})
}

// A Drain may miss an entry whose Wake comes while it runs. The later head that it returns does not
// lose that entry.
func TestNoneLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(10)
		start := b.clock.Millis()
		l.hook = func() {
			l.hook = nil
			l.add(h, start+2000)
			if head := b.Head(); head != start+1000 {
				t.Errorf("head during the drain is %d", head-start)
			}
		}
		l.add(h, start+1000)
		l.add(h, start+3_600_000)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := []drained{{start + 1000, start + 1000}, {start + 2000, start + 2000}}; !slices.Equal(l.gone, want) {
			t.Errorf("drained %v, want %v", l.gone, want)
		}
	})
}

// Wakes from many goroutines during drains all lead to a drain.
func TestWakesUnderLoad(t *testing.T) {
	c := clock.New()
	ctx, stop := context.WithCancel(t.Context())
	q := New(c, func(_ Source, err error) error { return err })
	l := &list{slice: 3}
	h := q.Add(l)
	ended := make(chan error)
	go func() { ended <- q.Run(ctx) }()
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for n := range int64(500) {
				l.add(h, c.Millis()+n%3)
			}
		})
	}
	writers.Wait()
	end := c.Millis() + 3
	if err := errors.Join(c.Sleep(ctx, end, nil), q.Settled(ctx, end)); err != nil {
		t.Fatal(err)
	}
	if l.left() != 0 || len(l.gone) != 2000 {
		t.Errorf("%d left, %d drained", l.left(), len(l.gone))
	}
	stop()
	<-ended
}

// One source's burst lets every other due source through between two of its slices.
func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		var trace []string
		at := b.clock.Millis() + 1000
		// all long, so that any source that hogs the queue is detected
		for _, name := range []string{"x", "y", "z"} {
			l, h := b.add(1)
			l.name, l.trace = name, &trace
			for range 100 {
				l.add(h, at)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		first := slices.Clone(trace[:6])
		slices.Sort(first)
		if !slices.Equal(first, []string{"x", "x", "y", "y", "z", "z"}) || len(trace) != 300 {
			t.Errorf("drained in the order %v", trace)
		}
	})
}

// With nothing due the queue does not wake once in a day.
func TestIdleIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		far, farHandle := b.add(10)
		far.add(farHandle, b.clock.Millis()+7*86_400_000)
		b.add(10)
		synctest.Wait()
		passes, before := b.passes.Load(), testkit.Wakeups()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := b.passes.Load() - passes; got != 0 {
			t.Errorf("looked %d times in an idle day", got)
		}
		if n := testkit.Wakeups() - before; n > 100 {
			t.Errorf("%d wake-ups in an idle day", n)
		}
		farHandle.Wake(Never)
		farHandle.Wake(far.due[0] + 1)
		synctest.Wait()
		if got := b.passes.Load() - passes; got != 0 || far.calls != 0 {
			t.Errorf("looked %d times because of wakes that are not sooner", got)
		}
	})
}

// The queue follows its clock: frozen it does nothing, advanced it drains the entries that became
// due.
func TestClockMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(1)
		b.clock.Freeze()
		start := b.clock.Millis()
		for _, ahead := range []int64{1000, 1000, 2000} {
			l.add(h, start+ahead)
		}
		time.Sleep(time.Hour)
		if l.calls != 0 {
			t.Error("drained while the clock was frozen")
		}
		for _, step := range []struct{ ahead, left int64 }{{999, 3}, {1000, 1}, {1999, 1}, {2000, 0}} {
			if err := b.clock.Set(time.UnixMilli(start + step.ahead)); err != nil {
				t.Fatal(err)
			}
			if err := b.Settled(t.Context(), start+step.ahead); err != nil {
				t.Fatal(err)
			}
			if got := l.left(); got != int(step.left) {
				t.Errorf("at %d: %d left, want %d", step.ahead, got, step.left)
			}
		}
	})
}

// Settled waits for due entries and for running Drains, and for nothing else.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(1)
		start := b.clock.Millis()
		hold := make(chan struct{})
		l.hook = func() { <-hold }
		l.add(h, start+1000)
		l.add(h, start+9000)
		time.Sleep(4 * time.Second)
		if b.IsSettled(start) || b.Head() != start+1000 || b.Lateness() != 3*time.Second {
			t.Errorf("during a drain: settled %v, head %d, lateness %v", b.IsSettled(start), b.Head()-start, b.Lateness())
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Settled(short, start); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("settled during a drain: %v", err)
		}
		settled := make(chan error)
		go func() { settled <- b.Settled(t.Context(), start+8999) }()
		hold <- struct{}{}
		if err := <-settled; err != nil {
			t.Error(err)
		}
		if b.IsSettled(start+9000) || !b.IsSettled(start+8999) {
			t.Error("what is due at 9000 is settled before, or what is due earlier is not settled")
		}
		l.hook = nil
		h.Remove()
		if !b.IsSettled(Never-1) || b.Head() != Never {
			t.Error("a removed source still counts")
		}
	})
}

// A failing source is retried at growing intervals, and recovers; the others continue meanwhile.
func TestErrorsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		bad, badHandle := b.add(1)
		good, goodHandle := b.add(1)
		bad.fail = errors.New("no")
		start := b.clock.Millis()
		bad.add(badHandle, start)
		b.clock.Freeze()
		synctest.Wait()
		for n := range int64(10) {
			good.add(goodHandle, start-n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if good.left() != 0 {
			t.Errorf("%d left of a source that does not fail", good.left())
		}
		// 10 ms, 20, … 2560 make 5110 ms for nine tries more; then one each 5 s.
		if want := 1 + 9 + 10; bad.calls != want || len(b.errs) != want {
			t.Errorf("tried %d times in a minute, %d errors, want %d", bad.calls, len(b.errs), want)
		}
		bad.mu.Lock()
		bad.fail = nil
		bad.mu.Unlock()
		if err := b.Settled(t.Context(), start); err != nil || bad.left() != 0 {
			t.Errorf("%v, %d left after recovery", err, bad.left())
		}
		bad.mu.Lock()
		bad.fail, bad.calls = errors.New("again"), 0
		bad.mu.Unlock()
		bad.add(badHandle, start)
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if bad.calls != 3 { // at once, after 10 ms and after 20 ms more
			t.Errorf("tried %d times in the first 50 ms after a recovery, want 3: the pauses begin anew", bad.calls)
		}
	})
}

// A call that waits for a failing source continues when the source is removed.
func TestRemoveSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(1)
		l.fail = errors.New("no")
		start := b.clock.Millis()
		l.add(h, start)
		time.Sleep(6 * time.Second) // fails, and pauses for 5 s
		settled := make(chan error, 1)
		go func() { settled <- b.Settled(t.Context(), start) }()
		synctest.Wait()
		h.Remove()
		synctest.Wait()
		select {
		case err := <-settled:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("removing the source did not wake the waiter")
		}
	})
}

// A new source with an unknown head is not reported as late since before 1970.
func TestLatenessOfUnknownHead(t *testing.T) {
	for _, head := range []int64{math.MinInt64, -1000} {
		q := New(clock.NewFrozenAt(time.UnixMilli(1000)), nil)
		q.Add(&list{}).Wake(head)
		if late := q.Lateness(); late != time.Second {
			t.Errorf("%v late, want the second since 1970", late)
		}
	}
}

// A fatal error of the callback ends Run, and a new Run begins afresh.
func TestFatalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		other, otherHandle := b.add(1)
		other.fail = errors.New("not fatal")
		other.add(otherHandle, 0)
		synctest.Wait()
		l, h := b.add(1)
		l.fail = errFatal
		l.add(h, 0)
		if err := <-b.ended; !errors.Is(err, errFatal) {
			t.Errorf("run ended with %v", err)
		}
		l.fail, other.fail = nil, nil
		if err := b.drainDue(t.Context()); err != nil || l.left() != 0 || other.left() != 0 {
			t.Errorf("%v, %d and %d left", err, l.left(), other.left())
		}
	})
}

// A context that ends during a drain ends Run with its own error, not with the source's.
func TestCancelDuringDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		l, h := b.add(1)
		l.fail = errFatal
		b.clock.Freeze()
		synctest.Wait()
		b.stop()
		synctest.Wait()
		l.add(h, 0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.drain(ctx, h); !errors.Is(err, context.Canceled) || len(b.errs) != 0 {
			t.Errorf("%v, reported %v", err, b.errs)
		}
		if err := b.drainDue(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		<-b.ended
	})
}

// A head that is too early costs one drain, which corrects it.
func TestEarlyHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		defer b.end()
		l, h := b.add(1)
		start := b.clock.Millis()
		l.add(h, start+5000)
		h.Wake(start + 1000)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.calls != 1 || len(l.gone) != 0 || b.Head() != start+5000 {
			t.Errorf("%d calls, %d gone, head %d", l.calls, len(l.gone), b.Head()-start)
		}
	})
}
