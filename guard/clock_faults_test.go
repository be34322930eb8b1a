package guard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// dated puts Dates between guard and the database.
func (w *world) dated(seed uint64) (d *testkit.Dates) {
	w.db = dynamodb.New(w.db.Options(), func(o *dynamodb.Options) {
		d = testkit.NewDates(o.HTTPClient, time.Now, seed)
		o.HTTPClient = d
	})
	return d
}

// inBubble opens a world in real time, within a bubble of virtual time.
func inBubble(t *testing.T, happen func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		db, err := mayfly.Open("", mayfly.Options{Expiry: mayfly.ExpiryAWS, ExpiryDelay: "fixed:8784h"})
		must(t, err)
		defer func() { must(t, db.Close()) }()
		w.DB, w.db, w.streams = db, db.DynamoDB(), db.Streams()
		w.createTable(worldTable)
		happen(w)
	})
}

// NeverEarly: whatever the Dates of an endpoint show, no removal is earlier by the machine's clock
// than MaxSkew. When the Dates are right again, guard goes on by itself.
func TestClockFaults(t *testing.T) {
	t.Parallel()
	seeds := testkit.Size[uint64](1, 3) * uint64(*seedCount)
	if testing.Short() { // under the race detector each takes six seconds or more
		seeds = 1
	}
	for seed := *seedFirst; seed < *seedFirst+seeds; seed++ {
		for _, strategy := range []Strategy{Scan, Stream} {
			t.Run(fmt.Sprint(strategy, " seed ", seed), func(t *testing.T) {
				inBubble(t, func(w *world) { clockFaults(w, strategy, seed) })
			})
		}
	}
}

func clockFaults(w *world, strategy Strategy, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 3))
	dates := w.dated(seed)
	tap := w.tapped()
	var mu sync.Mutex
	deadlines := map[string]int64{}
	earliest, removed := int64(0), 0
	tap.after = func(operation string, in, _ any) {
		if operation != "DeleteItem" || tableOf(in) != worldTable {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		name := in.(*dynamodb.DeleteItemInput).Key["pk"].(*types.AttributeValueMemberS).Value
		removed++
		if early := deadlines[name] - time.Now().UnixMilli(); early > earliest {
			earliest = early
			if early > 5000 {
				w.t.Errorf("%s is removed %d ms early", name, early)
			}
		}
	}
	o := w.options(strategy)
	o.Concurrency, o.MaxRCU, o.Period = 4, 1000, time.Second
	r := w.start(o)
	<-r.Ready()
	faults := map[string]int{}
	doubts := 0
	for i := range 60 {
		for j := range 20 {
			name, in := fmt.Sprint(i, "/", j), dice.Int64N(120_000)-1000
			at := time.Now().UnixMilli() + in
			mu.Lock()
			deadlines[name] = at
			mu.Unlock()
			w.put(name, fmt.Sprintf("%d.%03d", at/1000, at%1000))
		}
		if i%2 == 0 {
			faults[dates.Fail()]++
		} else {
			dates.Heal()
		}
		time.Sleep(time.Duration(dice.Int64N(int64(20 * time.Second))))
		synctest.Wait()
		if len(r.Problems()) > 0 {
			doubts++
		}
	}
	dates.Heal()
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	if n := w.count(); n > 0 {
		w.t.Errorf("%d items are left after the faults; problems: %v", n, r.Problems())
	}
	if p := r.Problems(); len(p) > 0 {
		w.t.Errorf("a problem stays: %v", p)
	}
	if doubts < 3 || removed < 500 {
		w.t.Errorf("too mild: %d removed, in doubt at %d of 60 times, faults %v", removed, doubts, faults)
	}
	w.t.Logf("%d removed, at most %d ms early; in doubt at %d of 60 times; faults %v", removed, earliest, doubts, faults)
	must(w.t, r.stop())
}

// NeverEarly: with a Date that jumps ahead by five minutes shortly before the deadlines, nothing is
// removed early. Removals stop with the second answer that shows it, a problem is open, and guard
// goes on once the Date is right again.
func TestDateJumpStopsRemovals(t *testing.T) {
	t.Parallel()
	inBubble(t, func(w *world) {
		dates := w.dated(1)
		w.fill("a", 100, w.in(10))
		o := w.options(Stream)
		o.Concurrency = 1
		r := w.start(o)
		<-r.Ready()
		synctest.Wait()
		time.Sleep(7 * time.Second)
		dates.Shift(5 * time.Minute)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := w.count(); n != 100 {
			t.Errorf("%d of 100 items are left before the deadlines", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.count(); n < 98 { // the first two removals may be the answers that show the jump
			t.Errorf("%d of 100 items are left", n)
		}
		if p := r.Problems(); len(p) != 1 || p[0].Code != Skew || r.Stats().Due < 98 {
			t.Errorf("the problems are %v, and %d items are due", p, r.Stats().Due)
		}
		dates.Heal()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := w.count(); n != 0 || len(r.Problems()) != 0 {
			t.Errorf("%d items are left, and the problems are %v", n, r.Problems())
		}
		must(t, r.stop())
	})
}

// An endpoint without Date headers can be guarded by this machine's clock.
func TestLocalClock(t *testing.T) {
	t.Parallel()
	for _, strategy := range []Strategy{Scan, Stream} {
		inBubble(t, func(w *world) {
			w.answer(func(answer *http.Response) { answer.Header.Del("Date") })
			w.put("before", w.in(3))
			o := w.options(strategy)
			o.LocalClock, o.Period = true, time.Second
			r := w.start(o)
			<-r.Ready()
			w.put("after", w.in(5))
			w.put("later", w.in(60))
			time.Sleep(2 * time.Second)
			if synctest.Wait(); w.count() != 3 {
				t.Errorf("%s: an item has gone early", strategy)
			}
			time.Sleep(5 * time.Second)
			if synctest.Wait(); w.count() != 1 || !w.has("later") {
				t.Errorf("%s: %d items are left, not the last alone", strategy, w.count())
			}
			must(t, r.stop())
		})
	}
}

// A removal that is under way when a doubt begins is not sent: it waits for the clock.
func TestDoubtWhileRemoving(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{0, 25} {
		inBubble(t, func(w *world) {
			dates := w.dated(1)
			tap := w.tapped()
			w.fill("a", 40, w.in(5))
			o := w.options(Scan)
			o.Batch, o.Concurrency, o.MaxWCU = batch, 1, 5
			r := w.start(o)
			<-r.Ready()
			tap.do(func(_ context.Context, operation string, _ any) error {
				if operation == "DeleteItem" || operation == "TransactWriteItems" {
					dates.Shift(-time.Hour)
				}
				return nil
			})
			time.Sleep(20 * time.Second)
			synctest.Wait()
			left := w.count()
			if want := 40 - max(batch, 1); left != want {
				t.Errorf("batches of %d: %d items are left, not %d: one removal shows the wrong Date", batch, left, want)
			}
			tap.do(nil)
			dates.Heal()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if left = w.count(); left != 0 {
				t.Errorf("batches of %d: %d items are left at the end", batch, left)
			}
			must(t, r.stop())
		})
	}
}
