package guard

import (
	"time"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
)

// Doing is something that takes a while.
type Doing string

// The kinds of long work.
const (
	// the stream and schedule strategies find the items from before they followed the stream
	FirstScan Doing = strategy.FirstScan
	// a pass of the scan strategy; or those two scan once more, because records were lost
	WholeScan Doing = strategy.WholeScan
	// the index strategy finds the deadlines that came due while no worker swept
	CatchUp Doing = strategy.CatchUp
	// guard probes the endpoint's clock until it is accurate enough for removals at the instant
	BoundingTime Doing = "clock bounds"
)

// Progress is how far long work is. Each worker that takes part in a scan of the stream strategy
// reports the progress of all workers; in other work, each reports its own part.
type Progress struct {
	Doing Doing
	// units so far. Of a scan of the stream strategy: of all workers, where a segment that another one
	// has finished is an estimate. Of other work: without those of another worker, or of this one
	// before a restart, that began the work
	Done int64
	// estimate: for items the endpoint's last count, which at Amazon can be six hours old. 0:
	// unknown. Done may exceed it
	Total int64
	Unit  string // "items" read; "windows" queried; "ms" of uncertainty removed
	Ended bool   // the work is finished
	// this worker has stopped before the end: others continue, or continuing is useless at present
	Left bool

	Within time.Duration // of BoundingTime: the remaining uncertainty of the endpoint's clock
}

// report calls Options.Progress, if set.
func (g *Guard) report(p Progress) {
	if g.o.Progress != nil {
		g.o.Progress(p)
	}
}
