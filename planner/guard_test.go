package planner

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// More items, expirations or renewals never take fewer workers, and never cost less. The lease and
// the pass are fixed, as a longer one costs less.
func TestGuardSizeGrows(t *testing.T) {
	base := GuardLoad{Items: 1e6, Expirations: 10, Lease: 6 * time.Second, Pass: time.Hour}
	for name, grow := range map[string]func(l *GuardLoad, by float64){
		"items":       func(l *GuardLoad, by float64) { l.Items *= by },
		"expirations": func(l *GuardLoad, by float64) { l.Expirations *= by },
		"renewals":    func(l *GuardLoad, by float64) { l.Renewals = math.Log10(by) },
		"item size":   func(l *GuardLoad, by float64) { l.ItemBytes = int(1024 * math.Sqrt(by)) },
	} {
		var before *GuardPlan
		for by := 1.0; by < 1.1e4; by *= 1.3 {
			l := base
			grow(&l, by)
			p := sized(t, l)
			for i := range p.Options {
				if before == nil {
					break
				}
				was, is := before.Options[i], p.Options[i]
				if is.Workers < was.Workers || is.HourUSD < was.HourUSD*(1-1e-9) || is.Partitions < was.Partitions || is.IndexShards < was.IndexShards || is.FirstScanUSD < was.FirstScanUSD*(1-1e-9) {
					t.Errorf("%s times %.3g, %s: %+v is less than %+v", name, by, is.Strategy, is, was)
				}
				if was.Lease == is.Lease && is.Fits && !was.Fits && name != "items" { // more items live longer
					t.Errorf("%s times %.3g, %s: it fits, and with less it did not", name, by, is.Strategy)
				}
			}
			before = p
		}
	}
}

// A size that fits is within each limit of guard and of Amazon, and says why if it is not.
func TestGuardSizeFitsLimits(t *testing.T) {
	for items := 1.0; items <= 1e12; items *= 10 {
		for rate := 0.001; rate <= expirationsMax; rate *= 3 {
			for _, renewals := range []float64{0, 5} {
				p := sized(t, GuardLoad{Items: items, Expirations: rate, Renewals: renewals})
				for _, o := range p.Options {
					if o.Fits != (len(o.Why) == 0) {
						t.Errorf("%v items, %v a second, %s: fits %v, and why not: %q", items, rate, o.Strategy, o.Fits, o.Why)
					}
					for _, v := range []float64{o.HourUSD, o.MemoryBytes, o.ReadUnits, o.FirstScanUSD, o.Busy} {
						if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
							t.Errorf("%v items, %v a second, %s: %+v", items, rate, o.Strategy, o)
						}
					}
					if !o.Fits {
						continue
					}
					shares := map[string]int{guardLocal: 1, guardStream: o.Partitions, guardSchedule: partitionsMost, guardIndex: min(o.IndexShards, leasesMost), guardScan: leasesMost}[o.Strategy]
					switch {
					case o.Workers > shares || o.Partitions > partitionsMost || o.Partitions&(o.Partitions-1) != 0:
						t.Errorf("%v items, %v a second, %s: %d workers share %d, of %d partitions", items, rate, o.Strategy, o.Workers, shares, o.Partitions)
					case o.Armed > armedMax || o.KeyWrites > 800 || o.KeyReads > 2400 || o.Busy > 0.7+1e-9:
						t.Errorf("%v items, %v a second, %s: over a limit: %+v", items, rate, o.Strategy, o)
					case o.Strategy != guardSchedule && o.WholeP99 > time.Second+time.Millisecond:
						t.Errorf("%v items, %v a second, %s: late by %v", items, rate, o.Strategy, o.WholeP99)
					}
				}
			}
		}
	}
}

// A shorter lateness takes more workers; a limit on the first scan makes it longer.
func TestGuardSizeByLateness(t *testing.T) {
	at := func(late time.Duration) GuardSize {
		return sized(t, GuardLoad{Items: 1e8, Expirations: 10_000, Strategy: guardIndex, Late: late}).Options[0]
	}
	usual, short := at(0), at(200*time.Millisecond)
	if short.Workers <= 2*usual.Workers || short.WholeP99 > 200*time.Millisecond {
		t.Errorf("200 ms: %d workers, late by %v; a second: %d", short.Workers, short.WholeP99, usual.Workers)
	}
	if got := sized(t, GuardLoad{Items: 1e6, Expirations: 10, Strategy: guardStream, MaxRCU: 25}); got.Options[0].FirstScan != 10_000*time.Second || got.Options[1].FirstScan != 10_000*time.Second {
		t.Errorf("first scans of 250,000 units, 25 a second for all workers: %v and %v", got.Options[0].FirstScan, got.Options[1].FirstScan)
	}
}

// Costs that can be computed by hand, from the prices and the number of units.
func TestGuardSizeCosts(t *testing.T) {
	p := sized(t, GuardLoad{Items: 1e6, Expirations: 1000, Strategy: guardStream, Lease: 6 * time.Second})
	local, fleet := p.Options[0], p.Options[1]
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > want*1e-6 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("deletes of 3.6 million items", local.DeletesUSD, 2.25)
	near("and calls at the stream, four a second of 2 shards, and audit", local.HourUSD, 2.25+2*4*3600/1e6*0.2+5*3600/1e6*0.125)
	// 16 partitions; two crews of two workers; 2 shards with four checkpoints a second each
	near("units", fleet.WriteUnits, 1000+2000+3*16.0/60+2*8.0/6+8)
	near("first scan", fleet.FirstScanUSD, 1e6*(2*0.625+0.125/4)/1e6)
	slow := sized(t, GuardLoad{Items: 1e6, Expirations: 1000, Strategy: guardStream, Lease: 6 * time.Second, MaxRCU: 1000})
	near("a first scan of 4,000 items a second", slow.Options[1].FirstScanUSD, 1e6*(0.625+0.125/4)/1e6)
	text, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(text), `"usd_per_hour"`) || !strings.Contains(string(text), `"expirations":1000`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A number of workers is taken as it is: the plan shows how busy they are.
func TestGuardSizeOfWorkers(t *testing.T) {
	l := GuardLoad{Items: 1e10, Expirations: 1e5}
	few, many := l, l
	few.Workers, many.Workers = 20, 50
	if o := sized(t, few).Options[1]; o.Workers != 20 || o.Fits || !strings.Contains(strings.Join(o.Why, " "), "256.7 % of each worker") {
		t.Errorf("20 workers: %+v", o)
	}
	if o := sized(t, many).Options[2]; !o.Fits || o.Useful() != 32 || math.Abs(o.Busy-1e5/6400/32) > 1e-9 || !strings.Contains(strings.Join(o.Notes, " "), "18 of 50 idle") {
		t.Errorf("50 workers of the index: %+v", o)
	}
	// nine of 23 workers have two of the index's 32 leases
	some := l
	some.Workers = 23
	if o := sized(t, some).Options[2]; o.Fits || math.Abs(o.Busy-1e5/6400*2/32) > 1e-9 {
		t.Errorf("23 workers of the index: %+v", o)
	}
	if o := sized(t, l).Options[2]; o.Workers != 32 || !o.Fits || !strings.Contains(strings.Join(o.Notes, " "), "97.7 % of the one") {
		t.Errorf("the index's workers: %+v", o)
	}
	// a stream has shares for 256
	crowd := l
	crowd.Workers = 400
	if o := sized(t, crowd).Options[1]; o.Useful() != 256 || o.Partitions != 256 || o.Armed < 1e5/256*aheadSeconds || strings.Contains(strings.Join(o.Why, " "), "partitions") {
		t.Errorf("400 workers of the stream: %+v", o)
	}
}

func TestGuardLoadsRefused(t *testing.T) {
	good := GuardLoad{Items: 1, Expirations: 1}
	for text, spoil := range map[string]func(l *GuardLoad){
		"items: 0 is not":              func(l *GuardLoad) { l.Items = 0 },
		"items: NaN is not":            func(l *GuardLoad) { l.Items = math.NaN() },
		"expirations: +Inf is not":     func(l *GuardLoad) { l.Expirations = math.Inf(1) },
		"item size: -1 bytes":          func(l *GuardLoad) { l.ItemBytes, l.KeyBytes = -1, 1 },
		"key size: 65 bytes is more":   func(l *GuardLoad) { l.ItemBytes, l.KeyBytes = 64, 65 },
		"renewals: -1 is not":          func(l *GuardLoad) { l.Renewals = -1 },
		"read units of a first scan":   func(l *GuardLoad) { l.MaxRCU = -1 },
		"lease: 2h0m0s is not":         func(l *GuardLoad) { l.Lease = 2 * time.Hour },
		"period: 1ms is not":           func(l *GuardLoad) { l.Period = time.Millisecond },
		"a scan's pass: 1s is not":     func(l *GuardLoad) { l.Pass = time.Second },
		"round trip: 2s is not":        func(l *GuardLoad) { l.RoundTrip = 2 * time.Second },
		"workers: 10001 is not":        func(l *GuardLoad) { l.Workers = 10_001 },
		"lateness: 100ms is too short": func(l *GuardLoad) { l.Late, l.RoundTrip = 100*time.Millisecond, time.Second },
		`unknown strategy "auto"`:      func(l *GuardLoad) { l.Strategy = "auto" },
	} {
		l := good
		spoil(&l)
		if _, err := SizeGuard(l, Default()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
