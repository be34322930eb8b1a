//go:build invariants

package sim

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/faulttest"
)

// TestNullExperiment: TestTeeth finds nothing in a whole program.
func TestNullExperiment(t *testing.T) {
	faulttest.NullExperiment(t, "^TestTeeth$", "^$")
}
