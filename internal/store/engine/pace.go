package engine

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// pace is how the reaper lets calls go first while it has a backlog: after a slice it pauses. Nothing that a read answers depends on the reaper, so
// a backlog is late for its stream alone. It belongs to the goroutine of the due queue.
//
// How long it pauses follows from how crowded the processors are. The pause itself tells: it ends late by as much as anybody who is woken has to
// wait for a processor. With processors to spare the reaper takes a ninth of one; where more than one
// pause in a hundred is late it falls back, to half of that at the least. What it takes is not all that a removal costs: stream readers and compactions follow it. With two
// thirds of a processor, which drain twice to three times as fast, the p99 of calls beside a burst was three times as high.
//
// A backlog that grows older than patience has its turn: from there on the pauses become shorter in proportion to its age, so a load that brings ever more deadlines cannot
// put it off for ever.
type pace struct {
	calls int64   // that had begun at the last pause
	share float64 // the pause's length over the slice's
}

const (
	shareLeast   = 8
	shareMost    = 16
	shareUp      = 1.5
	shareDown    = 0.995
	pauseMost    = 8 * time.Millisecond
	pauseCrowded = 1500 * time.Microsecond // late by more than the runtime rounds up to, which is a millisecond
	patience     = 5 * time.Second
)

// giveWay pauses, if there have been calls since the last time. took is how long the slice took, and age that of the oldest entry that is left.
func (p *pace) giveWay(ctx context.Context, calls int64, took, age time.Duration) {
	if calls == p.calls {
		return
	}
	p.calls = calls
	p.share = max(p.share, shareLeast)
	pause := min(time.Duration(float64(took)*p.share), pauseMost)
	if age > patience {
		pause = time.Duration(float64(pause) * float64(patience) / float64(age))
	}
	elapsed := clock.Stopwatch()
	clock.Pause(pause, ctx.Done())
	p.learn(elapsed() - pause)
}

// learn adapts to how late a pause ended.
func (p *pace) learn(late time.Duration) {
	if late > pauseCrowded {
		p.share = min(p.share*shareUp, shareMost)
	} else {
		p.share = max(p.share*shareDown, shareLeast)
	}
}
