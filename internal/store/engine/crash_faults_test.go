//go:build invariants

package engine

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/faulttest"
	"github.com/mayflydb/mayfly/internal/invariant"
)

// Each fault that a crash brings to light makes the crash test fail.
func TestNothingLostNotices(t *testing.T) {
	for _, f := range []invariant.Fault{
		invariant.AckBeforeSync, invariant.ServeUndurable, invariant.KeepMark, invariant.DropRecordBatch, invariant.NoRestartInstant,
	} {
		t.Run(f.String(), func(t *testing.T) {
			defer inject(f)()
			for seed := uint64(1); seed <= uint64(faulttest.Goes(20)); seed++ {
				for _, k := range crashCuts(seed, 5) {
					if broken := probe(t, func(t testing.TB) { crashAndCheck(t, seed, k, false) }); len(broken) > 0 {
						t.Logf("seed %d, cut after %d: %.300s", seed, k, broken[0])
						if !noticed(f) {
							t.Errorf("no check has noticed %v", f)
						}
						return
					}
				}
			}
			t.Errorf("no crash brought %v to light", f)
		})
	}
}
