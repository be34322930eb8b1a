package planner

import "math"

// Autoscaled is what autoscaling makes of a track.
type Autoscaled struct {
	Resource  string  `json:"resource"` // table, or index NAME
	Kind      Kind    `json:"kind"`
	Least     float64 `json:"least_units"` // capacity
	Most      float64 `json:"most_units"`
	Mean      float64 `json:"mean_units"`
	Demand    float64 `json:"demand_mean_units"` // a second
	Peak      float64 `json:"demand_peak_units"`
	Used      float64 `json:"utilisation"`        // of capacity by demand, throttled included, 0 and up
	Throttled float64 `json:"throttled_units"`    // units refused in all the shape
	Requests  float64 `json:"throttled_requests"` // about as many requests, of those of the table that it is the consequence of
	Asked     float64 `json:"asked_units"`        // units asked for in all the shape
	Out       int     `json:"scale_outs"`
	In        int     `json:"scale_ins"`
	Kept      int     `json:"scale_ins_refused"` // for a time, because the day's decreases were used up
	Minutes   int     `json:"throttled_minutes"`
	USD       float64 `json:"usd_per_month"`

	series *series // for charts; nil where none is wanted
}

// track is a track as autoscaling goes over it.
type track struct {
	Autoscaled
	least, most float64
	factor      float64                // demand is factor times the base
	of          func(p *Point) float64 // base demand of a minute
	price       float64                // of a unit and hour

	capacity    float64
	burst       float64    // unused units of the last 300 s
	left        [5]float64 // unused of each of the last five minutes, the oldest first from next on
	next        int
	over, under int     // consecutive minutes
	refused     bool    // scaling in, since it was last begun or not wanted, because the day's decreases were used up
	last        float64 // consumption a second of the minute before
	recent      [scaleInMinutes]float64
	change      float64 // capacity that is on its way
	wait        int     // minutes until it is there; 0: nothing is on its way
	hour        float64 // highest capacity of the hour
	billed      float64 // unit-hours
}

// What autoscaling goes by: see the package's comment.
const (
	scaleOutMinutes  = 2
	scaleInMinutes   = 15
	decreasesAtOnce  = 4
	initialOnDemandW = 4000
	initialOnDemandR = 12_000
	peakMinutes      = 30
)

// decreases are what is left of a resource's decreases.
type decreases struct{ left int }

// tick begins a minute of the day.
func (d *decreases) tick(minute int) {
	switch {
	case minute%(24*60) == 0:
		d.left = decreasesAtOnce
	case minute%60 == 0:
		d.left = min(d.left+1, decreasesAtOnce)
	}
}

// autoscale goes over the minutes of a shape, minutes long, with the tracks of one resource, which share its decreases. A shape that ends sooner begins again.
func autoscale(s *Shape, minutes int, set *Scaling, tracks []*track) {
	day := s.Start.UTC().Hour()*60 + s.Start.UTC().Minute()
	allowed := decreases{left: decreasesAtOnce}
	for _, t := range tracks {
		t.begin(set, t.factor*t.of(&s.Points[0]))
	}
	for m, i := 0, 0; m < minutes; m++ {
		allowed.tick(day + m)
		p := &s.Points[i]
		for _, t := range tracks {
			t.minute(m, t.factor*t.of(p), set, &allowed)
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
	t.capacity = t.wanted(demand, set)
	t.Least, t.Most = t.capacity, t.capacity
}

// wanted is the capacity for a consumption.
func (t *track) wanted(units float64, set *Scaling) float64 {
	// A hair less, so that 7/0.7 is 10 and not 11.
	return min(max(math.Ceil(units/set.Target-1e-9), t.least), t.most)
}

// minute lets one pass.
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
	t.decide(m, served/60, set, allowed)
}

// keep notes what a minute has left unused, and takes what it has borrowed from the oldest.
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

// decide is the two alarms. While a change is on its way they count on, and nothing else is begun.
func (t *track) decide(m int, consumed float64, set *Scaling, allowed *decreases) {
	t.recent[m%scaleInMinutes] = consumed
	if consumed > set.Target*t.capacity*(1+1e-9) {
		t.over++
	} else {
		t.over = 0
	}
	if consumed < (set.Target-set.Band)*t.capacity*(1-1e-9) {
		t.under++
	} else {
		t.under, t.refused = 0, false
	}
	higher := max(consumed, t.last)
	t.last = consumed
	switch {
	case t.wait > 0:
	case t.over >= scaleOutMinutes:
		if to := t.wanted(higher, set); to > t.capacity {
			t.turn(to, set)
			t.Out++
		}
	case t.under >= scaleInMinutes:
		highest := 0.0
		for _, u := range t.recent {
			highest = max(highest, u)
		}
		to := t.wanted(highest, set)
		switch {
		case to >= t.capacity:
		case allowed.left == 0: // the alarm goes on to ask each minute
			if !t.refused {
				t.Kept++
			}
			t.refused = true
		default:
			allowed.left--
			t.turn(to, set)
			t.In++
		}
	}
}

func (t *track) turn(to float64, set *Scaling) {
	t.change, t.wait, t.over, t.under, t.refused = to, max(set.Delay, 1), 0, 0, false
}

// end makes sums to means, and the price of a month.
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

// OnDemand is what a track does on demand.
type OnDemand struct {
	Resource  string  `json:"resource"`
	Kind      Kind    `json:"kind"`
	Throttled float64 `json:"throttled_units"` // of a table that is new when the shape begins and has not been warmed
	Minutes   int     `json:"throttled_minutes"`
	Warm      float64 `json:"warm_units"` // throughput to warm it to, so that nothing is throttled; 0: not needed
	USD       float64 `json:"usd_per_month"`
}

// onDemand goes over the first days of a shape with a table that is new.
func (t *track) onDemand(s *Shape, minutes int, perMillion float64) OnDemand {
	first := float64(initialOnDemandW)
	if t.Kind == Reads {
		first = initialOnDemandR
	}
	o := OnDemand{Resource: t.Resource, Kind: t.Kind, USD: t.Asked / float64(minutes) * minutesPerMonth / 1e6 * perMillion}
	if t.Peak <= first {
		return o
	}
	var served [peakMinutes]float64 // of the last minutes
	peak, i := 0.0, 0
	for m := range minutes {
		at := m % peakMinutes
		peak = max(peak, served[at]) // of 30 minutes ago
		demand := t.factor * t.of(&s.Points[i])
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
