package guard

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/clock"
)

// model is an endpoint with a wrong clock that drifts, and its exchanges with guard.
type model struct {
	c      *endpointClock
	r      *rand.Rand
	offset float64   // ms, of the first clock behind the address
	others []float64 // leads of further clocks over it, in ms
	rate   float64   // ms that it gains in a ms
	steps  int
}

func newModel(seed uint64) *model {
	m := &model{r: rand.New(rand.NewPCG(seed, 0))}
	m.c = &endpointClock{narrower: func() {}, stepped: func(int64) { m.steps++ }}
	return m
}

// shows returns the time of the first clock at a local instant, both in ms.
func (m *model) shows(local float64) float64 { return local + m.offset + local*m.rate }

// ask makes one request, and returns the instant after it.
func (m *model) ask(local, there, back float64) float64 {
	shown := m.shows(local + there)
	if n := m.r.IntN(len(m.others) + 1); n > 0 {
		shown += m.others[n-1]
	}
	date := time.UnixMilli(int64(shown)).UTC().Format(http.TimeFormat)
	m.c.saw(date, int64(local), int64(local+there+back))
	return local + there + back
}

// The bounds contain the endpoint's offset, for any offset, any allowed drift, and any delay of
// responses; removals use the lower one.
func TestEndpointClockBoundsTheOffset(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(seed)
		m.offset = m.r.Float64()*1e7 - 5e6
		m.rate = (m.r.Float64()*2 - 1) * 199e-6
		local := 1.9e12 + m.r.Float64()*1e6
		m.offset -= local * m.rate // only the drift from here on counts
		for range 500 {
			local = m.ask(local, m.r.ExpFloat64()*20, m.r.ExpFloat64()*20)
			local += m.r.ExpFloat64() * 2000
			low, high, known := m.c.bounds(int64(local))
			if off := m.shows(local) - local; !known || float64(low) > off || float64(high) < off {
				t.Fatalf("seed %d: %d to %d, known: %v, but it is %f", seed, low, high, known, off)
			}
		}
		if m.steps != 0 {
			t.Errorf("seed %d: %d steps of a clock that has made none", seed, m.steps)
		}
	}
}

// Requests as frequent as removals are bound it to a few ms.
func TestEndpointClockNarrowsUnderLoad(t *testing.T) {
	m := newModel(1)
	local := 1.9e12
	for range 5000 {
		local = m.ask(local, 0.3, 0.4)
	}
	if low, high, _ := m.c.bounds(int64(local)); high-low > 5 {
		t.Errorf("%d to %d", low, high)
	}
}

// One address may have several clocks. The slowest one counts, as soon and as far as it has shown
// itself.
func TestEndpointClockOfManyMachines(t *testing.T) {
	for seed := range uint64(50) {
		m := newModel(seed)
		m.others = []float64{300 * m.r.Float64(), 300 * m.r.Float64()}
		local, late, early := 1.9e12, 0, 0.0
		for i := range 3000 {
			local = m.ask(local, m.r.ExpFloat64(), m.r.ExpFloat64())
			local += m.r.ExpFloat64() * 50
			low, _, _ := m.c.bounds(int64(local))
			if float64(low) > m.offset && i > 1000 {
				early = max(early, float64(low)-m.offset)
			}
			if low < -1000 {
				late++
			}
		}
		if early > 25 {
			t.Errorf("seed %d: the lower bound was up to %f ms ahead of the clock that is furthest behind", seed, early)
		}
		if late > 0 {
			t.Errorf("seed %d: the lower bound was useless after %d answers", seed, late)
		}
	}
}

// guard notices an endpoint's clock that is set back with the first response that shows it, and one
// that is set ahead with the second.
func TestEndpointClockIsSet(t *testing.T) {
	for _, by := range []float64{-90_000, 90_000} {
		m := newModel(1)
		local := 1.9e12
		for range 100 {
			local = m.ask(local, 5, 5) + 300
		}
		m.offset += by
		local = m.ask(local, 5, 5)
		if by > 0 {
			if low, _, _ := m.c.bounds(int64(local)); low > 0 || m.steps != 0 {
				t.Errorf("one answer is believed: %d, %d steps", low, m.steps)
			}
			local = m.ask(local, 5, 5)
		}
		low, high, _ := m.c.bounds(int64(local))
		if float64(low) > by || float64(high) < by || m.steps != 1 {
			t.Errorf("set by %f: %d to %d, %d steps", by, low, high, m.steps)
		}
	}
}

// Nonsense in the header is not believed, and is no crash.
func FuzzDateHeader(f *testing.F) {
	for _, date := range []string{"", "Sat, 21 Nov 2026 21:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0000 00:00:00 GMT", "soon"} {
		f.Add(date, int64(1.9e12), int64(1.9e12+5))
	}
	f.Fuzz(func(t *testing.T, date string, sent, received int64) {
		if sent < 0 || sent > received || received > 1e14 {
			return
		}
		c := &endpointClock{narrower: func() {}, stepped: func(int64) {}}
		c.saw("Sat, 21 Nov 2026 21:00:00 GMT", sent, received)
		c.saw(date, sent, received)
		if low, high, known := c.bounds(received); known && low > high {
			t.Errorf("%d to %d", low, high)
		}
	})
}

// Over HTTP and by the machine's clock, guard learns the endpoint's time, and removes items soon
// after the deadline, but never before.
func TestCalibratesAgainstAServer(t *testing.T) {
	w := newWorld(t, overHTTP, inRealTime)
	deadline := w.now().Add(4 * time.Second).Truncate(time.Second)
	w.put("a", w.in(int64(deadline.Sub(w.now().Truncate(time.Second)).Seconds())))
	r := w.startIdle(w.options(Auto))
	r.arm(r.entry(w, "a"))
	there := w.now()
	r.await("it is gone", func() bool {
		now := w.now()
		if !w.has("a") {
			return true
		}
		there = now
		return false
	})
	if r.Stats().Lateness.Max > 5*time.Second { // which a machine of CI may take for anything
		t.Errorf("it went %v late", r.Stats().Lateness.Max)
	}
	if there.Before(deadline) && w.now().Before(deadline) {
		t.Errorf("it went before its deadline: it was there at %v, and gone at %v", there, w.now())
	}
	s := r.Stats()
	// dates are whole seconds
	if s.Ahead[0] > 0 || s.Ahead[1] < 0 || s.Ahead[1]-s.Ahead[0] > 900*time.Millisecond {
		t.Errorf("the endpoint's clock is this machine's, and guard takes it for one between %v", s.Ahead)
	}
}

// If the clocks differ too much, in either direction, guard stops instead of removing items too
// early.
func TestStopsBeyondMaxSkew(t *testing.T) {
	for _, by := range []time.Duration{-time.Minute, time.Minute} {
		w := newWorld(t, overHTTP)
		o := w.options(Auto)
		o.clock, o.trust = clock.NewFrozenAt(w.now().Add(-by)), false
		r := w.run(must1(New(o))(t), nil)
		p := r.problem()
		if p == nil || p.Code != Skew || !strings.Contains(p.Message, map[bool]string{true: "ahead of", false: "behind"}[by > 0]) {
			t.Errorf("by %v: %v", by, p)
		}
	}
}

// An endpoint without Date headers cannot be guarded.
func TestNoDate(t *testing.T) {
	w := newWorld(t)
	o := w.options(Auto)
	o.trust = false
	w.answer(func(answer *http.Response) { answer.Header.Del("Date") })
	o.DB = w.db
	r := w.run(must1(New(o))(t), nil)
	if p := r.problem(); p == nil || p.Code != NoDate {
		t.Errorf("%v", p)
	}
}

// problem waits for the end of Run, and returns its problem.
func (r *guarding) problem() *Problem {
	r.t.Helper()
	await(r.t, "guard ends", func() bool {
		select {
		case <-r.over:
			return true
		default:
			return false
		}
	})
	var p *Problem
	errors.As(r.stop(), &p)
	return p
}

// must1 returns a value that comes with an error.
func must1[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// NeverEarly: a response with a Date far ahead, from a machine or proxy with a wrong clock, makes
// nothing due early, until guard finds that the clocks differ too much.
func TestOneWrongDateRemovesNothing(t *testing.T) {
	w := newWorld(t, overHTTP)
	o := w.options(Auto)
	o.clock, o.trust = clock.NewFrozenAt(w.now()), false
	g := must1(New(o))(t)
	at := w.now().UnixMilli()
	says := func(ms int64) { g.endpoint.saw(time.UnixMilli(ms).UTC().Format(http.TimeFormat), at, at) }
	says(at)
	bound := g.now()
	// within MaxSkew and beyond
	for _, ahead := range []time.Duration{2 * time.Second, 4 * time.Second, time.Hour} {
		says(at + ahead.Milliseconds())
		if g.now() > bound {
			t.Errorf("one answer that is %v ahead is believed: by %v", ahead, time.Duration(g.now()-bound)*time.Millisecond)
		}
		if says(at); g.now() > bound {
			t.Errorf("after one that was %v ahead, the endpoint's clock is taken for %v later", ahead, time.Duration(g.now()-bound)*time.Millisecond)
		}
	}
	says(at + time.Hour.Milliseconds())
	says(at + time.Hour.Milliseconds())
	if ahead := g.now() - at; ahead > o.withDefaults().MaxSkew.Milliseconds() {
		t.Errorf("guard takes it to be %v later", time.Duration(ahead)*time.Millisecond)
	}
	if p := g.skewed(); p == nil || p.Code != Skew {
		t.Errorf("the problem is %v", p)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := g.sleep(ctx, at+time.Minute.Milliseconds(), nil); err == nil {
		t.Error("who waits for a deadline that is not due looks again and again")
	}
}

// guard trusts one response with a Date hours in the past while it is the only one, for that is the
// safe side. The next responses correct it, and neither removals nor the strategies wait for the
// wrong time.
func TestOneWrongDateDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := must1(New(Options{DB: dynamodb.New(dynamodb.Options{}), Table: worldTable, clock: clock.NewAt(began)}))(t)
		says := func(behind time.Duration) {
			at := g.local.Millis()
			g.endpoint.saw(time.Now().Add(-behind).UTC().Format(http.TimeFormat), at, at)
		}
		says(0)
		says(8 * time.Hour)
		until := g.now() + 8*time.Hour.Milliseconds() + 5000
		var all sync.WaitGroup
		for name, wake := range map[string]chan struct{}{"a sweep": nil, "the owner of a partition": make(chan struct{}), "the pump of removals": g.armed.Wake} {
			all.Go(func() {
				for g.now() < until {
					must(t, g.sleep(t.Context(), until, wake))
				}
				if took := time.Since(began); took < 4*time.Second || took > 10*time.Second {
					t.Errorf("%s has waited for %v", name, took)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		says(0)
		says(0)
		all.Wait()
	})
}

// A wait for the endpoint's clock does not take half an hour longer when that is set back by half
// an hour.
func TestPassWhereTheClockGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Options{DB: dynamodb.New(dynamodb.Options{}), Table: "t", Attribute: "ttl", MaxSkew: time.Hour})
		must(t, err)
		says := func(off time.Duration) {
			at := g.local.Millis()
			g.endpoint.saw(time.Now().Add(off).UTC().Format(http.TimeFormat), at, at)
		}
		says(30 * time.Minute)
		since, began := g.now(), time.Now()
		must(t, g.env().Pass(t.Context(), since, 5000))
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("5 s take %v", took)
		}
		for _, early := range []bool{true, false} {
			says(30 * time.Minute) // guard trusts the second one
			time.Sleep(time.Millisecond)
			says(30 * time.Minute)
			since, began = g.now(), time.Now()
			if early {
				says(0)
			} else {
				time.AfterFunc(time.Second, func() { says(0) })
			}
			must(t, g.env().Pass(t.Context(), since, 5000))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("5 s take %v", took)
			}
		}
	})
}
