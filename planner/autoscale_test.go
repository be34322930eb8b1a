package planner

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// run simulates a track of writes, with one demand per minute, and returns its capacity in each
// minute.
func run(set Scaling, start time.Time, demands ...float64) (*track, []float64) {
	set.fill(func(is bool, format string, args ...any) {
		if is {
			panic(format)
		}
	})
	s := &Shape{Start: start}
	for _, d := range demands {
		s.Points = append(s.Points, Point{Writes: d})
	}
	t := &track{factor: 1, base: func(p *Point) float64 { return p.Writes }, price: 0.00065, least: set.MinWrite, most: set.MaxWrite}
	t.Kind = Writes
	var capacity []float64
	t.series = newSeries(len(demands))
	autoscale(s, len(demands), &set, []*track{t})
	capacity = t.series.capacity
	return t, capacity
}

func minutes(n int, d float64) (all []float64) {
	for range n {
		all = append(all, d)
	}
	return all
}

func join(parts ...[]float64) (all []float64) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// Two consecutive minutes above the target add capacity after the delay; one does not.
func TestScaleOut(t *testing.T) {
	track, capacity := run(Scaling{}, time.Time{}, join(minutes(10, 70), minutes(1, 90), minutes(5, 70), minutes(10, 90))...)
	// 90/0.7, two minutes after the second minute above the target
	want := join(minutes(19, 100), minutes(7, 129))
	for m := range capacity {
		if capacity[m] != want[m] {
			t.Fatalf("minute %d: %v, want %v\n%v", m, capacity[m], want[m], capacity)
		}
	}
	if track.Out != 1 || track.In != 0 || track.Throttled != 0 {
		t.Errorf("%+v", track.Autoscaled)
	}
}

// Fifteen consecutive minutes 20 points below the target reduce capacity to fit the highest of
// them. Without a band, minutes below the target count.
func TestScaleIn(t *testing.T) {
	for _, x := range []struct {
		band   float64
		demand float64
		in     int
		to     float64
	}{{0.2, 51, 0, 100}, {0.2, 49, 1, 70}, {-1, 51, 1, 73}, {-1, 70, 0, 100}} {
		track, capacity := run(Scaling{Band: x.band}, time.Time{}, join(minutes(1, 70), minutes(14, x.demand-1), minutes(1, x.demand), minutes(3, x.demand-1))...)
		if last := capacity[len(capacity)-1]; track.In != x.in || (x.in == 0) != (last == 100) || last != x.to {
			t.Errorf("band %v, demand %v: %d times, to %v, want %d and %v", x.band, x.demand, track.In, last, x.in, x.to)
		}
		if early := capacity[16]; early != 100 {
			t.Errorf("it was taken back after fewer than 15 minutes and the delay")
		}
	}
	if track, _ := run(Scaling{}, time.Time{}, join(minutes(1, 70), minutes(14, 10), minutes(1, 60), minutes(14, 10), minutes(5, 60))...); track.In != 0 {
		t.Error("fourteen minutes were enough")
	}
}

// A burst spends the unused capacity of the last 300 s at any rate, and no more.
func TestBurst(t *testing.T) {
	set := Scaling{MinWrite: 100, MaxWrite: 100}
	for _, x := range []struct {
		idle      int // minutes with 90 unused units per second
		spike     float64
		throttled float64
	}{
		{10, 100 + 5*90, 0},      // 27,000 units from five minutes
		{10, 100 + 5*90 + 1, 60}, // one more per second
		{3, 100 + 3*90, 0},       // three minutes are saved
		{3, 100 + 3*90 + 2, 120}, //
		{0, 101, 60},             // none are saved
	} {
		track, _ := run(set, time.Time{}, join(minutes(x.idle, 10), minutes(1, x.spike))...)
		if math.Abs(track.Throttled-x.throttled) > 1e-6 {
			t.Errorf("after %d minutes a spike of %v: %v throttled, want %v", x.idle, x.spike, track.Throttled, x.throttled)
		}
	}
	// Units are spent once, and expire after five minutes.
	if track, _ := run(set, time.Time{}, join(minutes(5, 10), minutes(1, 550), minutes(1, 101))...); math.Abs(track.Throttled-60) > 1e-6 {
		t.Errorf("it was spent twice: %v", track.Throttled)
	}
	if track, _ := run(set, time.Time{}, join(minutes(1, 0), minutes(5, 100), minutes(1, 101))...); math.Abs(track.Throttled-60) > 1e-6 {
		t.Errorf("it was kept for longer than 300 s: %v throttled", track.Throttled)
	}
}

// A day begins with four decreases, and each hour adds one, never more than four at a time: 27 per
// day.
func TestDecreases(t *testing.T) {
	var all []float64
	for range 24 * 3 { // up and down three times per hour
		all = append(all, join(minutes(4, 700), minutes(16, 70))...)
	}
	midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	track, _ := run(Scaling{Delay: -1}, midnight, all...)
	if track.In != 27 || track.Kept == 0 {
		t.Errorf("%d decreases in a day, %d refused", track.In, track.Kept)
	}
	// From noon: four, one in each of the next eleven hours, four at midnight, and one in each of
	// eleven.
	if track, _ = run(Scaling{Delay: -1}, midnight.Add(12*time.Hour), all...); track.In != 4+11+4+11 {
		t.Errorf("%d decreases from noon to noon", track.In)
	}
	free, _ := run(Scaling{Delay: -1}, midnight, all[:60]...)
	if free.In != 3 || free.Kept != 0 {
		t.Errorf("%d decreases in the first hour, %d refused", free.In, free.Kept)
	}
}

// A postponed scale-in happens in the next hour, which adds a decrease, and counts as postponed
// once.
func TestDecreasesPutOff(t *testing.T) {
	var all []float64
	// a decrease at the end of each quarter of an hour except the first: 29, 44, 59, 74, 89, and
	// none is left at 104
	for d := 6400.0; d > 100; d /= 2 {
		all = append(all, minutes(15, d)...)
	}
	track, capacity := run(Scaling{Delay: -1}, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), append(all, minutes(60, 100)...)...)
	if track.In != 6 || track.Kept != 1 || capacity[120] != 286 || capacity[121] != 143 {
		t.Errorf("%d decreases, %d put off; %v", track.In, track.Kept, capacity)
	}
}

// Reads and writes of one table share its decreases.
func TestDecreasesAreShared(t *testing.T) {
	s := &Shape{}
	for range 6 {
		for m := range 20 {
			v := 70.0
			if m < 4 {
				v = 700
			}
			s.Points = append(s.Points, Point{v, v})
		}
	}
	var set Scaling
	set.Delay = -1
	set.fill(func(bool, string, ...any) {})
	of := func(p *Point) float64 { return p.Writes }
	both := []*track{{factor: 1, base: of, least: 1, most: 40_000}, {factor: 1, base: of, least: 1, most: 40_000}}
	autoscale(s, len(s.Points), &set, both)
	if in := both[0].In + both[1].In; in != 5 { // four at once, and one more an hour later
		t.Errorf("%d decreases within two hours", in)
	}
}

func TestBoundsOfCapacity(t *testing.T) {
	track, capacity := run(Scaling{MinWrite: 50, MaxWrite: 200}, time.Time{}, join(minutes(30, 1), minutes(30, 1000), minutes(60, 1))...)
	if capacity[0] != 50 || track.Most != 200 || track.Least != 50 || capacity[len(capacity)-1] != 50 || track.Throttled == 0 {
		t.Errorf("%+v\n%v", track.Autoscaled, capacity)
	}
}

// An hour is billed at its highest capacity.
func TestHoursAreBilled(t *testing.T) {
	track, _ := run(Scaling{Delay: -1}, time.Time{}, join(minutes(60, 70), minutes(5, 140), minutes(55, 70), minutes(60, 70))...)
	// 100 in the first hour, 200 in the second, 100 in the third.
	if want := (100 + 200 + 100) * 0.00065 * 720 / 3; math.Abs(track.USD-want) > 1e-9 {
		t.Errorf("$%v, want $%v; %+v", track.USD, want, track.Autoscaled)
	}
}

// On demand serves its initial throughput, then double the peak of half an hour ago.
func TestOnDemandGrows(t *testing.T) {
	r := made(t, Workload{Writes: 10_000, ItemBytes: 100, Mix: Mix{Strong: 12_000}}, USEast1)
	writes, reads := r.Demands[0], r.Demands[1]
	if writes.Minutes != 60 || writes.Warm != 10_000 || writes.Throttled != 60*(30*6000+30*2000) {
		t.Errorf("%+v", writes) // 4,000 for half an hour, 8,000 for another
	}
	if reads.Throttled != 0 || reads.Warm != 0 {
		t.Errorf("%+v", reads)
	}
}

// A shape shorter than a month repeats; a longer one counts whole.
func TestShapesLength(t *testing.T) {
	day := &Shape{}
	for m := range 24 * 60 {
		day.Points = append(day.Points, Point{Writes: 500 + 400*math.Sin(2*math.Pi*float64(m)/1440)})
	}
	r := made(t, Workload{ItemBytes: 100, Shape: day}, USEast1)
	if r.Minutes != minutesPerMonth || math.Abs(r.WritesPerS-500) > 1e-6 || math.Abs(r.Demands[0].USD-500*secondsPerMonth/1e6*0.625) > 1e-6 {
		t.Errorf("%d minutes of %v a second cost %v", r.Minutes, r.WritesPerS, r.Demands[0].USD)
	}
	if w := r.Tracks[0]; w.Throttled != 0 || w.In == 0 || w.In > 27*30 || w.Used < 0.55 || w.Used > 0.7 {
		t.Errorf("a calm day: %+v", w)
	}
	long := &Shape{Points: append(append([]Point(nil), make([]Point, minutesPerMonth)...), day.Points...)}
	if r = made(t, Workload{ItemBytes: 100, Shape: long}, USEast1); r.Minutes != minutesPerMonth+1440 || math.Abs(r.Demands[0].USD-500*86400*30.0/31/1e6*0.625) > 1e-6 {
		t.Errorf("%d minutes cost %v", r.Minutes, r.Demands[0].USD)
	}
}

// Even traffic is cheaper with provisioned capacity, uneven traffic on demand.
func TestCheaperMode(t *testing.T) {
	spiky := &Shape{Points: make([]Point, 24*60)}
	for m := range 3 {
		spiky.Points[m*480] = Point{Writes: 3000}
	}
	r := made(t, Workload{ItemBytes: 100, Shape: spiky, Scaling: Scaling{MinWrite: 3000}}, USEast1)
	if r.Modes.Cheaper != ModeOnDemand || r.Modes.OnDemandUSD >= r.Modes.AutoscaledUSD {
		t.Errorf("%+v", r.Modes)
	}
	if r = made(t, readings(), USEast1); r.Modes.Cheaper != ModeAutoscaled {
		t.Errorf("%+v", r.Modes)
	}
	// Spikes of one minute never scale out, and are throttled unless bursts cover them.
	r = made(t, Workload{ItemBytes: 100, Shape: spiky}, USEast1)
	if w := r.Tracks[0]; w.Out != 0 || w.Throttled == 0 {
		t.Errorf("%+v", w)
	}
}

func BenchmarkMonth(b *testing.B) {
	s := &Shape{}
	for m := range minutesPerMonth {
		v := 1000 + 800*math.Sin(2*math.Pi*float64(m)/1440) + float64(m*7919%500)
		s.Points = append(s.Points, Point{Writes: v, Reads: 2 * v})
	}
	w := Workload{ItemBytes: 1000, Shape: s, Retention: month, Mix: Mix{Eventual: 1}, Indexes: []Index{{Name: "all", Reads: 10}, {Name: "keys", Projection: KeysOnly}}}
	p := Default()
	for b.Loop() {
		if _, err := Make(w, p); err != nil {
			b.Fatal(err)
		}
	}
}

// For any traffic: capacity stays within its bounds, served units come from capacity or the last
// five minutes, and all demand is either served or throttled.
func TestAnyTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := float64(rapid.IntRange(1, 200).Draw(t, "min"))
		set := Scaling{MinWrite: low, MaxWrite: low + float64(rapid.IntRange(0, 500).Draw(t, "more")), Delay: rapid.IntRange(-1, 5).Draw(t, "delay"), Target: rapid.Float64Range(0.2, 0.9).Draw(t, "target"), Band: -1}
		demands := rapid.SliceOfN(rapid.Float64Range(0, 1000), 1, 300).Draw(t, "demands")
		track, capacity := run(set, time.Time{}, demands...)
		var left []float64 // a naive model: unused units of each of the last five minutes
		throttled := 0.0
		for m, d := range demands {
			c := capacity[m]
			if c < set.MinWrite || c > set.MaxWrite || c != math.Trunc(c) {
				t.Fatalf("minute %d: capacity %v", m, c)
			}
			need := 60*d - 60*c
			if need <= 0 {
				left = append(left, -need)
			} else {
				for i := range left {
					taken := min(left[i], need)
					left[i] -= taken
					need -= taken
				}
				left = append(left, 0)
				if need > 1e-9*60*d {
					throttled += need
				}
			}
			left = left[max(0, len(left)-5):]
		}
		if math.Abs(throttled-track.Throttled) > 1e-6*(1+throttled) {
			t.Fatalf("%v throttled, want %v", track.Throttled, throttled)
		}
	})
}
