//go:build invariants

package sim

import "github.com/mayflydb/mayfly/internal/invariant"

// inject breaks the program on purpose. It reports whether there is a fault of that name.
func inject(name string) bool {
	for _, f := range invariant.Faults() {
		if f.String() == name {
			if !invariant.Null() {
				invariant.Inject(f)
			}
			return true
		}
	}
	return false
}
