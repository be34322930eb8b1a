//go:build invariants

package engine

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/faulttest"
)

// faultRuns matches the tests that break the engine on purpose. TestNullExperiment fails if one is
// missing.
const faultRuns = "^Test(NeverEarly|StrictlyGone|RenewedLives|DisabledLives|ExactlyOneRecord|NothingLost(A|H|N)|OrderPerKey|IdleIsFree|" +
	"MarkBelowAll|DeliveredAtLeastOnce|AdvanceThroughChains|AdvanceWaits|HoldBeforeRun|BuildWhileExpiring|RestoreStrictlyGone)"

// With nothing injected each test that breaks the program fails.
func TestNullExperiment(t *testing.T) {
	faulttest.NullExperiment(t, faultRuns, "/^holds$|///^holds$")
}
