package bench

import "slices"

// medianExpiry summarizes the rounds of an experiment at a server.
func medianExpiry(rounds []*Expiry) Expiry {
	x := *rounds[0]
	x.Rounds = len(rounds)
	x.Commit = medianLateness(rounds, func(x *Expiry) *Lateness { return x.Commit })
	x.Stream = medianLateness(rounds, func(x *Expiry) *Lateness { return x.Stream })
	x.Beside = medianLateness(rounds, func(x *Expiry) *Lateness { return x.Beside })
	over := func(value func(*Expiry) float64) float64 {
		values := make([]float64, len(rounds))
		for i, x := range rounds {
			values[i] = value(x)
		}
		return spreadOf(values).Median
	}
	x.DrainPerS = over(func(x *Expiry) float64 { return x.DrainPerS })
	x.ReaderPerS = over(func(x *Expiry) float64 { return x.ReaderPerS })
	x.CPUUS = over(func(x *Expiry) float64 { return x.CPUUS })
	x.Faults = Faults{}
	for _, round := range rounds {
		x.Faults.add(round.Faults)
	}
	x.Foreground = slices.Clone(x.Foreground)
	for i := range x.Foreground {
		f := &x.Foreground[i]
		f.IdleP50MS = over(func(x *Expiry) float64 { return x.Foreground[i].IdleP50MS })
		f.IdleP99MS = over(func(x *Expiry) float64 { return x.Foreground[i].IdleP99MS })
		f.DuringP50MS = over(func(x *Expiry) float64 { return x.Foreground[i].DuringP50MS })
		f.DuringP99MS = over(func(x *Expiry) float64 { return x.Foreground[i].DuringP99MS })
		for _, round := range rounds[1:] {
			f.IdleCalls += round.Foreground[i].IdleCalls
			f.DuringCalls += round.Foreground[i].DuringCalls
		}
	}
	return x
}

// medianLateness returns the lateness over the rounds that have one; nil without any.
func medianLateness(rounds []*Expiry, lateness func(*Expiry) *Lateness) *Lateness {
	var p50, p99 []float64
	most := 0.0
	for _, x := range rounds {
		if l := lateness(x); l != nil {
			p50, p99, most = append(p50, l.P50), append(p99, l.P99), max(most, l.Max)
		}
	}
	if p50 == nil {
		return nil
	}
	return &Lateness{P50: spreadOf(p50).Median, P99: spreadOf(p99).Median, Max: most}
}
