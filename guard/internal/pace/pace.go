// Package pace limits the speed of guard: Pace for removals, which share the table's capacity with
// its users, and Budget for pages that are read.
package pace

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Pace limits the speed of removals. There is no limit at first. When the endpoint throttles,
// guard's rate becomes a part of its recent throughput and grows steadily from there, so that guard
// and the table's users share the spare capacity. When the limit has not mattered for a while, it
// is lifted. MaxWCU may limit the consumed units besides, and MaxRate the removals.
//
// Some throttles do not depend on the rate, for example if one key is hot. They go on after a cut,
// while throttles of a full table end. So the share of attempts that are throttled well below the
// throughput of the last cut is no reason for another one.
//
// Others depend on the rate in one partition of the table or of an index only, and the rest has
// room. Amazon names them (ThrottledPart), but not the partition. Attempts show it: an item that was
// refused in a full partition is refused again, far more often than one at its first attempt. If
// all partitions are equally full, both are refused as often. See onePartLocked.
type Pace struct {
	elapsed  clock.Elapsed
	most     float64 // write units a second; 0: no bound
	mostRate float64 // removals a second; 0: no bound
	mu       struct {
		sync.Mutex
		at      time.Duration // when balance and units were right
		rate    float64       // removals a second; 0: no bound
		step    float64       // by how much a second the rate grows
		cut     time.Duration // when it was cut last
		balance float64       // removals that may begin; negative: one has to wait
		units   float64       // write units that may be consumed
		allowed float64       // removals that may begin, by mostRate
		each    float64       // write units that a removal consumes, as a running mean

		ceiling float64       // removals a second at the last cut
		recent  tally         // since the last cut; older attempts count less
		halved  time.Duration // when recent was halved
		below   tally         // at rates well below the ceiling; older attempts count less
		first   tally         // attempts at items that were not refused before; older attempts count less
		again   tally         // the other attempts; older ones count less

		second    time.Duration // when the present second of counting began
		succeeded int           // removals that have ended in it
		lately    float64       // removals a second in the one before
	}
}

const (
	paceCut   = 0.7 // of the recent throughput
	paceStep  = 0.1 // of the same; growth of the rate per second
	paceLeast = 2.0 // removals a second
	paceFirst = 50.0
	cutsApart = 500 * time.Millisecond
	// after this time without a cut the rate grows by paceGrowth of itself a second, so that it
	// recovers soon from an outage
	paceSure   = 5 * time.Second
	paceGrowth = 0.5
	// after this time without a cut the rate has no limit, unless removals come close to it
	paceForget = 20 * time.Second
	paceMost   = 1e6 // removals a second: a rate that limits nothing

	wellBelow  = 0.9 // of the ceiling
	belowMost  = 500 // attempts that are remembered
	belowFirst = 20  // attempts that are assumed not to be throttled
	noiseMost  = 0.1 // throttles beyond this share always depend on the rate
	halveEach  = time.Second

	// of one full partition: an item is refused so many times as often if it was before
	partAgain = 2
	partLeast = 0.5 // of the attempts at such items are refused
	partFew   = 10  // attempts that say nothing yet
	// refused items after which the first ones have been tried again, unless a backlog is before them
	partUnknown = 100
	partMost    = 0.5 // a larger share of refused first attempts is more than a partition
)

// New returns a Pace whose removals consume at most so many units per second, and are at most so
// many per second; 0: no limit.
func New(mostUnits, mostRate float64) *Pace {
	p := &Pace{elapsed: clock.Stopwatch(), most: mostUnits, mostRate: mostRate}
	p.mu.each, p.mu.units, p.mu.allowed = 1, min(mostUnits, 1), min(mostRate, 1)
	return p
}

// Wait returns when n removals may begin, or ctx is done.
func (p *Pace) Wait(ctx context.Context, n int) error {
	for {
		wait := p.take(float64(n))
		if wait <= 0 {
			return ctx.Err()
		}
		clock.Pause(wait, ctx.Done())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// take takes the tokens of n removals, or returns how long to wait for them. A balance may fall
// below zero by more than one removal, as batches and large items are paid for afterwards.
func (p *Pace) take(n float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
	wait := 0.0
	if p.mu.rate > 0 && p.mu.balance < 0 {
		wait = -p.mu.balance / p.mu.rate
	}
	if p.most > 0 && p.mu.units < 0 {
		wait = max(wait, -p.mu.units/p.most)
	}
	if p.mostRate > 0 && p.mu.allowed < 0 {
		wait = max(wait, -p.mu.allowed/p.mostRate)
	}
	if wait > 0 {
		return max(time.Duration(wait*float64(time.Second)), time.Millisecond)
	}
	p.mu.balance -= n
	p.mu.units -= n * p.mu.each
	p.mu.allowed -= n
	return 0
}

// passLocked adds the tokens for the time that has passed.
func (p *Pace) passLocked() {
	t := p.elapsed()
	passed := (t - p.mu.at).Seconds()
	p.mu.at = t
	p.mu.units = min(p.mu.units+passed*p.most, p.most/10+p.mu.each)
	p.mu.allowed = min(p.mu.allowed+passed*p.mostRate, p.mostRate/20)
	if p.mu.rate == 0 {
		p.mu.balance = 0
	} else {
		p.mu.balance = min(p.mu.balance+passed*p.mu.rate, p.mu.rate/20+1)
		growth := p.mu.step
		if t-p.mu.cut > paceSure {
			growth = max(growth, p.mu.rate*paceGrowth)
		}
		p.mu.rate = min(p.mu.rate+passed*growth, paceMost)
		if t-p.mu.cut > paceForget && p.mu.rate > 2*p.mu.lately {
			p.mu.rate = 0
		}
	}
	if t-p.mu.halved >= halveEach {
		p.mu.recent.halve()
		p.mu.halved = t
	}
	if since := t - p.mu.second; since >= time.Second {
		p.mu.lately = float64(p.mu.succeeded) / since.Seconds()
		p.mu.second, p.mu.succeeded = t, 0
		p.mu.first.halve()
		p.mu.again.halve()
	}
}

// Consumed records the consumption of n removals, which take had to guess; units is 0 if the
// endpoint has not returned it. again is true if an earlier attempt at them has failed.
func (p *Pace) Consumed(n int, units float64, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
	p.mu.succeeded += n
	p.countLocked(n, 0, again)
	if units > 0 && n > 0 {
		p.mu.units -= units - float64(n)*p.mu.each
		p.mu.each += (units/float64(n) - p.mu.each) / 16
	}
}

// Throttled records an attempt that was throttled, and cuts the rate if that may be the cause. again
// is true if an earlier attempt at the item has failed.
func (p *Pace) Throttled(again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
	p.countLocked(1, 1, again)
	if !p.expectedLocked() {
		p.cutLocked()
	}
}

// ThrottledPart records an attempt that was throttled because a partition is full. The rate is cut
// if all partitions may be.
func (p *Pace) ThrottledPart(again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
	p.countLocked(1, 1, again)
	if !p.onePartLocked() && !p.expectedLocked() {
		p.cutLocked()
	}
}

// onePartLocked reports whether the refused attempts may be those of a few full partitions. With few
// attempts so far, they may.
func (p *Pace) onePartLocked() bool {
	first, again := p.mu.first, p.mu.again
	if first.all >= partFew && first.throttled > partMost*first.all {
		return false
	}
	if again.all < partFew {
		return first.throttled < partUnknown
	}
	refused := again.throttled / again.all
	return refused >= partLeast && refused*first.all >= partAgain*first.throttled
}

// cutLocked cuts the rate. Responses within half a second of a cut belong to the rate before it.
func (p *Pace) cutLocked() {
	t := p.mu.at
	if p.mu.rate > 0 && t-p.mu.cut < cutsApart {
		return
	}
	got := max(p.mu.lately, float64(p.mu.succeeded)/max((t-p.mu.second).Seconds(), 0.1))
	if p.mu.rate > 0 {
		got = min(got, p.mu.rate)
		// never less than half at once: throughput is a poor measure when there was little to do
		p.mu.rate = max(got*paceCut, p.mu.rate/2, paceLeast)
	} else {
		p.mu.rate = max(got*paceCut, paceFirst)
	}
	p.mu.ceiling = got
	p.mu.step = max(p.mu.rate*paceStep, paceLeast/2)
	p.mu.cut, p.mu.halved = t, t
	p.mu.recent = tally{}
	p.mu.balance = 0
}

// expectedLocked reports whether the recent throttles need no cut: there are at most twice as many as
// the rate has no influence on, and two standard deviations more, for chance.
func (p *Pace) expectedLocked() bool {
	noise := min(p.mu.below.throttled/(p.mu.below.all+belowFirst), noiseMost)
	usual := p.mu.recent.all * noise
	return p.mu.recent.throttled <= 2*usual+2*math.Sqrt(usual)
}

// countLocked counts attempts.
func (p *Pace) countLocked(all, throttled int, again bool) {
	p.mu.recent.add(all, throttled)
	if again {
		p.mu.again.add(all, throttled)
	} else {
		p.mu.first.add(all, throttled)
	}
	if p.mu.rate > 0 && p.mu.rate < wellBelow*p.mu.ceiling && p.mu.at-p.mu.cut >= cutsApart {
		if p.mu.below.add(all, throttled); p.mu.below.all > belowMost {
			p.mu.below.halve()
		}
	}
}

// Troubled records an attempt that has failed without being throttled. If none has succeeded for a
// while, the endpoint is away or overloaded, so the rate is cut.
func (p *Pace) Troubled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
	if p.mu.succeeded == 0 && p.mu.lately == 0 {
		p.cutLocked()
	}
}

// Limit returns the present rate in removals per second; +Inf if there is no limit.
func (p *Pace) Limit() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
	most := math.Inf(1)
	if p.mostRate > 0 {
		most = p.mostRate
	}
	if p.mu.rate == 0 {
		return most
	}
	return min(p.mu.rate, most)
}

// tally counts attempts.
type tally struct{ all, throttled float64 }

func (y *tally) add(all, throttled int) {
	y.all += float64(all)
	y.throttled += float64(throttled)
}

func (y *tally) halve() { y.all, y.throttled = y.all/2, y.throttled/2 }
