//go:build invariants

package guard

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/faulttest"
)

// With nothing injected each test that breaks the program fails.
func TestNullExperiment(t *testing.T) {
	faulttest.NullExperiment(t, "^Test(NeverEarly|RenewedLives|DeliveredAtLeastOnce|Forced)", "/^(stream|index|schedule|scan)$|/end/^(stream|index|schedule|scan)$|/crash")
}
