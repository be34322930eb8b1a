package bench

import (
	"slices"
	"time"
)

// figures returns a summary of each cell over the rounds, for every target.
func (s samples) figures(targets []target, cells []cell) (list []Figure) {
	for _, c := range cells {
		for i, t := range targets {
			c.target = i
			if f, ok := figureOf(s[c]); ok {
				f.Scenario, f.About, f.Connections, f.Target = c.scenario.name, c.scenario.about, c.connections, t.title()
				list = append(list, f)
			}
		}
	}
	return list
}

// figureOf returns the summary of one cell; ok is false without samples.
func figureOf(rounds []sample) (f Figure, ok bool) {
	var measured []sample
	for _, m := range rounds {
		f.Errors += m.errors
		if m.calls > 0 {
			f.Calls += m.calls
			measured = append(measured, m)
		}
	}
	if len(measured) == 0 {
		return f, f.Errors > 0
	}
	over := func(value func(sample) float64) Spread {
		values := make([]float64, len(measured))
		for i, m := range measured {
			values[i] = value(m)
		}
		return spreadOf(values)
	}
	f.CallsPerS = over(func(m sample) float64 { return m.callsPerS })
	f.ItemsPerS = over(func(m sample) float64 { return m.itemsPerS })
	f.MBPerS = over(func(m sample) float64 { return m.itemsPerS * itemBytes / 1e6 })
	f.P50MS = over(func(m sample) float64 { return millis(m.p50) })
	f.P99MS = over(func(m sample) float64 { return millis(m.p99) })
	if measured[0].serverCPU > 0 {
		s := over(func(m sample) float64 { return micros(m.serverCPU) })
		f.ServerCPUUS = &s
	}
	if measured[0].clientCPU > 0 {
		s := over(func(m sample) float64 { return micros(m.clientCPU) })
		f.ClientCPUUS = &s
	}
	return f, true
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// metric is a value of a sample for ratios; zero without a measurement.
type metric struct {
	name string
	of   func(sample) float64
}

var (
	callsRate = metric{"calls_per_s", func(m sample) float64 { return m.callsPerS }}
	itemsRate = metric{"items_per_s", func(m sample) float64 { return m.itemsPerS }}
	serverCPU = metric{"server_cpu_us", func(m sample) float64 { return micros(m.serverCPU) }}
	median    = metric{"p50_ms", func(m sample) float64 { return millis(m.p50) }}
)

// comparisons of a scenario with another one, at the first endpoint.
var comparisons = []struct {
	scenario, with string
	metric         metric
}{
	{scenarioPutIndexed, scenarioPut, callsRate},
	{scenarioPut, scenarioPutNoTTL, callsRate},
	{scenarioPutNoTTL, scenarioPutPlain, callsRate},
	{scenarioUpdate, scenarioPut, callsRate},
	{scenarioBatch, scenarioPut, itemsRate},
	{scenarioTransact, scenarioPut, itemsRate},
}

// overBoth is Ratio.Over for a durable put over one connection, compared with one commit of the
// loop plus one round trip of echo.
const overBoth = TargetLoop + "+" + TargetEcho

// ratios returns the ratios of the first target to the others, and of its scenarios to each other.
func (s samples) ratios(targets []target, cells []cell) (list []Ratio) {
	add := func(m metric, a cell, over string, b cell) {
		values := divide(each(s[a], m), each(s[b], m))
		if len(values) > 0 {
			list = append(list, Ratio{
				Scenario: a.scenario.name, Connections: a.connections, Target: targets[a.target].title(), Metric: m.name,
				Over: over, OverScenario: b.scenario.name, Value: spreadOf(values),
			})
		}
	}
	for _, c := range cells {
		for i, t := range targets[1:] {
			other := cell{c.scenario, c.connections, i + 1}
			add(callsRate, c, t.title(), other)
			add(serverCPU, c, t.title(), other)
		}
		for _, pair := range comparisons {
			if pair.scenario == c.scenario.name {
				add(pair.metric, c, targets[0].title(), cell{scenarioNamed(pair.with), c.connections, 0})
			}
		}
	}
	return append(list, s.bothReferences(targets)...)
}

// each returns a metric of every round; zero without a measurement.
func each(rounds []sample, m metric) (values []float64) {
	for _, x := range rounds {
		values = append(values, m.of(x))
	}
	return values
}

// divide returns the ratios of the rounds that have both values.
func divide(a, b []float64) (ratios []float64) {
	for round := range min(len(a), len(b)) {
		if a[round] > 0 && b[round] > 0 {
			ratios = append(ratios, a[round]/b[round])
		}
	}
	return ratios
}

func (s samples) bothReferences(targets []target) []Ratio {
	at := func(title string) []float64 {
		i := slices.IndexFunc(targets, func(t target) bool { return t.title() == title })
		return each(s[cell{scenarioNamed(scenarioPut), 1, i}], median)
	}
	echo, both := at(TargetEcho), at(TargetLoop)
	for round := range min(len(echo), len(both)) {
		both[round] += echo[round]
	}
	values := divide(at(targets[0].title()), both)
	if len(values) == 0 {
		return nil
	}
	return []Ratio{{
		Scenario: scenarioPut, Connections: 1, Target: targets[0].title(), Metric: median.name,
		Over: overBoth, OverScenario: scenarioPut, Value: spreadOf(values),
	}}
}
