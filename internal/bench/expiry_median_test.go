package bench

import "testing"

// Rounds become medians of their figures, the greatest lateness, and the sum of their faults.
func TestMedianExpiry(t *testing.T) {
	round := func(v float64) *Expiry {
		return &Expiry{
			Items: 7, Stream: &Lateness{P50: v, P99: 2 * v, Max: 3 * v}, DrainPerS: 100 * v, ReaderPerS: 10 * v, Faults: Faults{Twice: 1},
			Foreground: []Foreground{{Operation: "GetItem", PerS: 200, IdleP99MS: v, DuringP99MS: 4 * v, DuringCalls: 5}},
		}
	}
	rounds := []*Expiry{round(5), round(1), round(2)}
	rounds[1].Commit = &Lateness{P50: 9, P99: 9, Max: 9}
	x := medianExpiry(rounds)
	if *x.Stream != (Lateness{P50: 2, P99: 4, Max: 15}) || *x.Commit != *rounds[1].Commit || x.Beside != nil {
		t.Errorf("%+v, %+v, %+v", x.Stream, x.Commit, x.Beside)
	}
	if x.Rounds != 3 || x.Items != 7 || x.DrainPerS != 200 || x.ReaderPerS != 20 || x.Faults != (Faults{Twice: 3}) {
		t.Errorf("%+v", x)
	}
	if f := x.Foreground[0]; f != (Foreground{Operation: "GetItem", PerS: 200, IdleP99MS: 2, DuringP99MS: 8, DuringCalls: 15}) {
		t.Errorf("%+v", f)
	}
	if rounds[0].Foreground[0].DuringCalls != 5 {
		t.Error("a round has changed")
	}
}
