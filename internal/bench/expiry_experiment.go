package bench

import (
	"fmt"
	"time"
)

// expiryExperiment expires the items of a table, and measures the lateness and the effect on other
// calls.
type expiryExperiment struct {
	name   string
	table  *design
	items  int
	spread time.Duration // of the deadlines; 0: all are equal
	whole  bool          // deadlines are whole seconds

	read      bool // read the stream
	beside    bool // expire another table evenly at the same time
	callsPerS int  // make as many calls of each operation at the same time
}

// plan returns the deadlines without the first one.
func (x *expiryExperiment) plan() *plan {
	return &plan{spread: x.spread, items: x.items, whole: x.whole}
}

// even reports whether the deadlines are spread over milliseconds.
func (x *expiryExperiment) even() bool { return x.spread > 0 && !x.whole }

// atOnce returns how many of a number of items are due at one instant; 0 if they are spread evenly.
func (x *expiryExperiment) atOnce(items int) int {
	switch {
	case x.spread == 0:
		return items
	case x.whole:
		return int(float64(items) / x.spread.Seconds())
	}
	return 0
}

// due describes the deadlines of a number of items, and the calls beside them.
func (x *expiryExperiment) due(items int) string {
	switch {
	case x.even():
		return "spread evenly over milliseconds"
	case x.whole:
		return fmt.Sprintf("due at whole seconds, %s at each", Count(x.atOnce(items)))
	case x.callsPerS > 0:
		return fmt.Sprintf("due at one instant, beside %s calls a second", Count(2*x.callsPerS))
	}
	return "due at one instant, and nothing else happens"
}

// newExpiry returns a result without figures. What expires has a name, and differs from the entries
// of other servers.
func (x *expiryExperiment) newExpiry(target string, items int, name, difference string) *Expiry {
	return &Expiry{
		Experiment: x.name, About: fmt.Sprintf("%s %s; %s", name, x.due(items), difference), Target: target, Items: items, AtOnce: x.atOnce(items),
	}
}

// ofItems returns a result without figures of a table's items.
func (x *expiryExperiment) ofItems(target string, items int) *Expiry {
	difference := "both images in the stream"
	if !x.table.stream {
		difference = "no stream, so nothing needs the old images"
	}
	return x.newExpiry(target, items, "items", difference)
}

// idle returns the length of the phase without expiry.
func (x *expiryExperiment) idle(quick bool) time.Duration {
	if x.callsPerS == 0 {
		return 0
	}
	return pick(quick, idleQuick, idleTime)
}
