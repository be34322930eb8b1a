//go:build !invariants

package invariant

// Enabled reports whether checks are made.
const Enabled = false

// Check does nothing in this build.
func Check(bool, string, ...any) {}

// Injected is false in this build, so what it guards is not compiled.
func Injected(Fault) bool { return false }
