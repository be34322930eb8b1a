//go:build !invariants

package sim

// inject breaks nothing in this build.
func inject(string) bool { return false }
