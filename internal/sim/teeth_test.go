//go:build invariants

package sim

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/mayflydb/mayfly/internal/invariant"
)

var (
	teethSeeds = flag.Int("teeth-seeds", 1, "how often TestTeeth breaks the program with each fault")
	teethFault = flag.String("teeth-fault", "", "the only fault of TestTeeth")
)

// TestTeeth breaks the program on purpose, and torture must find each fault.
func TestTeeth(t *testing.T) {
	for _, f := range invariant.Faults() {
		if *teethFault != "" && f.String() != *teethFault {
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			var episodes []int64
			var seconds []float64
			var law string
			for seed := range uint64(*teethSeeds) {
				o := testOptions(f.String())
				o.Seed, o.Episodes, o.Workers = 1000+seed, 24, 1
				o.Until = 1
				report, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Findings) == 0 {
					t.Errorf("not found in %d episodes, %.0f s", report.Counts.Episodes, report.Seconds)
					return
				}
				episodes, seconds = append(episodes, report.Counts.Episodes), append(seconds, report.Seconds)
				v := report.Findings[0].Violations[0]
				law = v.Law
				t.Log(v)
			}
			slices.Sort(episodes)
			slices.Sort(seconds)
			fmt.Printf("| %v | %s | %d | %.1f |\n", f, law, episodes[len(episodes)/2], seconds[len(seconds)/2])
		})
	}
}
