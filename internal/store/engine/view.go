package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// View is one read: an instant that judges every item, and a state that matches it.
//
// Instant and state match when the state holds every commit with an earlier clock, and every later
// commit has a clock at or after the instant. Taking both inside the commit section would ensure
// that, but every read would queue behind the writers. So a view reads freely first. It can then be
// wrong in one way only: an item that it hid by the clock alone may have been renewed by a commit
// with an earlier clock that it missed. Only then does it enter the commit section once, take
// instant and snapshot there, and read again.
type View struct {
	e       *Engine
	now     Instant
	snap    *kv.Snapshot // nil: each read sees the latest state
	depends uint64       // the last commit that the answer may depend on
	hidden  Instant      // the latest deadline that the clock decided
	// instant and snapshot are from one moment of the commit section
	ordered bool
	show    Expired
}

// Expired selects the items past their deadlines that a view shows in aws expiry. In strict expiry
// there are none.
type Expired uint8

const (
	ExpiredShown  Expired = iota // like other items
	ExpiredHidden                // none, as in strict expiry
	ExpiredOnly                  // only them
)

// Show changes the selection of later reads.
func (v *View) Show(e Expired) { v.show = e }

// Read runs fn on a view in which each Get and Range reads the latest state. fn may run twice, so
// it must build its results anew. Read returns once everything that fn saw is durable.
func (e *Engine) Read(ctx context.Context, fn func(v *View) error) error {
	return e.read(ctx, false, fn)
}

// ReadSnapshot is Read with one state for all of fn.
func (e *Engine) ReadSnapshot(ctx context.Context, fn func(v *View) error) error {
	return e.read(ctx, true, fn)
}

func (e *Engine) read(ctx context.Context, snapshot bool, fn func(v *View) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.calls.items.Add(1)
	v := &View{e: e, hidden: minInstant}
	early := minInstant
	if invariant.Injected(invariant.InstantBeforeSnapshot) {
		early = e.Now()
	}
	if snapshot {
		v.snap = e.snapshot()
		v.depends = e.lastCommit.Load()
	}
	// Read the clock after the snapshot: an item that expired before the snapshot is hidden,
	// although the snapshot may hold a later write. An item that expired since is hidden too, and
	// then the second read decides.
	if v.now = e.Now(); snapshot && early != minInstant {
		v.now = early
	}
	v.checkInstant()
	err := fn(v)
	v.release()
	if v.hidden != minInstant && err == nil && !invariant.Injected(invariant.SkipPassThrough) {
		err = v.readOrdered(fn)
	}
	if err != nil && !concernsDescription(err) {
		return err
	}
	v.checkOrdered(err)
	return cmp.Or(e.waitAnswer(v.depends, v.hidden), err)
}

// concernsDescription reports whether an error depends on a table's description, which must be
// durable before the error is returned.
func concernsDescription(err error) bool {
	var index *IndexError
	return errors.Is(err, ErrTableNotFound) || errors.As(err, &index)
}

// readOrdered reads once more, with an instant and a snapshot from one moment of the commit
// section.
func (v *View) readOrdered(fn func(v *View) error) error {
	v.e.order.Lock()
	v.now = v.e.Now()
	v.snap = v.e.kv.NewSnapshot()
	v.depends = v.e.lastCommit.Load()
	v.e.order.Unlock()
	defer v.release()
	v.checkInstant()
	v.hidden, v.ordered = minInstant, true
	return fn(v)
}

func (v *View) release() {
	if v.snap != nil {
		v.snap.Close()
		v.snap = nil
	}
}

// Now returns the instant at which the view judges.
func (v *View) Now() Instant { return v.now }

func (v *View) reader() kv.Reader {
	if v.snap != nil {
		return v.snap
	}
	return v.e.kv
}

// Get returns one item and its size in DynamoDB bytes, or nil if the item is missing or has
// expired. The item stays valid.
func (v *View) Get(t *Table, k Key) (item dynamo.Item, size int, err error) {
	d, err := v.live(t)
	if err != nil {
		return nil, 0, err
	}
	value, ok, err := get(v.reader(), k.bytes())
	v.dependOnStripe(stripeOf(d.ID, k.hash()))
	if dropped := v.catchUp(t, nil); dropped != nil {
		return nil, 0, dropped
	}
	if err != nil || !ok {
		return nil, 0, err
	}
	h, item, err := splitStored(value)
	if err != nil || v.hides(d, h) {
		return nil, 0, err
	}
	return item, h.size, nil
}

// live returns the description to judge by, and makes the answer depend on the change that made it.
// Call it before the read, so that no item is older than its description.
func (v *View) live(t *Table) (*TableDesc, error) {
	d, err := t.live()
	v.depends = max(v.depends, t.changed.Load())
	return d, err
}

// catchUp is called once a read has its state. Without a snapshot that state may be later than the
// view's instant, and hold an item that was written and expired since. So catchUp moves the instant
// to the present. It returns an error if the table was dropped or the index removed meanwhile.
func (v *View) catchUp(t *Table, ix *IndexDesc) error {
	if v.snap == nil {
		v.now = v.e.Now()
	}
	d, err := v.live(t)
	if err != nil || ix == nil {
		return err
	}
	return d.readable(ix)
}

// dependOnStripe makes the answer depend on the last commit under a stripe. Call it after the read.
func (v *View) dependOnStripe(id uint32) {
	if v.snap == nil {
		v.depends = max(v.depends, v.e.stripes[id].last.Load())
	}
}

// hides reports whether the view omits an item: the item does not exist at the view's instant, or
// Show excludes it. If the deadline has passed, hides records it in v.hidden, since the answer then
// depends on the instant.
func (v *View) hides(d *TableDesc, h header) bool {
	if h.deadline == Never {
		return v.show == ExpiredOnly
	}
	gone := d.expired(h, v.now)
	if !gone && v.show == ExpiredShown {
		v.checkShown(d, h)
		return false
	}
	past := d.deadlineOf(h) <= v.now
	if gone || past {
		v.hidden = max(v.hidden, d.deadlineOf(h))
	}
	return gone || past == (v.show == ExpiredHidden)
}

// Range calls visit for each item in order until visit returns false. The item's bytes are valid
// during the visit only. Range returns an *IndexError if the index has been removed or is still
// under construction.
func (v *View) Range(t *Table, r Range, visit func(item dynamo.Item) (more bool, err error)) error {
	d, err := v.live(t)
	if err != nil {
		return err
	}
	lower, upper, err := r.bounds(d)
	if err != nil {
		return err
	}
	it := v.reader().NewIter(lower, upper)
	defer it.Close()
	v.dependOnRange(d, r, lower)
	if err := v.catchUp(t, r.Index); err != nil {
		return err
	}
	first, next := it.First, it.Next
	if r.Backward {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		h, item, err := splitStored(it.Value())
		if err != nil {
			return err
		}
		if v.hides(d, h) {
			continue
		}
		more, err := visit(item)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return it.Error()
}

// dependOnRange makes the answer depend on the commits of a range: one stripe for an item
// collection of the table, everything otherwise. Call it after the iterator was created, which is
// the range's snapshot.
func (v *View) dependOnRange(d *TableDesc, r Range, lower []byte) {
	switch {
	case v.snap != nil || invariant.Injected(invariant.ServeUndurable):
	case r.Index == nil && r.Partition != nil:
		v.dependOnStripe(stripeOf(d.ID, hashOf(lower)))
	default:
		v.depends = max(v.depends, v.e.lastCommit.Load())
	}
}
