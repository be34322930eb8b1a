package guard

import (
	"context"
)

// strategy finds deadlines and arms them until ctx is done. That is after the last removal has ended, so that what is to be written down of it can be.
type strategy interface {
	// run returns nil once ctx is done, and a *Problem where it cannot go on.
	run(ctx context.Context) error
}
