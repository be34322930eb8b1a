package pace

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
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
			p.Consumed(1, units, false)
		} else {
			refused++
			p.Throttled(false)
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

// hotKey simulates removals that fall due at an endpoint where 3 % of the attempts are throttled at
// any rate, and more than perSecond removals a second are not possible.
func hotKey(t *testing.T, p *Pace, due, perSecond float64, during time.Duration) (done, throttled int) {
	random := rand.New(rand.NewPCG(1, 2))
	spare, last := 1.0, time.Now()
	for start := time.Now(); time.Since(start) < during; {
		for float64(done) >= due*time.Since(start).Seconds() {
			time.Sleep(time.Duration(float64(time.Second) / due))
		}
		if err := p.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		spare = min(spare+time.Since(last).Seconds()*perSecond, max(perSecond/10, 1))
		last = time.Now()
		if spare < 1 || random.Float64() < 0.03 {
			throttled++
			p.Throttled(false)
		} else {
			spare--
			done++
			p.Consumed(1, 0, false)
		}
		time.Sleep(200 * time.Microsecond)
	}
	return done, throttled
}

// A few throttled attempts among many cost little throughput, at a low rate as at a high one. With
// them, guard still leaves some of a full table's capacity to others.
func TestPaceStandsAHotKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, due := range []float64{20, 200, 2000} {
			if done, _ := hotKey(t, New(0, 0), due, 1e9, 5*time.Minute); float64(done) < 0.95*due*300 {
				t.Errorf("%d removals in 5 minutes, of %v due", done, due*300)
			}
		}
		p := New(0, 0)
		hotKey(t, p, 2000, 500, 10*time.Second)
		done, throttled := hotKey(t, p, 2000, 500, 5*time.Minute)
		if float64(done) < 0.8*500*300 || float64(throttled) > 0.05*float64(done) {
			t.Errorf("of 150000 possible removals %d were made, and %d attempts throttled", done, throttled)
		}
	})
}

// partitioned simulates removals that fall due evenly at an endpoint with seven partitions, each with
// so many removals a second. Refused ones rest as guard's do. It returns the number of those that
// have ended, by partition, and of refused attempts.
func partitioned(t *testing.T, p *Pace, due float64, perSecond [7]float64, during time.Duration) (done [7]int, refused int) {
	type removal struct {
		part, tries int
		at          time.Time
	}
	random := rand.New(rand.NewPCG(1, 2))
	var spare [7]float64
	var waiting []removal
	start := time.Now()
	last, made := start, 0
	for time.Since(start) < during {
		for float64(made) < due*time.Since(start).Seconds() {
			waiting = append(waiting, removal{part: random.IntN(7), at: time.Now()})
			made++
		}
		i := slices.IndexFunc(waiting, func(r removal) bool { return !r.at.After(time.Now()) })
		if i < 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		r := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		if err := p.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		passed := time.Since(last).Seconds()
		last = time.Now()
		for j := range spare {
			spare[j] = min(spare[j]+passed*perSecond[j], max(perSecond[j]/10, 1))
		}
		if spare[r.part] >= 1 {
			spare[r.part]--
			done[r.part]++
			p.Consumed(1, 0, r.tries > 0)
		} else {
			refused++
			p.ThrottledPart(r.tries > 0)
			r.tries++
			r.at = time.Now().Add(min(25*time.Millisecond<<r.tries, 10*time.Second))
			waiting = append(waiting, r)
		}
		time.Sleep(200 * time.Microsecond)
	}
	return done, refused
}

// One full partition does not slow down the others.
func TestPacePassesAFullPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, due := range []float64{50, 700} {
			done, _ := partitioned(t, New(0, 0), due, [7]float64{0, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9}, 20*time.Second)
			if all := float64(done[1]+done[2]+done[3]+done[4]+done[5]+done[6]) / (due * 20 * 6 / 7); done[0] > 0 || all < 0.95 {
				t.Errorf("at %v a second, %.2f of the removals in other partitions were made", due, all)
			}
		}
	})
}

// If all partitions are full, guard leaves some of them to others, as with a full table.
func TestPaceSparesFullPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(0, 0)
		done, refused := partitioned(t, p, 1000, [7]float64{80, 80, 80, 80, 80, 80, 80}, 30*time.Second)
		all := 0
		for _, n := range done {
			all += n
		}
		if all < 560*30*6/10 || refused > all/5 {
			t.Errorf("of %d possible removals %d were made, and %d attempts refused", 560*30, all, refused)
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
