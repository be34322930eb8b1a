package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	saveEvery = 50 * time.Millisecond // between two checkpoints of a shard
	saveLimit = 5 * time.Second       // for one
	lookParts = 4                     // looks at the leases in the duration of one, with each of which the worker says that it is there
	beatParts = 2                     // where nothing has come of those looks for so large a part of it, leases are renewed one by one
)

// keeper keeps the lease of a reading and saves its checkpoints.
type keeper struct {
	*reading
	passed  string        // what the progress was told of
	saved   string        // the checkpoint in the table
	lost    bool          // another worker has the lease, or may have it
	failed  int           // how often in a row the table could not be written
	next    time.Duration // not before this is the table written again
	tick    chan struct{} // has an element when it is time to look
	pending clock.Timer   // will put it there; nil: nothing will
}

// keep tells the progress of what is passed, saves checkpoints as they move and renews the lease, until ctx is done; then it saves the last one. It stops the
// reading when the shard's end is saved, or when the lease is lost.
func (r *reading) keep(ctx context.Context) {
	k := &keeper{reading: r, saved: r.lease.Checkpoint(), tick: make(chan struct{}, 1)}
	defer k.disarm()
	for {
		k.arm()
		select {
		case <-r.moved:
		case <-k.tick:
		case <-ctx.Done():
			k.last(context.WithoutCancel(ctx))
			return
		}
		k.tell()
		k.write(ctx)
	}
}

// tell tells the progress of the low-water mark.
func (k *keeper) tell() {
	if low := k.position().low; low != k.passed {
		k.passed = low
		k.progress.Passed(k.shard, low)
	}
}

// due gives the checkpoint that is to be saved, and whether the lease needs a beat.
func (k *keeper) due() (checkpoint string, save, beat bool) {
	at := k.position()
	checkpoint = at.low
	if at.over {
		checkpoint = checkpointEnd
	}
	return checkpoint, checkpoint != "" && checkpoint != k.saved, !k.leases.Exclusive() && k.lease.Age() >= k.leases.Duration()/beatParts
}

// write saves a checkpoint, or renews the lease, when it is time to.
func (k *keeper) write(ctx context.Context) {
	checkpoint, save, beat := k.due()
	if k.lost || !save && !beat || k.leases.Elapsed() < k.next {
		return
	}
	limit := saveLimit
	if !k.leases.Exclusive() {
		limit = min(limit, k.leases.Duration()/lookParts)
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit) // what has begun is not left open
	defer cancel()
	var err error
	if save {
		err = k.lease.Save(call, checkpoint)
	} else {
		err = k.lease.Beat(call)
	}
	switch {
	case errors.Is(err, lease.ErrLost):
		k.lose()
	case err != nil:
		k.failed++
		k.next = k.leases.Elapsed() + min(afterFailure.First<<min(k.failed, 8), limit)
		k.log.Warn("writing a checkpoint or lease failed; trying again", "error", err)
		if !k.leases.Exclusive() && k.lease.Age() >= k.leases.Duration() {
			k.lose() // another worker may have it by now
		}
	default:
		k.failed = 0
		k.next = k.leases.Elapsed() + saveEvery
		if save {
			k.hasSaved(checkpoint)
		}
	}
}

// lose ends the reading: nothing is written any more.
func (k *keeper) lose() {
	k.lost = true
	k.stop(lease.ErrLost)
}

func (k *keeper) hasSaved(checkpoint string) {
	k.saved = checkpoint
	if checkpoint == checkpointEnd {
		k.progress.Checkpoint(k.shard, k.passed)
		k.stop(errReadEnd)
		return
	}
	k.progress.Checkpoint(k.shard, checkpoint)
}

// last saves the checkpoint when the reading ends.
func (k *keeper) last(ctx context.Context) {
	k.tell()
	checkpoint, save, _ := k.due()
	if k.lost || !save {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	err := k.lease.Save(ctx, checkpoint)
	switch {
	case err == nil:
		k.hasSaved(checkpoint)
	case !errors.Is(err, lease.ErrLost):
		k.log.Warn("the last checkpoint was not saved; records since the one before will be read again", "error", err)
	}
}

// arm sees to it that the keeper looks when it is time to write. Where there is nothing to write, nothing ticks.
func (k *keeper) arm() {
	k.disarm()
	if k.lost {
		return
	}
	_, save, _ := k.due()
	now := k.leases.Elapsed()
	wait := time.Duration(-1)
	if save {
		wait = k.next - now
	}
	if !k.leases.Exclusive() {
		if beat := max(k.leases.Duration()/beatParts-k.lease.Age(), k.next-now, 0); wait < 0 || beat < wait {
			wait = beat
		}
	}
	if save || !k.leases.Exclusive() {
		k.pending = clock.AfterFunc(max(wait, 0), func() { tell(k.tick) })
	}
}

func (k *keeper) disarm() {
	if k.pending != nil {
		k.pending.Stop()
		k.pending = nil
	}
}
