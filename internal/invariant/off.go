//go:build !invariants

package invariant

// Enabled reports whether checks are made.
const Enabled = false

// Check does nothing in this build.
func Check(bool, string, ...any) {}

// CheckUnless does nothing in this build.
func CheckUnless(bool, []Fault, string, ...any) {}

// Injected returns false in this build, so the compiler drops the code it guards.
func Injected(Fault) bool { return false }
