//go:build invariants

package invariant

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Enabled reports whether checks are made.
const Enabled = true

var (
	injected [faults]atomic.Int32 // the active injections of each fault
	noticed  [faults]atomic.Bool  // a check has failed since the last injection
)

// Check panics unless cond holds. Only then are the arguments formatted, but they are always
// evaluated: guard expensive ones with Enabled.
func Check(cond bool, format string, args ...any) {
	if !cond {
		panic("invariant violated: " + fmt.Sprintf(format, args...))
	}
}

// CheckUnless is Check, except while one of the faults is injected: the test of the law must notice
// these, and the check only records that it has failed.
func CheckUnless(cond bool, faults []Fault, format string, args ...any) {
	if cond {
		return
	}
	present := slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return !Injected(f) })
	for _, f := range present {
		noticed[f].Store(true)
	}
	Check(len(present) > 0, format, args...)
}

// Noticed reports whether a CheckUnless has failed because of the fault since its last injection.
func Noticed(f Fault) bool { return noticed[f].Load() }

// Injected reports whether the fault is to happen.
func Injected(f Fault) bool { return injected[f].Load() > 0 }

// Inject makes the fault happen, in the whole process, until restore is called.
func Inject(f Fault) (restore func()) {
	if Null() {
		return func() {}
	}
	noticed[f].Store(false)
	injected[f].Add(1)
	return func() { injected[f].Add(-1) }
}
