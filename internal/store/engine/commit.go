package engine

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The commit section alone makes order. A commit that holds Engine.order reads the clock, re-checks
// its decisions, assigns sequence numbers and applies its batch without waiting for the disk.
// Clock readings, stream sequence numbers, visibility and the log therefore have the same order.
// The wait for the disk follows outside every lock, and one sync of Pebble serves all waiting
// commits.
//
// The alternative is to apply batches concurrently and to order them by number afterwards. Then the
// durable watermark has holes that a reader must track, at a cost for every stream read and every
// refused write. A section of microseconds costs less.

// commit is one pass through the commit section.
type commit struct {
	n       uint64  // this commit's number; numbers are dense and ascending
	now     Instant // the commit's instant
	lastSeq uint64  // the last stream sequence number up to and including this commit
	batch   *kv.Batch
}

// order holds the state that the commit section guards.
type order struct {
	sync.Mutex
	instant Instant // of the last commit that carried one; at or after the one on disk
	lastSeq uint64  // the last stream sequence number assigned
}

// durability tracks the durable prefix of the log: when commit n is durable, every commit before it
// is.
type durability struct {
	commit  atomic.Uint64 // every commit up to this number is durable
	seq     atomic.Uint64 // every stream record up to this number is durable
	instant atomic.Int64  // the greatest instant that a durable commit carried

	mu      sync.Mutex // guards the fields below and orders the stores above
	cond    sync.Cond  // broadcast when commit rises or the store fails
	waiting int
}

// commitSection runs fill inside the commit section and applies the batch. fill sees the commit's
// instant. If fill returns an error, commitSection applies nothing and returns that error. After
// success the caller must call finish exactly once.
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
	entered := e.Now()
	if c.now = entered; invariant.Injected(invariant.ClockBeforeOrder) {
		c.now = early
	}
	e.order.checkCommit(c, entered)
	if err := fill(c); err != nil {
		return nil, err
	}
	// The first commit of each instant stores the last sequence number. Later numbers are in their
	// records, which only a commit at a later instant removes.
	//
	// The store does not sync an empty batch, so a later durable commit would not prove this one
	// durable. The clock key makes every batch non-empty.
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

// commitNew runs fill in the commit section with an empty batch, then applied, and waits until the
// commit is durable. A nil applied does nothing.
func (e *Engine) commitNew(fill func(c *commit) error, applied func()) error {
	b := e.kv.NewBatch()
	defer e.release(b)
	c, err := e.commitSection(b, fill)
	if err != nil {
		return err
	}
	if applied != nil {
		applied()
	}
	return e.finish(c)
}

// touch records that the present commit changes the stripes, so that answers about their items wait
// for it. wrote is false for the reaper. The caller is inside the commit section and has not applied
// the batch.
func (e *Engine) touch(ids []uint32, wrote bool) {
	n := e.lastCommit.Load() + 1
	for _, id := range ids {
		e.stripes[id].last.Store(n)
		if wrote {
			e.stripes[id].written.Store(n)
		}
	}
}

// finish waits until the commit is durable, without a lock, and raises the durable watermark to it.
// After an error the store has stopped, and nothing may be acknowledged.
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
		d.checkRise(c)
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

// release frees a batch. Batch.Close waits for the sync, so the fault that answers before the sync
// closes the batch in the background.
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

// waitAnswer waits until an answer is durable that depends on commit n and on an item hidden at the
// instant hidden.
func (e *Engine) waitAnswer(n uint64, hidden Instant) error {
	if err := e.waitDurable(n); err != nil {
		return err
	}
	if err := e.waitInstant(hidden); err != nil {
		return err
	}
	e.durable.checkDurable(n, hidden)
	return nil
}

// waitInstant waits until a durable batch carries the instant at or a later one. From then on no
// crash can revive an item hidden at that instant. Usually the reaper's batch carries it; otherwise
// waitInstant commits the instant itself.
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
	return e.commitNew(func(*commit) error { return nil }, nil)
}

// fail stops the store: every later call returns the reason.
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

// ready returns nil while the store accepts work, and otherwise the reason.
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

// full reports whether writes that grow the data must be refused, because the disk is full. It
// first tries to restore the reserve, so the answer changes as soon as there is room.
func (e *Engine) full() bool { return e.kv.Full() && !e.kv.TryRestore() }

// FullReason returns the reason why writes that grow the data are refused, or nil while they are
// accepted.
func (e *Engine) FullReason() error { return e.kv.FullReason() }

// appendClock appends the value of the clock key: the instant, and the last stream sequence number
// before it.
func appendClock(dst []byte, now Instant, lastSeq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendInstant(dst, now), lastSeq)
}
