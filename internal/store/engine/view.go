package engine

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// View is one read: an instant at which everything is judged, and the state that fits it.
//
// Instant and state fit when every commit with an earlier clock is in the state and every later commit has a clock not earlier.
// Taking both inside the commit section would give that and make every read queue behind the writers. So a view reads freely
// first. What it has seen can be wrong in one way only: an item that it hid by the clock alone may have been renewed by a commit
// with an earlier clock that it missed. Only then does it pass once through the commit section, take instant and snapshot there, and
// read again.
type View struct {
	e      *Engine
	now    Instant
	snap   *kv.Snapshot // nil: each read sees the latest state
	rests  uint64       // the last commit that what was read can come from
	hidden Instant      // the latest deadline by which the clock decided what is shown
	show   Expired
}

// Expired says which of the items that aws expiry leaves past their deadlines a view shows. In strict expiry there are none.
type Expired int

const (
	ExpiredShown  Expired = iota // they are items like others
	ExpiredHidden                // none, as strict expiry would have it
	ExpiredOnly                  // them alone
)

// Show narrows what the view shows from here on.
func (v *View) Show(e Expired) { v.show = e }

// Read runs fn on a view in which each Get and Range sees the latest state. fn may run twice, so it builds its results afresh. Read
// returns when what fn saw is durable.
func (e *Engine) Read(ctx context.Context, fn func(v *View) error) error {
	return e.read(ctx, false, fn)
}

// ReadSnapshot is Read with all of fn seeing one state.
func (e *Engine) ReadSnapshot(ctx context.Context, fn func(v *View) error) error {
	return e.read(ctx, true, fn)
}

func (e *Engine) read(ctx context.Context, snapshot bool, fn func(v *View) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	v := &View{e: e, hidden: minInstant}
	early := minInstant
	if invariant.Injected(invariant.InstantBeforeSnapshot) {
		early = e.Now()
	}
	if snapshot {
		v.snap = e.snapshot()
		v.rests = e.lastCommit.Load()
	}
	// After the snapshot: what expired before it was taken is hidden, although a later write may be in it. What expired since is hidden
	// too, and then the second look decides.
	if v.now = e.Now(); snapshot && early != minInstant {
		v.now = early
	}
	err := fn(v)
	v.release()
	if v.hidden != minInstant && err == nil && !invariant.Injected(invariant.SkipPassThrough) {
		err = v.again(fn)
	}
	if err != nil && !restsOnDescription(err) {
		return err
	}
	if err := e.waitAnswer(v.rests, v.hidden); err != nil {
		return err
	}
	return err
}

// restsOnDescription says whether an error is what a table's description says, which no crash may take back once it is told.
func restsOnDescription(err error) bool {
	var index *IndexError
	return errors.Is(err, ErrTableNotFound) || errors.As(err, &index)
}

// again reads once more, at an instant and on a snapshot between which no commit lies.
func (v *View) again(fn func(v *View) error) error {
	v.e.order.Lock()
	v.now = v.e.Now()
	v.snap = v.e.kv.NewSnapshot()
	v.rests = v.e.lastCommit.Load()
	v.e.order.Unlock()
	defer v.release()
	v.hidden = minInstant
	return fn(v)
}

func (v *View) release() {
	if v.snap != nil {
		v.snap.Close()
		v.snap = nil
	}
}

// Now is the instant at which the view judges.
func (v *View) Now() Instant { return v.now }

func (v *View) reader() kv.Reader {
	if v.snap != nil {
		return v.snap
	}
	return v.e.kv
}

// Get reads one item, nil when there is none or it has expired, and its size as DynamoDB counts it, in bytes. The item stays valid.
func (v *View) Get(t *Table, k Key) (item dynamo.Item, size int, err error) {
	d, err := v.live(t)
	if err != nil {
		return nil, 0, err
	}
	value, ok, err := v.e.get(v.reader(), k.bytes())
	v.restOnStripe(stripeOf(d.ID, k.hash()))
	if dropped := v.follow(t, nil); dropped != nil {
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

// live is the description to judge by, and the answer rests on the change that made it. It is asked for before the read, so that items are not
// older than the description that judges them.
func (v *View) live(t *Table) (*TableDesc, error) {
	d, err := t.live()
	v.rests = max(v.rests, t.changed.Load())
	return d, err
}

// follow is called when what a read finds is settled. Where that is the latest state, the instant follows it, as it follows a snapshot: an item
// may have been written since the view began, and with a deadline that lay between. And a table that was dropped meanwhile shows nothing, nor
// does an index that was removed.
func (v *View) follow(t *Table, ix *IndexDesc) error {
	if v.snap == nil {
		v.now = v.e.Now()
	}
	d, err := v.live(t)
	if err != nil || ix == nil {
		return err
	}
	return d.readable(ix)
}

// restOnStripe notes that the answer rests on the last commit under a stripe. It is called after the read.
func (v *View) restOnStripe(id uint32) {
	if v.snap == nil {
		v.rests = max(v.rests, v.e.stripes[id].last.Load())
	}
}

// hides says whether an item is not shown: it does not exist at the view's instant, or the view was narrowed. It remembers what the clock
// decided.
func (v *View) hides(d *TableDesc, h header) bool {
	if h.deadline == Never {
		return v.show == ExpiredOnly
	}
	gone := d.expired(h, v.now)
	if !gone && v.show == ExpiredShown {
		return false
	}
	past := d.deadlineOf(h) <= v.now
	if gone || past {
		v.hidden = max(v.hidden, d.deadlineOf(h))
	}
	return gone || past == (v.show == ExpiredHidden)
}

// Range calls visit for each item in order until it says that it wants no more. The item's bytes are valid during the visit only. An index
// that has been removed, or is still being built, is an *IndexError.
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
	v.restOnRange(d, r, lower)
	if err := v.follow(t, r.Index); err != nil {
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

// restOnRange notes what a range rests on: one stripe for an item collection of the table, everything for anything else. It is
// called after the iterator, which is the range's snapshot, was made.
func (v *View) restOnRange(d *TableDesc, r Range, lower []byte) {
	switch {
	case v.snap != nil || invariant.Injected(invariant.ServeUndurable):
	case r.Index == nil && r.Partition != nil:
		v.restOnStripe(stripeOf(d.ID, hashOf(lower)))
	default:
		v.rests = max(v.rests, v.e.lastCommit.Load())
	}
}
