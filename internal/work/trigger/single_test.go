package trigger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// picky is a target that fails with an error for all items whose k begins with "bad".
type picky struct {
	err error
	mu  sync.Mutex
	bad int      // failed attempts
	got []string // the keys of the delivered records
}

func (p *picky) Deliver(deliveries []target.Delivery) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		if strings.Contains(d.Subject, `"bad`) {
			p.bad++
			results[i] = p.err
		} else {
			p.got = append(p.got, d.Subject)
		}
	}
	return results
}

func (p *picky) counts() (bad, good int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bad, len(p.got)
}

// single returns a trigger that delivers each record of table things by itself.
func single(batch int) trigger.Spec {
	return trigger.Spec{Name: "each", Table: "things", Target: "each", Per: "record", Batch: batch}
}

// A target's Retry-After delays the record that it is for, alone or among others. Records of other
// keys that arrive meanwhile are delivered while the clock stands still, without a further attempt
// for the failed one.
func TestRetryAfterDelaysItsKeyAlone(t *testing.T) {
	const after = 5 * time.Hour
	for _, others := range []int{0, 2} {
		t.Run(fmt.Sprint(others, " others"), func(t *testing.T) {
			w := newWorld(t)
			w.Clock().Freeze()
			w.table("things")
			to := &picky{err: &target.Error{Code: "429", Throttled: true, After: after}}
			w.to("each", batchFunc(to.Deliver), target.Limits{Batch: 10})
			w.put("things", "bad", 0, 0)
			for v := range others {
				w.put("things", fmt.Sprint("before", v), 0, v)
			}
			until := w.Clock().Now().Add(after)
			w.run(single(100))
			rests := func(bad, good int) {
				t.Helper()
				await(t, fmt.Sprintf("the trigger rests until %v with %d failures and %d deliveries", until, bad, good), func() bool {
					gotBad, gotGood := to.counts()
					return gotBad == bad && gotGood == good && w.resting().Equal(until)
				}, func() any { bad, good := to.counts(); return fmt.Sprint(bad, good, w.resting()) })
			}
			rests(1, others)
			for v := range 3 {
				w.put("things", "bad", 0, v) // waits for the first
				w.put("things", fmt.Sprint("late", v), 0, v)
				rests(1, others+v+1)
			}
			w.advance(after)
			until = w.Clock().Now().Add(after)
			rests(2, others+3)
		})
	}
}

// Records that arrive while failed ones pause end the trigger's rest before they count as taken,
// however late the worker notices. Otherwise an advance of the clock would pass them.
func TestPauseWithNewRecordsIsNoRest(t *testing.T) {
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	to := &picky{err: &target.Error{Code: "429", Throttled: true, After: time.Hour}}
	w.to("each", batchFunc(to.Deliver), target.Limits{Batch: 10})
	p, noticed := w.drowsy()
	w.run(single(100))
	w.put("things", "bad", 0, 0)
	await(t, "the trigger rests", func() bool { return !w.resting().IsZero() && len(p.taken()) == 1 })
	w.put("things", "good", 0, 1)
	await(t, "the second record is handed over", func() bool { return len(p.taken()) == 2 })
	if until := p.taken()[1]; !until.IsZero() {
		t.Errorf("with a record to deliver it rests until %v", until)
	}
	close(noticed)
	await(t, "the second record is delivered", func() bool { _, good := to.counts(); return good == 1 })
}

// A call has at most as many records as a batch, however many keys have failed before.
func TestSinglesKeepTheBatchLimit(t *testing.T) {
	const batch, keys = 2, 7
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	var works atomic.Bool
	var mu sync.Mutex
	largest, failed, done := 0, map[string]bool{}, 0
	w.to("each", batchFunc(func(deliveries []target.Delivery) []error {
		mu.Lock()
		defer mu.Unlock()
		largest = max(largest, len(deliveries))
		results := make([]error, len(deliveries))
		for i, d := range deliveries {
			if works.Load() {
				done++
				continue
			}
			failed[d.Subject] = true
			results[i] = errors.New("not yet")
		}
		return results
	}), target.Limits{Batch: 100})
	for v := range keys {
		w.put("things", fmt.Sprint("key", v), 0, v)
	}
	w.run(single(batch))
	await(t, "each key has failed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(failed) == keys && !w.resting().IsZero()
	})
	works.Store(true)
	w.advance(time.Second)
	await(t, "all are delivered", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done == keys
	})
	if largest != batch {
		t.Errorf("a call with %d records, want at most %d", largest, batch)
	}
}
