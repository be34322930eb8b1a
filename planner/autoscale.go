package planner

import (
	"math"

	"github.com/mayflydb/mayfly/internal/tracking"
)

// Autoscaled is the result of autoscaling one track.
type Autoscaled struct {
	Resource string  `json:"resource"` // "table", or "index NAME"
	Kind     Kind    `json:"kind"`
	Least    float64 `json:"least_units"` // capacity
	Most     float64 `json:"most_units"`
	Mean     float64 `json:"mean_units"`
	Demand   float64 `json:"demand_mean_units"` // per second
	Peak     float64 `json:"demand_peak_units"`
	// demand, throttled units included, over capacity; 0 and up
	Used      float64 `json:"utilisation"`
	Throttled float64 `json:"throttled_units"` // units refused over the whole shape
	// an estimate; for an index, requests to the table that cause its writes
	Requests float64 `json:"throttled_requests"`
	Asked    float64 `json:"asked_units"` // units demanded over the whole shape
	Out      int     `json:"scale_outs"`
	In       int     `json:"scale_ins"`
	// scale-ins postponed because the day's decreases were used up
	Kept    int     `json:"scale_ins_refused"`
	Minutes int     `json:"throttled_minutes"`
	USD     float64 `json:"usd_per_month"`

	series *series // for charts; nil unless wanted
}

// track is a track during its simulation.
type track struct {
	Autoscaled
	least, most float64
	factor      float64                // demand is factor × base
	base        func(p *Point) float64 // base demand in a minute
	price       float64                // per unit and hour

	capacity float64
	burst    float64 // unused units of the last 300 s: the sum of left
	// a ring of the unused units of the last five minutes; the oldest is at next
	left    [5]float64
	next    int
	alarms  tracking.Alarms
	refused bool    // the pending scale-in waits for a decrease
	change  float64 // capacity after the change under way
	wait    int     // minutes until the change takes effect; 0: no change is under way
	hour    float64 // highest capacity of the hour
	billed  float64 // unit-hours
}

// The rules of autoscaling; the package comment has their sources.
const (
	decreasesAtOnce  = 4
	initialOnDemandW = 4000
	initialOnDemandR = 12_000
	peakMinutes      = 30
)

// decreases counts the decreases that a resource may still make.
type decreases struct{ left int }

// tick starts a minute of the day: a new hour adds a decrease, a new day resets them.
func (d *decreases) tick(minute int) {
	switch {
	case minute%(24*60) == 0:
		d.left = decreasesAtOnce
	case minute%60 == 0:
		d.left = min(d.left+1, decreasesAtOnce)
	}
}

// autoscale simulates the tracks of one resource, which share its decreases, over a number of
// minutes. A shorter shape repeats.
func autoscale(s *Shape, minutes int, set *Scaling, tracks []*track) {
	day := s.Start.UTC().Hour()*60 + s.Start.UTC().Minute()
	allowed := decreases{left: decreasesAtOnce}
	for _, t := range tracks {
		t.begin(set, t.factor*t.base(&s.Points[0]))
	}
	for m, i := 0, 0; m < minutes; m++ {
		allowed.tick(day + m)
		p := &s.Points[i]
		for _, t := range tracks {
			t.minute(m, t.factor*t.base(p), set, &allowed)
		}
		if i++; i == len(s.Points) {
			i = 0
		}
	}
	for _, t := range tracks {
		t.end(minutes)
	}
}

func (t *track) begin(set *Scaling, demand float64) {
	t.capacity = t.target(set).Wanted(demand)
	t.Least, t.Most = t.capacity, t.capacity
}

// target returns the track's target.
func (t *track) target(set *Scaling) tracking.Target {
	return tracking.Target{Utilisation: set.Target, Band: set.Band, Least: t.least, Most: t.most}
}

// minute simulates one minute: a change that takes effect, billing, burst, throttling, and the
// alarms.
func (t *track) minute(m int, demand float64, set *Scaling, allowed *decreases) {
	if t.wait > 0 {
		if t.wait--; t.wait == 0 {
			t.capacity = t.change
			t.Least, t.Most = min(t.Least, t.capacity), max(t.Most, t.capacity)
		}
	}
	if m%60 == 0 {
		t.billed += t.hour
		t.hour = 0
	}
	t.hour = max(t.hour, t.capacity)

	asked, had := 60*demand, 60*t.capacity
	served := min(asked, had+t.burst)
	t.keep(max(had-served, 0), max(served-had, 0))
	if refused := asked - served; refused > 1e-9*asked {
		t.Throttled += refused
		t.Minutes++
	}
	t.Asked += asked
	t.Peak = max(t.Peak, demand)
	t.Mean += t.capacity
	if t.series != nil {
		t.series.add(m, demand, t.capacity, asked-served)
	}
	t.decide(served/60, set, allowed)
}

// keep updates the burst capacity, which is the unused units of the last minutes. It takes the units
// that this minute used beyond its capacity from the oldest minutes first, and then adds the units
// that this minute left unused.
func (t *track) keep(unused, borrowed float64) {
	for i := range t.left {
		if borrowed == 0 {
			break
		}
		at := &t.left[(t.next+i)%len(t.left)]
		taken := min(*at, borrowed)
		*at -= taken
		borrowed -= taken
		t.burst -= taken
	}
	t.burst += unused - t.left[t.next]
	t.left[t.next] = unused
	if t.next++; t.next == len(t.left) {
		t.next = 0
	}
	t.burst = max(t.burst, 0)
}

// decide evaluates the two alarms. During a change the alarms count on, and no other change starts.
func (t *track) decide(consumed float64, set *Scaling, allowed *decreases) {
	target := t.target(set)
	t.alarms.Observe(consumed, t.capacity, target)
	if !t.alarms.Low(consumed, t.capacity, target) {
		t.refused = false
	}
	if t.wait > 0 {
		return
	}
	switch change, to := t.alarms.Ask(t.capacity, target); change {
	case tracking.Out:
		t.turn(to, set)
		t.Out++
	case tracking.In:
		if allowed.left == 0 { // the alarm repeats every minute
			if !t.refused {
				t.Kept++
			}
			t.refused = true
			return
		}
		allowed.left--
		t.turn(to, set)
		t.In++
	}
}

func (t *track) turn(to float64, set *Scaling) {
	t.alarms.Restart()
	t.change, t.wait, t.refused = to, max(set.Delay, 1), false
}

// end turns sums into means, and computes the monthly price.
func (t *track) end(minutes int) {
	t.billed += t.hour
	hours := math.Ceil(float64(minutes) / 60)
	t.USD = t.billed * t.price * hoursPerMonth / hours
	t.Mean /= float64(minutes)
	t.Demand = t.Asked / 60 / float64(minutes)
	if t.Mean > 0 {
		t.Used = t.Demand / t.Mean
	}
}

// OnDemand is the result of a track on demand.
type OnDemand struct {
	Resource string `json:"resource"`
	Kind     Kind   `json:"kind"`
	// for a table that is new, and not warmed, when the shape begins
	Throttled float64 `json:"throttled_units"`
	Minutes   int     `json:"throttled_minutes"`
	// throughput to warm the table to, so that it throttles nothing; 0: not needed
	Warm float64 `json:"warm_units"`
	USD  float64 `json:"usd_per_month"`
}

// onDemand simulates the track over the same minutes on demand, for a table that is new when they
// begin. It uses the peak and the sum of the demand, so autoscale must come first. perMillion is
// the price of a million units.
func (t *track) onDemand(s *Shape, minutes int, perMillion float64) OnDemand {
	first := float64(initialOnDemandW)
	if t.Kind == Reads {
		first = initialOnDemandR
	}
	o := OnDemand{Resource: t.Resource, Kind: t.Kind, USD: t.Asked / float64(minutes) * minutesPerMonth / 1e6 * perMillion}
	if t.Peak <= first {
		return o
	}
	var served [peakMinutes]float64 // in the last minutes
	peak, i := 0.0, 0
	for m := range minutes {
		at := m % peakMinutes
		peak = max(peak, served[at]) // 30 minutes ago
		demand := t.factor * t.base(&s.Points[i])
		gives := max(first, 2*peak)
		served[at] = min(demand, gives)
		if demand > gives*(1+1e-9) {
			o.Throttled += 60 * (demand - gives)
			o.Minutes++
			o.Warm = math.Ceil(t.Peak)
		}
		if i++; i == len(s.Points) {
			i = 0
		}
	}
	return o
}
