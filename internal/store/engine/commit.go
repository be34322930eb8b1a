package engine

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The commit section is the one place where order is made. A commit that holds Engine.order reads the clock, checks its decisions
// again, takes its sequence numbers and applies its batch without waiting for the disk. So clock readings, stream sequence numbers,
// visibility and the log all have the same order. The wait for the disk comes after, outside every lock, and one sync of Pebble's
// serves all that wait at that moment.
//
// An alternative is to let batches apply concurrently and to order them by number afterwards. Then the durable watermark has holes
// and a reader must track which, so every stream read and every refused write would pay; a section of microseconds costs less.

// commit is one pass through the commit section.
type commit struct {
	n       uint64  // this commit's number; numbers are dense and ascending
	now     Instant // the commit's instant
	lastSeq uint64  // the last stream sequence number taken up to and including this commit
	batch   *kv.Batch
}

// order is the state that the commit section guards.
type order struct {
	sync.Mutex
	instant Instant // of the last commit that carried one; no lower than what is on disk
	lastSeq uint64  // the last stream sequence number taken
}

// durability tracks how much of the log is on disk. A prefix always is: when commit n is durable, all before it are.
type durability struct {
	commit  atomic.Uint64 // every commit up to this number is durable
	seq     atomic.Uint64 // every stream record up to this number is durable
	instant atomic.Int64  // the greatest instant that a durable commit carried

	mu      sync.Mutex // guards the fields below and orders the stores above
	cond    sync.Cond  // broadcast when commit rises or the store fails
	waiting int
}

// commitSection runs fill inside the commit section and applies the batch. fill sees the commit's instant and may refuse: then
// nothing is applied and its error is returned. After a nil error the caller must call finish exactly once.
func (e *Engine) commitSection(b *kv.Batch, fill func(c *commit) error) (*commit, error) {
	c := &commit{batch: b}
	var early Instant
	if invariant.Injected(invariant.ClockBeforeOrder) {
		early = e.Now()
	}
	e.order.Lock()
	defer e.order.Unlock()
	if err := e.ready(); err != nil {
		return nil, err
	}
	if c.now = e.Now(); invariant.Injected(invariant.ClockBeforeOrder) {
		c.now = early
	}
	if err := fill(c); err != nil {
		return nil, err
	}
	// The first commit of each instant stores the last sequence number. The numbers after it are found in their records, which only
	// a commit at a later instant removes.
	// The store does not wait for the disk on behalf of an empty batch: that a later commit is durable would then not say that this one is.
	if c.now > e.order.instant || b.Empty() {
		e.order.instant = max(e.order.instant, c.now)
		b.Set(catalogueKey(catClock), appendClock(nil, e.order.instant, e.order.lastSeq))
	}
	c.lastSeq = e.order.lastSeq
	c.n = e.lastCommit.Add(1)
	if err := e.kv.Apply(b); err != nil {
		e.fail(fmt.Errorf("apply a batch: %w", err))
		return nil, e.ready()
	}
	return c, nil
}

// touch records that commit c changes something under a stripe. It is called inside the commit section, before the apply; the
// number is the one that this commit is about to take.
func (e *Engine) touch(ids []uint32) {
	n := e.lastCommit.Load() + 1
	for _, id := range ids {
		e.stripes[id].last.Store(n)
	}
}

// finish waits until the commit is durable and makes that known. It holds no lock while it waits.
func (e *Engine) finish(c *commit) error {
	if !invariant.Injected(invariant.AckBeforeSync) {
		if err := e.kv.Wait(c.batch); err != nil {
			e.fail(fmt.Errorf("sync the log: %w", err))
			return e.ready()
		}
	}
	d := &e.durable
	d.mu.Lock()
	if c.n > d.commit.Load() {
		d.commit.Store(c.n)
		d.seq.Store(c.lastSeq)
		if int64(c.now) > d.instant.Load() {
			d.instant.Store(int64(c.now))
		}
		if d.waiting > 0 {
			d.cond.Broadcast()
		}
	}
	d.mu.Unlock()
	return nil
}

// release frees a batch. Close waits for the batch to be synced, so the fault that answers before the sync closes it in the background.
func (e *Engine) release(b *kv.Batch) {
	if invariant.Injected(invariant.AckBeforeSync) {
		go b.Close()
		return
	}
	b.Close()
}

// waitDurable returns when every commit up to n is on disk.
func (e *Engine) waitDurable(n uint64) error {
	d := &e.durable
	if d.commit.Load() >= n || invariant.Injected(invariant.ServeUndurable) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting++
	defer func() { d.waiting-- }()
	for d.commit.Load() < n {
		if err := e.ready(); err != nil {
			return err
		}
		d.cond.Wait()
	}
	return nil
}

// waitAnswer waits until an answer may be sent that depends on commit n and on an item that was hidden at the instant hidden.
func (e *Engine) waitAnswer(n uint64, hidden Instant) error {
	if err := e.waitDurable(n); err != nil {
		return err
	}
	return e.waitInstant(hidden)
}

// waitInstant waits until a durable batch carries the instant at or a later one. No crash can bring back then what was hidden at that
// instant. Usually the reaper's batch carries it; if there is none yet, waitInstant commits the instant itself.
func (e *Engine) waitInstant(at Instant) error {
	if Instant(e.durable.instant.Load()) >= at || invariant.Injected(invariant.ServeUndurable) {
		return nil
	}
	e.order.Lock()
	n, carried := e.lastCommit.Load(), e.order.instant >= at
	e.order.Unlock()
	if carried {
		return e.waitDurable(n)
	}
	b := e.kv.NewBatch()
	defer e.release(b)
	c, err := e.commitSection(b, func(*commit) error { return nil })
	if err != nil {
		return err
	}
	return e.finish(c)
}

// fail stops the store: from now on every call reports why.
func (e *Engine) fail(err error) {
	e.failOnce.Do(func() {
		e.failure.Store(&err)
		e.log.Error("the store has stopped", "error", err)
		close(e.failed)
		e.stop()
	})
	e.durable.mu.Lock()
	e.durable.cond.Broadcast()
	e.durable.mu.Unlock()
	e.wakeStreamReaders()
}

// ready is nil while the store accepts work.
func (e *Engine) ready() error {
	if f := e.failure.Load(); f != nil {
		return fmt.Errorf("%w: %w", ErrStopped, *f)
	}
	if err := e.kv.Failed(); err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	if e.closed.Load() {
		return ErrClosed
	}
	return nil
}

// full says whether the disk has been full and still is: then nothing may grow. Where space is back, the reserve is taken again.
func (e *Engine) full() bool { return e.kv.Full() && !e.kv.TryRestore() }

// FullReason returns why writes that grow the data are refused; nil while they are accepted.
func (e *Engine) FullReason() error { return e.kv.FullReason() }

// appendClock is the value of the clock key: the instant, and the last stream sequence number taken before it.
func appendClock(dst []byte, now Instant, lastSeq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendInstant(dst, now), lastSeq)
}
