package lifecycle

import (
	"context"
	"time"
)

// DueForTest returns the instant of the first transition of a definition's first state.
func DueForTest(d *Definition, since time.Time, attributes Item) (time.Time, error) {
	p, err := d.plan(nil)
	if err != nil {
		return time.Time{}, err
	}
	return p.states[d.States[0].Name].next[0].due(since, attributes)
}

// SearchForTest is the search after a loss of stream records.
func (l *Lifecycles) SearchForTest(ctx context.Context, lifecycle string, before time.Time) (armed, called int, err error) {
	return l.search(ctx, lifecycle, before)
}
