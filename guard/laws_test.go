package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/index"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/faulttest"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/consume"
)

// The laws of guard, for all strategies, at a database over HTTP in which only guard removes
// expired items. With the build tag invariants each is also run with guard broken on purpose, and
// must notice.

var allStrategies = []Strategy{Stream, Index, Schedule, Scan}

// subject is a world, and a strategy whose laws are tested.
type subject struct {
	*world
	strategy Strategy
	patience time.Duration
	goes     uint64   // earlier runs of the law with the same fault, each with another seed
	broken   []string // violations, instead of failing the test
	all      []*hand
}

// lawBroken ends a law at a finding that leaves no sense in going on.
type lawBroken struct{}

func (s *subject) broke(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

// obey runs a law and returns how it was broken.
func (s *subject) obey(law func(s *subject)) []string {
	defer s.stopAll()
	func() {
		defer func() {
			if r := recover(); r != nil && r != (lawBroken{}) {
				panic(r)
			}
		}()
		law(s)
	}()
	return s.broken
}

// holds checks a law with each strategy, and that it and a check notice each fault.
func holds(t *testing.T, law func(s *subject), faults ...lawFault) {
	check := func(t *testing.T, strategy Strategy, patience time.Duration, goes uint64) []string {
		s := &subject{world: newWorld(t, overHTTP, withWindows), strategy: strategy, patience: patience, goes: goes}
		return s.obey(law)
	}
	for _, strategy := range allStrategies {
		t.Run(string(strategy), func(t *testing.T) {
			for _, b := range check(t, strategy, patience, 0) {
				t.Error(b)
			}
		})
		if !invariant.Enabled {
			continue
		}
		for _, f := range faults {
			if f.only != "" && !strings.Contains(f.only, string(strategy)) {
				continue
			}
			t.Run(fmt.Sprint(strategy, " ", f.fault), func(t *testing.T) {
				defer inject(f.fault)()
				// a race may need many goes
				began, most := time.Now(), faulttest.Goes(1000)
				for goes := 0; goes < most && time.Since(began) < 40*time.Second; goes++ {
					if len(check(t, strategy, faultPatience, uint64(goes))) > 0 {
						if !f.unchecked && !noticed(f.fault) {
							t.Errorf("no check noticed %v", f.fault)
						}
						return
					}
				}
				t.Errorf("the law did not notice %v", f.fault)
			})
		}
	}
}

// faultPatience is how long a law waits with a fault. A worker of streams may need two seconds to
// find its first items. A longer time counts as a violation: NullExperiment fails if this is too
// short.
const faultPatience = 10 * time.Second

// lawFault is a fault that a law has to notice, with all strategies or only some.
type lawFault struct {
	fault     invariant.Fault
	only      string
	unchecked bool // no check of the program can notice it
}

// hand is a worker: a guard behind a line.
type hand struct {
	*Guard
	line *line
	ctx  context.Context
	stop context.CancelFunc
	over chan struct{}
	err  error // once over is closed
	// closed when it has ended the first scan of the schedule strategy
	scanned chan struct{}
}

// start runs a worker. change may be nil.
func (s *subject) start(change func(*Options)) *hand {
	s.t.Helper()
	return s.startBehind(nil, change)
}

// startBehind runs a worker whose requests go through send. Both may be nil.
func (s *subject) startBehind(send func(*request) (*http.Response, error), change func(*Options)) *hand {
	s.t.Helper()
	o := s.options(s.strategy)
	o.Logger = nil // a broken guard logs a lot
	if s.strategy == Schedule {
		o.Scheduler, o.Role = s.Scheduler(), testRole
	}
	if s.strategy == Scan {
		o.MaxRCU = 10_000
	}
	if change != nil {
		change(&o)
	}
	w := &hand{line: newLine(send), over: make(chan struct{}), scanned: make(chan struct{})}
	once := sync.OnceFunc(func() { close(w.scanned) })
	o.Progress = func(p Progress) {
		if p.Doing == FirstScan && p.Ended {
			once()
		}
	}
	var err error
	w.Guard, err = New(w.line.lay(o))
	must(s.t, err)
	w.ctx, w.stop = context.WithCancel(context.Background())
	s.all = append(s.all, w)
	go func() {
		defer close(w.over)
		if s.strategy != Index {
			w.err = w.Run(w.ctx)
			return
		}
		// without the patrol, which would find the items that sweeps forget
		if w.err = w.prepare(w.ctx); w.err == nil {
			x := index.New(w.env(), w.indexOptions())
			x.PatrolEvery, x.Back = 0, testBack
			w.err = w.work(w.ctx, x)
		} else if w.ctx.Err() != nil {
			w.err = nil
		}
	}()
	return w
}

// end stops a worker.
func (w *hand) end() {
	w.stop()
	<-w.over
}

func (s *subject) stopAll() {
	for _, w := range s.all {
		w.stop()
	}
	for _, w := range s.all {
		w.end()
		if w.err != nil && !errors.Is(w.err, errDead) { // a dead one may notice that before it is stopped
			s.t.Errorf("a worker ended with %v", w.err)
		}
	}
}

// within waits until a condition holds, and ends the law if it does not.
func (s *subject) within(what string, w *hand, holds func() bool) {
	for limit := time.Now().Add(s.patience); !holds(); time.Sleep(time.Millisecond) {
		over := false
		if w != nil {
			select {
			case <-w.over:
				over = true
			default:
			}
		}
		if over || time.Now().After(limit) {
			s.broke("waited in vain until %s", what)
			panic(lawBroken{})
		}
	}
}

// counted waits for a number of events of a worker.
func (s *subject) counted(w *hand, what What, n int64) {
	s.within(fmt.Sprintf("%d events of kind %d", n, what), w, func() bool { return w.Stats().Counts[what] >= n })
}

// put writes an item as the writers of all strategies do.
func (s *subject) put(name, ttl string) { s.world.put(name, ttl, s.besides(ttl)) }

// gone waits until an item is gone, while time goes on by steps.
func (s *subject) gone(name string, advance func(time.Duration)) {
	const step, most = 100 * time.Millisecond, 1500 * time.Millisecond
	for passed := time.Duration(0); s.has(name) && passed < most; passed += step {
		advance(step)
		time.Sleep(5 * time.Millisecond)
	}
	s.within(name+" is gone", nil, func() bool { return !s.has(name) })
}

// TestNeverEarly: nothing is removed before its deadline by the endpoint's clock, although the
// workers' clock is ahead of it or behind, and they see only whole seconds of it.
func TestNeverEarly(t *testing.T) {
	holds(t, func(s *subject) {
		for _, ahead := range []time.Duration{700 * time.Millisecond, -700 * time.Millisecond} {
			s.local = clock.NewFrozenAt(s.now().Add(ahead))
			near, far := s.in(2)+".5", s.in(9)+".5"
			s.put("near", near)
			s.put("far", far)
			w := s.start(func(o *Options) { o.LocalClock = false })
			var moving sync.RWMutex // the two clocks move together, as far as responses show
			w.line.set(func(r *request) (*http.Response, error) {
				// which waits for records, over any number of moves
				if r.operation == "GetRecords" {
					answer, err := r.pass()
					if err == nil {
						answer.Header.Del("Date")
					}
					return answer, err
				}
				moving.RLock()
				defer moving.RUnlock()
				return r.pass()
			})
			advance := func(by time.Duration) {
				moving.Lock()
				defer moving.Unlock()
				s.advance(by)
			}
			s.counted(w, Armed, 2)
			advance(time.Second)
			// guard may compare new responses with those from before
			advance(epochOf(near).Add(-time.Millisecond).Sub(s.now()))
			s.within("an answer was there", w, func() bool { return w.now() > 0 && w.line.requests() > 0 })
			time.Sleep(30 * time.Millisecond)
			if !s.has("near") {
				s.broke("the near one is gone 1 ms before its deadline, the worker's clock being %v ahead", ahead)
			}
			s.gone("near", advance)
			advance(epochOf(far).Add(-time.Millisecond).Sub(s.now()))
			time.Sleep(30 * time.Millisecond)
			if !s.has("far") {
				s.broke("the far one is gone 1 ms before its deadline, the worker's clock being %v ahead", ahead)
			}
			s.gone("far", advance)
			w.end()
		}
	}, lawFault{fault: invariant.UpperBound}, lawFault{fault: invariant.DropFraction})
}

// epochOf is the instant of a TTL in seconds, with up to three digits of a fraction.
func epochOf(ttl string) time.Time {
	whole, fraction, _ := strings.Cut(ttl, ".")
	var seconds, millis int64
	fmt.Sscan(whole, &seconds)
	fmt.Sscan((fraction + "000")[:3], &millis)
	return time.UnixMilli(seconds*1000 + millis)
}

// TestRenewedLives: a renewed item is not removed at its old deadline, even if a worker learns of
// the renewal only from its attempt.
func TestRenewedLives(t *testing.T) {
	const n = 100
	each := func(do func(name string)) {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for j := i; j < n; j += 4 {
					do(fmt.Sprint("item", j))
				}
			})
		}
		all.Wait()
	}
	holds(t, func(s *subject) {
		before, after := s.in(9), s.in(600)
		each(func(name string) { s.put(name, before) })
		w := s.start(nil)
		s.counted(w, Armed, n)
		s.within("all is armed", w, func() bool { return s.strategy != Schedule || len(s.schedules()) == n })
		goOn := make(chan struct{})
		w.line.set(func(r *request) (*http.Response, error) {
			if r.operation == "DeleteItem" && r.about(worldTable) {
				return r.pass()
			}
			return r.hold(goOn)
		})
		each(func(name string) {
			s.renew(name, after)
		})
		s.advance(9 * time.Second)
		if s.strategy == Schedule {
			s.within("all schedules have fired", w, func() bool { return len(s.schedules()) == 0 })
		} else {
			s.within("all removals were tried", w, func() bool { c := w.Stats().Counts; return c[Refused]+c[Removed]+c[Disarmed] >= n })
		}
		if is := s.count(); is != n {
			s.broke("%d of %d renewed items are gone", n-is, n)
		}
		close(goOn)
		s.advance(580 * time.Second)
		time.Sleep(10 * time.Millisecond)
		if is := s.count(); is != n {
			s.broke("%d of %d renewed items are gone before their new deadline", n-is, n)
		}
	}, lawFault{fault: invariant.Unconditional})
}

// TestDeliveredAtLeastOnce: each item with a deadline goes, and with marks the record of each
// removal shows that it was an expiry, although workers die at any point, or end in the middle of
// their work.
func TestDeliveredAtLeastOnce(t *testing.T) {
	t.Run("crash", func(t *testing.T) {
		if testing.Short() {
			t.Skip("a dozen crashes of each strategy take long with -race")
		}
		holds(t, func(s *subject) { s.atLeastOnce(crashes) })
	})
	t.Run("end", func(t *testing.T) {
		holds(t, func(s *subject) { s.atLeastOnce(ends) }, lawFault{fault: invariant.DoneEarly, only: "stream index schedule"},
			// that a pass follows another is seen only by waiting: a pass may take any time at a slow endpoint
			lawFault{fault: invariant.ScanOnce, only: "scan", unchecked: true})
	})
}

// crashes has workers die one after the other, each after some requests more than the one before.
func crashes(s *subject, start func() *hand, write func()) {
	for after := int64(3); after < 90; after += 1 + after/2 {
		var sent atomic.Int64
		died := make(chan struct{})
		w := start()
		w.line.set(func(r *request) (*http.Response, error) {
			if sent.Add(1) != after {
				return r.pass()
			}
			w.line.kill()
			close(died)
			return r.lose() // it was its last word
		})
		write()
		for limit := 0; limit < 100; limit++ {
			select {
			case <-died:
				limit = 100
			case <-time.After(2 * time.Millisecond):
				s.advance(50 * time.Millisecond)
			}
		}
		w.line.kill()
		w.stop() // the time until it notices is irrelevant
	}
}

// ends stops a worker in an orderly way whose writes got no response.
func ends(s *subject, start func() *hand, write func()) {
	write()
	w := start()
	write()
	s.within("it has begun", w, func() bool { return w.Stats().Counts[Armed] >= 3 })
	// a finished first scan is not repeated; it is finished when the items that were due in a
	// moment are gone
	for range 10 {
		s.advance(time.Second)
		time.Sleep(30 * time.Millisecond)
	}
	w.end()
	w = start()
	stuck := make(chan struct{}, 1000)
	w.line.set(func(r *request) (*http.Response, error) {
		learns := strings.HasSuffix(r.operation, "Schedule") || r.about(deadlinesName) && (r.operation == "PutItem" || r.operation == "BatchWriteItem" || r.operation == "TransactWriteItems")
		removes := r.operation == "DeleteItem" && r.about(worldTable) || r.operation == "UpdateItem" && r.about(worldTable)
		if learns || removes {
			stuck <- struct{}{}
			<-w.ctx.Done()
			return nil, errDead
		}
		return r.pass()
	})
	write()
	for range 40 { // it finds the items; some are due
		s.advance(500 * time.Millisecond)
		time.Sleep(5 * time.Millisecond)
	}
	s.within("it is at something", w, func() bool { return len(stuck) > 0 })
	for range 60 { // longer than a sweep repeats anyway
		s.advance(10 * time.Second)
		time.Sleep(5 * time.Millisecond)
	}
	w.end()
	s.advance(20 * time.Minute) // no worker runs
}

const deadlinesName = "mayfly.deadlines"

// atLeastOnce writes items, disturbs the workers, and checks that the last worker finds all items.
func (s *subject) atLeastOnce(happen func(s *subject, start func() *hand, write func())) {
	mark := "mark"
	if s.strategy == Schedule {
		mark = ""
	}
	start := func() *hand {
		return s.start(func(o *Options) { o.Mark = mark; o.Segments = 2 })
	}
	names := map[string]bool{}
	write := func() {
		for i := range 7 {
			name := fmt.Sprint("item", len(names))
			names[name] = true
			s.put(name, s.in(int64(1+4*i)))
		}
	}
	happen(s, start, write)
	w := start()
	s.within("the last one works", w, func() bool { return w.now() > 0 })
	write()
	limit := time.Now().Add(s.patience)
	for steps := 0; s.count() > 0; s.advance(time.Second) {
		if steps++; steps == 5 {
			write()
		}
		if time.Now().After(limit) {
			s.broke("%d items are never removed", s.count())
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	counts := map[string]int{}
	for _, r := range s.records() {
		if r.EventName != "REMOVE" {
			continue
		}
		if mark != "" && !consume.Expired(&r, "ttl", mark) {
			s.broke("the record of the removal of %v does not say that it has expired", r.Dynamodb.Keys)
		}
		counts[fmt.Sprint(r.Dynamodb.Keys["pk"])]++
	}
	for key, n := range counts {
		if n != 1 {
			s.broke("%d records say that %s was removed, which was written once", n, key)
		}
	}
	if len(counts) != len(names) {
		s.broke("%d records of %d removals", len(counts), len(names))
	}
}

// besides returns the attributes that an item with a TTL needs for the index strategy.
func (s *subject) besides(ttl string) map[string]types.AttributeValue {
	whole, fraction, _ := strings.Cut(ttl, ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	if fraction != "" {
		n++
	}
	return text(windowAttribute, Window(n, time.Minute))
}
