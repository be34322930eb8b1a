//go:build !invariants

package consume

import "github.com/mayflydb/mayfly/internal/invariant"

func inject(invariant.Fault) (restore func()) { panic("faults need the build tag invariants") }

func noticed(invariant.Fault) bool { panic("faults need the build tag invariants") }
