package skew

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// anyDifference is a limit that no clock of a test exceeds.
const anyDifference = century

// model is an endpoint with a wrong clock that drifts, and the exchanges with it.
type model struct {
	c      *Clock
	r      *rand.Rand
	offset float64   // ms, of the first clock behind the address
	others []float64 // leads of further clocks over it, in ms
	rate   float64   // ms that it gains in a ms
	steps  int
}

func newModel(seed uint64) *model {
	m := &model{r: rand.New(rand.NewPCG(seed, 0))}
	m.c = NewClock(anyDifference, 0, 0)
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
	if m.c.Saw(date, int64(local), int64(local+there+back), int64(local+there+back)).Stepped != 0 {
		m.steps++
	}
	return local + there + back
}

// The bounds contain the endpoint's offset, for any offset, any allowed drift, and any delay of
// responses; removals use the lower one.
func TestClockBoundsTheOffset(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(seed)
		m.offset = m.r.Float64()*1e7 - 5e6
		m.rate = (m.r.Float64()*2 - 1) * 199e-6
		local := 1.9e12 + m.r.Float64()*1e6
		m.offset -= local * m.rate // only the drift from here on counts
		for range 500 {
			local = m.ask(local, m.r.ExpFloat64()*20, m.r.ExpFloat64()*20)
			local += m.r.ExpFloat64() * 2000
			low, high, known := m.c.At(int64(local))
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
func TestClockNarrowsUnderLoad(t *testing.T) {
	m := newModel(1)
	local := 1.9e12
	for range 5000 {
		local = m.ask(local, 0.3, 0.4)
	}
	if low, high, _ := m.c.At(int64(local)); high-low > 5 {
		t.Errorf("%d to %d", low, high)
	}
}

// One address may have several clocks. The slowest one counts, as soon and as far as it has shown
// itself.
func TestClockOfManyMachines(t *testing.T) {
	for seed := range uint64(50) {
		m := newModel(seed)
		m.others = []float64{300 * m.r.Float64(), 300 * m.r.Float64()}
		local, late, early := 1.9e12, 0, 0.0
		for i := range 3000 {
			local = m.ask(local, m.r.ExpFloat64(), m.r.ExpFloat64())
			local += m.r.ExpFloat64() * 50
			low, _, _ := m.c.At(int64(local))
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

// A Clock notices an endpoint's clock that is set back with the first response that shows it, and one
// that is set ahead with the second.
func TestClockIsSet(t *testing.T) {
	for _, by := range []float64{-90_000, 90_000} {
		m := newModel(1)
		local := 1.9e12
		for range 100 {
			local = m.ask(local, 5, 5) + 300
		}
		m.offset += by
		local = m.ask(local, 5, 5)
		if by > 0 {
			if low, _, _ := m.c.At(int64(local)); low > 0 || m.steps != 0 {
				t.Errorf("one answer is believed: %d, %d steps", low, m.steps)
			}
			local = m.ask(local, 5, 5)
		}
		low, high, _ := m.c.At(int64(local))
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
		c := NewClock(5000, sent, sent)
		c.Saw("Sat, 21 Nov 2026 21:00:00 GMT", sent, received, received)
		c.Saw(date, sent, received, received)
		if low, high, known := c.At(received); known && low > high {
			t.Errorf("%d to %d", low, high)
		}
	})
}

// machineModel is a machine whose two clocks and an endpoint may go wrong, one at a time. Instants
// are ms of true time.
type machineModel struct {
	*rand.Rand
	c                     *Clock
	now                   float64
	slept, set, off, rate float64 // the errors: of the monotonic clock, the wall clock, the endpoint's
	since                 float64 // when rate began
	other                 float64 // of a second server behind the address
	missing               bool
}

const modelMost = 5000

func newMachineModel(seed uint64) *machineModel {
	m := &machineModel{Rand: rand.New(rand.NewPCG(seed, 1)), now: 1.9e12}
	m.c = NewClock(modelMost, m.local(), m.wall())
	return m
}

func (m *machineModel) local() int64 { return int64(m.now - m.slept) }
func (m *machineModel) wall() int64  { return int64(m.now + m.set) }

// ask makes a request.
func (m *machineModel) ask() Seen {
	sent := m.local()
	m.now += m.ExpFloat64() * 20
	date := time.UnixMilli(int64(m.now + m.off + m.other*float64(m.IntN(2)) + (m.now-m.since)*m.rate)).UTC().Format(http.TimeFormat)
	m.now += m.ExpFloat64() * 20
	if m.missing {
		date = ""
	}
	return m.c.Saw(date, sent, m.local(), m.wall())
}

// fail makes one clock wrong.
func (m *machineModel) fail() string {
	by := float64(m.IntN(600_000) - 300_000)
	switch m.IntN(7) {
	case 0:
		m.off = by
		return "jump"
	case 1:
		m.rate, m.since = m.Float64()-0.5, m.now
		return "drift"
	case 2:
		m.missing = true
		return "missing"
	case 3:
		m.other = by
		return "two servers"
	case 4:
		m.set = by
		return "wall"
	case 5:
		m.slept += max(by, 0) // the clock stood still; it does not go back
		return "suspended"
	}
	return "none"
}

// NeverEarly: with one wrong clock of three, the endpoint's time is never taken to be later than the
// limit allows, and the earlier of its time and the machine's is never ahead. Once the fault has ended,
// the doubt ends as well.
func TestOneWrongClockOfThree(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(400) {
		m := newMachineModel(seed)
		for range 20 {
			m.ask()
			m.now += m.ExpFloat64() * 500
		}
		for range 8 {
			fault := m.fail()
			for range 40 + m.IntN(60) {
				if s := m.ask(); s.Began {
					met[fault]++
				}
				if _, open := m.c.Doubt(); !open {
					low, _, known := m.c.At(m.local())
					if early := float64(m.local()+low) - m.now; known && early > modelMost+100 {
						t.Fatalf("seed %d: %s: the endpoint's time is taken for %.0f ms later than it is", seed, fault, early)
					}
					if ahead := float64(min(m.c.Machine(m.local()), m.local()+low)) - m.now; known && ahead > 100 {
						t.Fatalf("seed %d: %s: both clocks are taken for %.0f ms later than it is", seed, fault, ahead)
					}
				}
				m.now += m.ExpFloat64() * 500
			}
			m.off, m.rate, m.other, m.set, m.missing = 0, 0, 0, 0, false
			for range 20 {
				m.ask()
				m.now += 500
			}
			if d, open := m.c.Doubt(); open {
				t.Fatalf("seed %d: the endpoint is still in doubt after a fault of the kind %s has ended: %+v", seed, fault, d)
			}
		}
	}
	for _, fault := range []string{"jump", "drift", "two servers", "suspended"} {
		if met[fault] < 20 {
			t.Errorf("only %d doubts in faults of the kind %s", met[fault], fault)
		}
	}
	if met["none"]+met["missing"] > 0 {
		t.Errorf("doubts without a wrong clock: %v", met)
	}
}

// With this machine's clock in place of the endpoint's, a jump of it is a doubt for two seconds, and
// a small correction is none.
func TestLocalClock(t *testing.T) {
	c := NewLocal(modelMost, 1000, 1000)
	if s := c.Look(2000, 2400); s.Began || !s.Rose {
		t.Errorf("a small correction: %+v", s)
	}
	for i, want := range []Seen{{Began: true}, {}, {}, {Rose: true, Ended: true}} {
		at := 3000 + int64(i)*700
		if s := c.Look(at, at+60_000); s != want {
			t.Errorf("look %d: %+v, not %+v", i, s, want)
		}
		if _, open := c.Doubt(); open != (i < 3) {
			t.Errorf("look %d: in doubt: %t", i, open)
		}
	}
	if low, high, known := c.At(6000); low != 60_000 || high != 60_000 || !known {
		t.Errorf("%d to %d, %t", low, high, known)
	}
	if s := c.Saw("Fri, 31 Dec 9999 23:59:59 GMT", 1, 2, 3); s != (Seen{}) {
		t.Errorf("a Date counts: %+v", s)
	}
}

// exact is a Clock that has had one exact answer from an endpoint without offset, at the instant
// 1,000,000.
func exact(t *testing.T) (c *Clock, saw func(off, now int64) Seen) {
	t.Helper()
	c = NewClock(modelMost, 1_000_000, 1_000_000)
	saw = func(off, now int64) Seen {
		return c.Saw(time.UnixMilli(now+off).UTC().Format(http.TimeFormat), now, now, now)
	}
	if s := saw(0, 1_000_000); s.Began || s.Ended {
		t.Fatalf("%+v", s)
	}
	return c, saw
}

func (c *Clock) doubtful() bool {
	_, open := c.Doubt()
	return open
}

// One answer ahead is ignored, the second is a doubt; neither moves the bounds. The doubt ends a
// second after the first plausible answer.
func TestAnswersAhead(t *testing.T) {
	c, saw := exact(t)
	low, high, _ := c.At(1_000_000)
	if s := saw(60_000, 1_000_000); s.Ignored != 59_999 || c.doubtful() {
		t.Errorf("the first answer ahead: %+v, in doubt: %t", s, c.doubtful())
	}
	if s := saw(60_000, 1_000_000); !s.Began || !c.doubtful() {
		t.Errorf("the second answer ahead: %+v", s)
	}
	if d, _ := c.Doubt(); d != (Doubt{By: 59_999}) {
		t.Errorf("%+v", d)
	}
	if l, h, _ := c.At(1_000_000); l != low || h != high {
		t.Errorf("the bounds are %d to %d; before, %d to %d", l, h, low, high)
	}
	if saw(0, 1_001_000); !c.doubtful() {
		t.Error("the doubt ends with the first plausible answer")
	}
	if s := saw(0, 1_002_000); !s.Ended || c.doubtful() {
		t.Errorf("the doubt goes on: %+v", s)
	}
	// the answers of two servers do not add up
	saw(60_000, 1_003_000)
	saw(0, 1_003_000)
	if saw(60_000, 1_003_000); c.doubtful() {
		t.Error("two answers ahead with another between them are a doubt")
	}
}

// The first answer behind is a doubt.
func TestAnswerBehind(t *testing.T) {
	c, saw := exact(t)
	if s := saw(-60_000, 1_000_000); !s.Began {
		t.Errorf("%+v", s)
	}
	if d, open := c.Doubt(); !open || d != (Doubt{By: -59_000}) {
		t.Errorf("%+v, %t", d, open)
	}
}

// The lower bound follows the machine's time when that is set back within the limit.
func TestBoundFollowsTheMachine(t *testing.T) {
	c, saw := exact(t)
	saw(4000, 1_000_000)
	saw(4000, 1_000_000) // confirms the first
	if low, _, _ := c.At(1_000_000); low < 3000 {
		t.Fatalf("the lower bound is %d", low)
	}
	// an answer that was long on its way agrees with many times
	c.Saw(time.UnixMilli(1_014_000).UTC().Format(http.TimeFormat), 1_000_000, 1_020_000, 1_016_000)
	if low, _, _ := c.At(1_020_000); low > -4000+modelMost {
		t.Errorf("the machine's time is 4 s back, and the lower bound %d", low)
	}
}
