package pace

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// capable simulates an endpoint that handles perSecond removals a second and refuses the others. It
// returns the numbers of finished and of refused removals.
func capable(t *testing.T, p *Pace, perSecond float64, during time.Duration, units float64) (done, refused int) {
	spare, last := max(perSecond/10, 1), time.Now()
	for start := time.Now(); time.Since(start) < during; {
		if err := p.Wait(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		spare = min(spare+time.Since(last).Seconds()*perSecond, max(perSecond/10, 1))
		last = time.Now()
		if spare >= 1 {
			spare--
			done++
			p.Consumed(1, units)
		} else {
			refused++
			p.Throttled()
		}
		time.Sleep(200 * time.Microsecond) // the minimum time of a worker
	}
	return done, refused
}

// Without throttles there is no limit; with them guard uses most of the endpoint's capacity, with
// few refusals, and afterwards there is none again.
func TestPaceSharesWhatIsSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(0, 0)
		if done, _ := capable(t, p, 1e9, time.Second, 0); done < 4000 || !math.IsInf(p.Limit(), 1) {
			t.Errorf("%d removals in a second without bound", done)
		}
		capable(t, p, 500, 10*time.Second, 0)
		done, refused := capable(t, p, 500, time.Minute, 0)
		if done < 500*60*7/10 || refused > done/20 {
			t.Errorf("of 30000 possible removals %d were made, and %d refused", done, refused)
		}
		capable(t, p, 1e9, 2*time.Minute, 0)
		if !math.IsInf(p.Limit(), 1) {
			t.Errorf("the bound is still %v", p.Limit())
		}
	})
}

// After an endpoint that was away for long, the rate is back within half a minute.
func TestPaceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(0, 0)
		capable(t, p, 2000, 5*time.Second, 0)
		capable(t, p, 0, time.Minute, 0)
		capable(t, p, 2000, 30*time.Second, 0)
		if done, _ := capable(t, p, 2000, 10*time.Second, 0); done < 10*1200 {
			t.Errorf("%d removals in 10 s", done)
		}
	})
}

// MaxWCU limits the units in the endpoint's responses, not the number of removals.
func TestPaceKeepsToUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, units := range []float64{1, 7, 0} {
			p := New(100, 0)
			capable(t, p, 1e9, 2*time.Second, units) // it learns
			done, _ := capable(t, p, 1e9, 10*time.Second, units)
			if spent := float64(done) * max(units, 1); spent < 900 || spent > 1100 {
				t.Errorf("at %v units each, %v units in 10 s", units, spent)
			}
		}
	})
}

// A wait ends with its context.
func TestPaceWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(0.001, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 {
			if err := p.Wait(ctx, 1); err != nil {
				return
			}
		}
		t.Error("three removals within 0.001 units a second")
	})
}

// MaxRate limits the number of removals, whatever they consume, one by one and in batches.
func TestPaceKeepsToRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0.5, 10, 1000} {
			for _, batch := range []int{1, 25} {
				p, done, start := New(0, rate), 0, time.Now()
				for time.Since(start) < 1000*time.Second {
					if err := p.Wait(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
					done += batch
				}
				if want := 1000 * rate; float64(done) < want*0.98 || float64(done) > want*1.06+2*float64(batch) {
					t.Errorf("%d removals in 1,000 s, %d at a time, at %v a second", done, batch, rate)
				}
			}
		}
		if p := New(0, 10); p.Limit() != 10 {
			t.Errorf("the limit is %v", p.Limit())
		}
	})
}
