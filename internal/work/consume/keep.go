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
	saveEvery = 50 * time.Millisecond // between two checkpoints of a shard, if the stream has few
	// The checkpoints of all shards have one partition key, which takes 1,000 writes a second at
	// Amazon. So a shard's checkpoints are at least this long apart for each unfinished shard of the
	// stream: then its consumers save 500 a second in all. From 15,000 shards on there are more: a
	// crash would repeat the records of a longer time.
	saveShare = 2 * time.Millisecond
	saveMost  = 30 * time.Second
	saveLimit = 5 * time.Second // for one write
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
	paced   time.Duration // earliest time of the next checkpoint that is not the shard's end
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

// unsaved returns the checkpoint to save, or "" if there is none, and the earliest time to save it.
// The end of a shard is not paced, since its children wait for it.
func (k *keeper) unsaved() (checkpoint string, at time.Duration) {
	switch p := k.position(); {
	case p.over && k.saved != checkpointEnd:
		return checkpointEnd, k.next
	case p.over || p.low == k.saved:
		return "", 0
	default:
		return p.low, max(k.next, k.paced)
	}
}

// pace returns the time between two checkpoints of a shard. In between, the lease is renewed alone.
func (k *keeper) pace() time.Duration {
	return min(max(time.Duration(k.open.Load())*saveShare, saveEvery), saveMost)
}

// write saves a checkpoint or renews the lease if either is due.
func (k *keeper) write(ctx context.Context) {
	now := k.leases.Elapsed()
	checkpoint, at := k.unsaved()
	save := checkpoint != "" && now >= at
	beat := !k.leases.Exclusive() && k.lease.Age() >= k.leases.Duration()/beatParts
	if k.lost || !save && !beat || now < k.next {
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
		now := k.leases.Elapsed()
		k.next = now + saveEvery
		if save {
			k.paced = now + k.pace()
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
	checkpoint, _ := k.unsaved()
	if k.lost || checkpoint == "" {
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
	checkpoint, at := k.unsaved()
	save := checkpoint != ""
	now := k.leases.Elapsed()
	wait := time.Duration(-1)
	if save {
		wait = max(at-now, 0)
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
