package consume

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	saveEvery = 50 * time.Millisecond // between two checkpoints of a shard
	saveLimit = 5 * time.Second       // for one write
	// polls of the leases in the duration of a lease; each one shows that the worker is alive
	lookParts = 4
	// if the polls have failed for this part of the duration, each lease is renewed by itself
	beatParts = 2
)

// keeper keeps the lease of a reading and saves its checkpoints.
type keeper struct {
	*reading
	passed  string        // low-water mark that the progress knows
	saved   string        // checkpoint in the table
	lost    bool          // another worker has, or may have, the lease
	failed  int           // consecutive failures to write
	next    time.Duration // earliest time of the next write
	tick    chan struct{} // has an element when the keeper is to act
	pending clock.Timer   // timer that fills tick; nil: none
}

// keep reports progress, saves checkpoints and renews the lease until ctx is done, and then saves
// the last checkpoint. It stops the reading when the shard's end is saved or the lease is lost.
func (r *reading) keep(ctx context.Context) {
	k := &keeper{reading: r, saved: r.lease.Checkpoint(), tick: make(chan struct{}, 1)}
	defer k.disarm()
	for {
		k.arm()
		select {
		case <-r.moved:
		case <-k.tick:
		case <-ctx.Done():
			k.saveLast(context.WithoutCancel(ctx))
			return
		}
		k.report()
		k.write(ctx)
	}
}

// report passes the low-water mark to the progress.
func (k *keeper) report() {
	if low := k.position().low; low != k.passed {
		k.passed = low
		k.progress.Passed(k.shard, low)
	}
}

// due returns the checkpoint to save, and reports whether to save it and whether to renew the
// lease.
func (k *keeper) due() (checkpoint string, save, beat bool) {
	at := k.position()
	checkpoint = at.low
	if at.over {
		checkpoint = checkpointEnd
	}
	return checkpoint, checkpoint != "" && checkpoint != k.saved, !k.leases.Exclusive() && k.lease.Age() >= k.leases.Duration()/beatParts
}

// write saves a checkpoint or renews the lease if either is due.
func (k *keeper) write(ctx context.Context) {
	checkpoint, save, beat := k.due()
	if k.lost || !save && !beat || k.leases.Elapsed() < k.next {
		return
	}
	limit := saveLimit
	if !k.leases.Exclusive() {
		limit = min(limit, k.leases.Duration()/lookParts)
	}
	// a begun write is always completed
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
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
		k.next = k.leases.Elapsed() + min(retry.Calls.Pause(k.failed+1), limit)
		k.log.Warn("writing a checkpoint or lease failed; trying again", "error", err)
		if !k.leases.Exclusive() && k.lease.Age() >= k.leases.Duration() {
			k.lose() // another worker may have the lease by now
		}
	default:
		k.failed = 0
		k.next = k.leases.Elapsed() + saveEvery
		if save {
			k.hasSaved(checkpoint)
		}
	}
}

// lose ends the reading. Nothing is written afterwards.
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

// saveLast saves the checkpoint at the end of the reading, within a limit.
func (k *keeper) saveLast(ctx context.Context) {
	k.report()
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

// arm sets a timer for the next write. An idle keeper has no timer.
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
		k.pending = clock.AfterFunc(max(wait, 0), func() { nudge(k.tick) })
	}
}

func (k *keeper) disarm() {
	if k.pending != nil {
		k.pending.Stop()
		k.pending = nil
	}
}
