//go:build invariants

package sim

import (
	"flag"
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/invariant"
)

var (
	teethSeeds = flag.Int("teeth-seeds", 0, "how often TestTeeth breaks the program with each fault; 0: once, with an episode that is known to find it soon")
	teethFault = flag.String("teeth-fault", "", "the only fault of TestTeeth")
)

// teeth are the faults that torture finds, each with an episode of seed 1000 that finds it, or comes
// shortly before one.
var teeth = map[string]uint64{
	"SkipRecheck": 10, "KeepMark": 0, "AckBeforeSync": 1, "ServeUndurable": 8, "FireEarly": 0, "ShowExpired": 0, "ForgetOldRecord": 0,
	"DropRecordBatch": 0, "UnorderedSeq": 0, "BusyLoop": 0,
}

// TestTeeth breaks the program on purpose, and torture must find each fault. Faults of what torture
// does not run are left out: docs/trust.md says why.
func TestTeeth(t *testing.T) {
	for _, f := range invariant.Faults() {
		name := f.String()
		first, finds := teeth[name]
		if *teethFault != "" && name != *teethFault || *teethFault == "" && !finds {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var episodes []int64
			var seconds []float64
			var law string
			for seed := range uint64(max(*teethSeeds, 1)) {
				o := testOptions(name)
				o.Seed, o.Episodes, o.Workers, o.Until = 1000+seed, 24, 1, 1
				if *teethSeeds == 0 {
					o.First = first
				}
				report, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Findings) == 0 {
					t.Fatalf("not found in %d episodes, %.0f s", report.Counts.Episodes, report.Seconds)
				}
				episodes, seconds = append(episodes, report.Counts.Episodes), append(seconds, report.Seconds)
				law = report.Findings[0].Violations[0].Law
				t.Log(report.Findings[0].Violations[0])
			}
			slices.Sort(episodes)
			slices.Sort(seconds)
			t.Logf("| %s | %s | %d | %.1f |", name, law, episodes[len(episodes)/2], seconds[len(seconds)/2])
		})
	}
}
