//go:build invariants

package consume

import "github.com/mayflydb/mayfly/internal/invariant"

func inject(f invariant.Fault) (restore func()) { return invariant.Inject(f) }

func noticed(f invariant.Fault) bool { return invariant.Noticed(f) }
