//go:build invariants

package mayfly

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/faulttest"
)

// With no fault injected, each test that breaks the program fails.
func TestNullExperiment(t *testing.T) {
	faulttest.NullExperiment(t, "^Test(NeverEarly|StrictlyGone|RenewedLives|DisabledLives|ExactlyOneRecord|NothingLost|OrderPerKey|IdleIsFree|MarkBelowAll|DeliveredAtLeastOnce)", "/^(in process|HTTP)$|//^(in process|HTTP)$")
}
