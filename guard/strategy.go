package guard

import (
	"context"
)

// strategy finds deadlines and arms them until ctx is done. It ends after the last removal, so that
// it can record all outcomes.
type strategy interface {
	// run returns nil once ctx is done, and a *Problem if it cannot continue.
	run(ctx context.Context) error
}
