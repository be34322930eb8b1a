package engine

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// pace lets calls go first while the reaper has a backlog: the reaper pauses after a slice. No
// answer of a read depends on the reaper, so a backlog delays only stream records. pace belongs to
// the goroutine of the due queue.
//
// The length of the pause follows the load of the processors. The pause itself measures that load:
// if it ends late, woken goroutines wait for a processor. With free processors the reaper uses a
// ninth of one. If more than one pause in a hundred ends late, its share falls, to half of that at
// the least. A removal costs more than this share, since stream readers and compactions follow it.
// With two thirds of a processor, which drain two to three times as fast, the p99 of calls beside a
// burst was three times as high.
//
// Once the backlog is older than patience, the pauses shrink in proportion to its age. So a load
// that adds ever more deadlines cannot delay it for ever.
type pace struct {
	calls int64   // begun by the last pause
	share float64 // the pause's length divided by the slice's
}

const (
	shareLeast = 8
	shareMost  = 16
	shareUp    = 1.5
	shareDown  = 0.995
	pauseMost  = 8 * time.Millisecond
	// later than the millisecond to which the runtime rounds up
	pauseCrowded = 1500 * time.Microsecond
	patience     = 5 * time.Second
)

// giveWay pauses if calls have begun since the last pause. worked is the duration of the slice, and
// age the age of the oldest entry left.
func (p *pace) giveWay(ctx context.Context, calls int64, worked, age time.Duration) {
	if calls == p.calls {
		return
	}
	p.calls = calls
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
