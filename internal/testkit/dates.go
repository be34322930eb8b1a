package testkit

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Dates sends requests to an endpoint whose Date headers go wrong. Its methods are safe for
// concurrent use.
type Dates struct {
	to interface {
		Do(*http.Request) (*http.Response, error)
	}
	now   func() time.Time
	mu    sync.Mutex
	dice  *rand.Rand                            // guarded by mu
	wrong func(now time.Time) (time.Time, bool) // guarded by mu; called under it
}

// NewDates returns a client whose Dates are now, at first. Its faults follow from the seed.
func NewDates(to interface {
	Do(*http.Request) (*http.Response, error)
}, now func() time.Time, seed uint64) *Dates {
	return &Dates{to: to, now: now, dice: rand.New(rand.NewPCG(seed, 21)), wrong: trueDate}
}

func trueDate(now time.Time) (time.Time, bool) { return now, true }

// Do sends a request, and changes the Date of its answer.
func (d *Dates) Do(r *http.Request) (*http.Response, error) {
	a, err := d.to.Do(r)
	if err != nil {
		return a, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a.Header.Del("Date")
	if at, sent := d.wrong(d.now()); sent {
		a.Header.Set("Date", at.UTC().Format(http.TimeFormat))
	}
	return a, nil
}

// Shift makes all Dates wrong by the same time.
func (d *Dates) Shift(by time.Duration) {
	d.set(func(now time.Time) (time.Time, bool) { return now.Add(by), true })
}

// Heal makes all Dates true.
func (d *Dates) Heal() { d.set(trueDate) }

// Fail makes Dates wrong in a random way, and returns its name:
//
//	jump         all are wrong by the same time, up to ten minutes
//	speed        the clock runs at a wrong speed
//	missing      there are none
//	two servers  each answer is from one of two, and one of them has a wrong clock
//	one answer   a single one is wrong
func (d *Dates) Fail() string {
	d.mu.Lock()
	// The dice of its own keep the later faults the same, however many answers come in between.
	own := rand.New(rand.NewPCG(d.dice.Uint64(), 22))
	by := time.Duration(d.dice.Int64N(int64(20*time.Minute))) - 10*time.Minute
	if d.dice.IntN(3) == 0 {
		by /= 120 // up to 5 s
	}
	speed, kind, since, once := d.dice.Float64()-0.5, d.dice.IntN(5), d.now(), true
	d.mu.Unlock()
	switch kind {
	case 0:
		d.Shift(by)
		return "jump"
	case 1:
		d.set(func(now time.Time) (time.Time, bool) {
			return now.Add(time.Duration(float64(now.Sub(since)) * speed)), true
		})
		return "speed"
	case 2:
		d.set(func(now time.Time) (time.Time, bool) { return now, false })
		return "missing"
	case 3:
		d.set(func(now time.Time) (time.Time, bool) {
			return now.Add(by * time.Duration(own.IntN(2))), true
		})
		return "two servers"
	}
	d.set(func(now time.Time) (time.Time, bool) {
		if once {
			once = false
			return now.Add(by), true
		}
		return now, true
	})
	return "one answer"
}

func (d *Dates) set(wrong func(now time.Time) (time.Time, bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrong = wrong
}
