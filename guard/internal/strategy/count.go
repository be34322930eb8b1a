package strategy

import (
	"cmp"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Count is the number of deadlines that a strategy has stored at the endpoint.
type Count struct {
	Due      int64
	Oldest   int64   // deadline of those, in ms; 0: there is none
	Upcoming []int64 // by minute
}

// AddDue adds due deadlines, the oldest of which is at an instant in ms.
func (c *Count) AddDue(n, oldest int64) {
	if c.Due += n; n > 0 {
		c.Oldest = min(oldest, cmp.Or(c.Oldest, clock.Never))
	}
}
