//go:build invariants

package sim

import (
	"flag"
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/invariant"
)

var (
	teethSeeds = flag.Int("teeth-seeds", 0, "how often TestTeeth breaks the program with each fault; 0: once, without the faults that are found late")
	teethFault = flag.String("teeth-fault", "", "the only fault of TestTeeth")
)

// teeth are the faults that torture finds within three episodes or so.
var teeth = []invariant.Fault{
	invariant.KeepMark, invariant.AckBeforeSync, invariant.FireEarly, invariant.ShowExpired, invariant.ForgetOldRecord, invariant.DropRecordBatch, invariant.UnorderedSeq,
	invariant.BusyLoop,
}

// rare are those that can take it more than twenty. Only the long form runs them.
var rare = []invariant.Fault{invariant.ServeUndurable, invariant.SkipRecheck}

// TestTeeth breaks the program on purpose, and torture must find each fault. Faults of what torture
// does not run are left out: docs/trust.md says why.
func TestTeeth(t *testing.T) {
	faults := teeth
	if *teethSeeds > 0 || invariant.Null() {
		faults = slices.Concat(teeth, rare)
	}
	if *teethFault != "" {
		faults = invariant.Faults()
	}
	for _, f := range faults {
		name := f.String()
		if *teethFault != "" && name != *teethFault {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var episodes []int64
			var seconds []float64
			var law string
			for seed := range uint64(max(*teethSeeds, 1)) {
				o := testOptions(name)
				o.Seed, o.Episodes, o.Workers, o.Until = 1000+seed, 24, 1, 1
				if slices.Contains(rare, f) {
					o.Episodes = 200
				}
				if invariant.Null() { // every episode is one that finds nothing
					o.Episodes, o.Env = 1, []string{invariant.NullVariable + "=1"}
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
