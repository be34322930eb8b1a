//go:build invariants

package stream

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/faulttest"
)

// With nothing injected each test that breaks the program fails.
func TestNullExperiment(t *testing.T) {
	faulttest.NullExperiment(t, "^TestDeliveredAtLeastOnce", "")
}
