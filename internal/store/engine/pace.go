package engine

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// pace lets reads and writes of items go first while the reaper has a backlog: the reaper pauses
// after a slice. No answer of a read depends on the reaper, so a backlog delays only stream records.
// Reads of streams do not make it pause: they wait for these records. pace belongs to the goroutine
// of the due queue.
//
// The length of the pause follows the latency that calls see. The pause itself measures that: if it
// ends late, woken goroutines wait for a processor. With free processors the reaper uses 18 % of
// one. If more than one pause in a hundred ends late, its share falls, to a ninth at the least. A
// removal costs more than this share, since stream readers and compactions follow it, and while a
// compaction writes, the sync of a call takes up to ten times as long.
//
// Once the backlog is older than patience, the pauses shrink in proportion to its age. So a load
// that adds ever more deadlines cannot delay it for ever.
type pace struct {
	calls int64         // that read or wrote items, by the last pause
	left  int           // pauses, if no further call comes
	share float64       // the pause's length divided by the slice's
	since clock.Elapsed // the last slice with a backlog behind it; nil: there was none
}

const (
	shareLeast = 4.5
	shareMost  = 8
	shareUp    = 1.5
	pausesLeft = 10 // pauses after a call, since steady calls do not come after every slice
	shareDown  = 0.995
	pauseMost  = 8 * time.Millisecond
	// later than a system with work for every processor wakes a thread at worst
	pauseCrowded = 3 * time.Millisecond
	patience     = 5 * time.Second
	// a backlog that is this much newer than the last one is another: earlier calls do not delay it
	pauseForgets = 100 * time.Millisecond
)

// begin begins a slice. Without it the first items of a whole second would wait for calls that ended
// seconds before.
func (p *pace) begin(calls int64) {
	if p.since == nil || p.since() > pauseForgets {
		p.calls, p.left = calls, 0
	}
}

// giveWay pauses if items were read or written in this backlog, during the last pauses or slices.
// worked is the duration of the slice, and age the age of the oldest entry left.
func (p *pace) giveWay(ctx context.Context, calls int64, worked, age time.Duration) {
	defer func() { p.since = clock.Stopwatch() }()
	if calls != p.calls {
		p.calls, p.left = calls, pausesLeft
	}
	if p.left == 0 {
		return
	}
	p.left--
	p.share = max(p.share, shareLeast)
	pause := min(time.Duration(float64(worked)*p.share), pauseMost)
	if age > patience {
		pause = time.Duration(float64(pause) * float64(patience) / float64(age))
	}
	elapsed := clock.Stopwatch()
	clock.Pause(pause, ctx.Done())
	p.learn(elapsed() - pause)
}

// learn adjusts the share to the lateness of a pause.
func (p *pace) learn(late time.Duration) {
	if late > pauseCrowded {
		p.share = min(p.share*shareUp, shareMost)
	} else {
		p.share = max(p.share*shareDown, shareLeast)
	}
}
