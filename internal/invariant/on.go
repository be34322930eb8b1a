//go:build invariants

package invariant

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Enabled reports whether checks are made.
const Enabled = true

// injected counts the active injections of each fault.
var injected [faults]atomic.Int32

// Check panics unless cond holds. Only then are the arguments formatted, but they are always
// evaluated: guard expensive ones with Enabled.
func Check(cond bool, format string, args ...any) {
	if !cond {
		panic("invariant violated: " + fmt.Sprintf(format, args...))
	}
}

// CheckUnless is Check, except while one of the faults is injected: the test of the law must notice
// these.
func CheckUnless(cond bool, faults []Fault, format string, args ...any) {
	if !cond && !slices.ContainsFunc(faults, Injected) {
		Check(false, format, args...)
	}
}

// Injected reports whether the fault is to happen.
func Injected(f Fault) bool { return injected[f].Load() > 0 }

// Inject makes the fault happen, in the whole process, until restore is called.
func Inject(f Fault) (restore func()) {
	if Null() {
		return func() {}
	}
	injected[f].Add(1)
	return func() { injected[f].Add(-1) }
}
