//go:build invariants

package program_test

import "github.com/mayflydb/mayfly/internal/invariant"

// breakWith breaks this process on purpose with the fault of the name.
func breakWith(name string) {
	for _, f := range invariant.Faults() {
		if f.String() == name {
			invariant.Inject(f)
			return
		}
	}
	panic("there is no fault " + name)
}
