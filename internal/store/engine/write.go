package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Decide decides about an item. old is the existing item, or nil if it is missing or has expired.
// The result is the new item, nil to delete it, or old itself to leave it unchanged. An error
// refuses the write. Decide must be pure: it may run several times.
type Decide func(old dynamo.Item, now Instant) (dynamo.Item, error)

// Write is one item's change.
type Write struct {
	Table  *Table
	Key    Key
	Decide Decide
	// Decide reads old, or the caller wants Old; otherwise old may be nil although the item exists
	ReadOld bool

	// Results, valid when Engine.Write returned nil. Without ReadOld, Old is set only if the change
	// needed it. OldBytes and New are also valid after ErrRefused.
	Old, New           dynamo.Item
	OldBytes, NewBytes int          // their sizes in DynamoDB bytes; 0: missing, or not read
	Indexes            []IndexWrite // the changes of entries of the table's indexes
	// Err is the error of Decide, valid when Engine.Write returned ErrRefused.
	Err error
}

// IndexWrite is the effect of a write on one item's entry of an index.
type IndexWrite struct {
	Index              *IndexDesc
	OldBytes, NewBytes int  // sizes of the entry before and after, in DynamoDB bytes; 0: none
	Moved              bool // the index key has changed: one entry is deleted and another inserted
}

// errStale ends a pass through the commit section whose decision no longer holds. The write is then
// planned again.
var errStale = errors.New("the state behind the decision has changed")

// Write applies all changes as one atomic batch, or none. If a Decide refuses, Write returns
// ErrRefused and sets the Err of each refused write. It returns once the outcome is durable; a
// refusal or an unchanged item waits for the commits that it depends on.
func (e *Engine) Write(ctx context.Context, ws ...*Write) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.calls.items.Add(1)
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &plan{e: e, writes: make([]planned, len(ws)), ids: make([]uint32, len(ws))}
	for i, w := range ws {
		p.writes[i].w = w
		p.ids[i] = stripeOf(w.Table.id, w.Key.hash())
	}
	if len(ws) > 1 && repeats(ws) {
		return ErrSameKey
	}
	p.batch = e.kv.NewBatch()
	defer e.release(p.batch)
	c, depends, err := p.commit()
	switch {
	case c != nil:
		p.wakeReapers(c.now)
		return e.finishWrite(c, p)
	// the answer depends on commits of other calls
	case err == nil, errors.Is(err, ErrRefused), errors.Is(err, ErrTableNotFound):
		if err := e.waitAnswer(depends, p.hidden); err != nil {
			return err
		}
	}
	return err
}

// finishWrite waits for the disk, then wakes the streams' readers and reports expired items.
func (e *Engine) finishWrite(c *commit, p *plan) error {
	if err := e.finish(c); err != nil {
		return err
	}
	if invariant.Injected(invariant.DropRecordBatch) && len(p.records) > 0 {
		if err := e.commitRecords(p.records); err != nil {
			return err
		}
	}
	for i := range p.records {
		p.records[i].stream.published()
	}
	wakeTrimmers(p.undos, c.now)
	for _, r := range p.reaps {
		e.reportReap(r)
	}
	return nil
}

// commitRecords writes records in a batch of their own, for the fault DropRecordBatch: a crash
// before it loses them. A stream that was disabled since the write takes none.
func (e *Engine) commitRecords(records []pending) error {
	return e.commitNew(func(c *commit) error {
		open := slices.DeleteFunc(slices.Clone(records), func(r pending) bool { return r.stream.desc.Load().Disabled != 0 })
		e.sequence(c.batch, open, c.now)
		return nil
	}, nil)
}

// repeats reports whether two writes have the same key.
func repeats(ws []*Write) bool {
	seen := make(map[string]struct{}, len(ws))
	for _, w := range ws {
		if _, twice := seen[w.Key.enc]; twice {
			return true
		}
		seen[w.Key.enc] = struct{}{}
	}
	return false
}

// plan is a batch under construction, with all facts that must still hold when it is applied.
type plan struct {
	e       *Engine
	writes  []planned
	ids     []uint32 // the locked stripes
	batch   *kv.Batch
	records []pending
	undos   []undo // for the histories of the tables
	// what the plan adds to item collections of tables with local indexes
	collected []collected
	reaps     []Reap  // the expired items that the plan removes
	hidden    Instant // the latest deadline that hid an item by the clock
	changed   bool
}

// planned is one write's part of a plan.
type planned struct {
	w         *Write
	desc      *TableDesc
	oldHeader header
	stored    dynamo.Item // the stored item, expired or not; nil: none, or not read
	old       dynamo.Item // the existing item; nil: none, expired, or not read
	newHeader header
	removal   Instant // of the deadline entry that the plan sets; Never: none
}

// commit plans and commits under the stripes' locks. It returns a nil commit without an error if
// nothing changes. depends is the last commit that the decision depends on.
func (p *plan) commit() (c *commit, depends uint64, err error) {
	p.ids = p.e.lockStripes(p.ids)
	defer p.e.unlockStripes(p.ids)
	c, err = p.commitLocked()
	for _, id := range p.ids {
		depends = max(depends, p.e.stripes[id].last.Load())
	}
	for i := range p.writes {
		depends = max(depends, p.writes[i].w.Table.changed.Load())
	}
	return c, depends, err
}

// commitLocked plans and commits, again while the plan is stale.
func (p *plan) commitLocked() (*commit, error) {
	for {
		err := p.build(p.e.Now())
		switch {
		case err != nil && !errors.Is(err, ErrRefused):
			return nil, err
		case err == nil && p.changed:
			c, err := p.e.commitSection(p.batch, p.fill)
			if err == nil {
				countCollected(p.collected)
			}
			if !errors.Is(err, errStale) {
				return c, err
			}
		case p.hidden == minInstant || p.upToDate():
			return nil, err
		}
	}
}

// upToDate reports, from inside the commit section, whether the plan's descriptions are current. A
// plan that only hides an item by the clock needs this: a change of the TTL setting may be about to
// commit with an earlier instant. It may end the item's deadline, and then the item is alive.
func (p *plan) upToDate() bool {
	p.e.order.Lock()
	defer p.e.order.Unlock()
	for i := range p.writes {
		if w := &p.writes[i]; w.w.Table.desc.Load() != w.desc {
			return false
		}
	}
	return true
}

// build reads the items, calls each Decide, and fills the batch. Only fill adds sequence numbers
// and marks, since only the commit section knows them.
func (p *plan) build(now Instant) error {
	p.batch.Reset()
	p.records, p.undos, p.reaps, p.hidden, p.changed = p.records[:0], p.undos[:0], p.reaps[:0], minInstant, false
	p.collected = p.collected[:0]
	refused := false
	for i := range p.writes {
		w := &p.writes[i]
		w.w.Old, w.w.New, w.w.Err = nil, nil, nil
		w.w.OldBytes, w.w.NewBytes, w.w.Indexes = 0, 0, w.w.Indexes[:0]
		if err := p.read(w, now); err != nil {
			return err
		}
		if w.old != nil {
			w.w.OldBytes = w.oldHeader.size
		}
		var err error
		if w.w.New, err = w.w.Decide(w.old, now); err != nil {
			w.w.Err, refused = err, true
			continue
		}
		w.w.Old = w.old
	}
	if refused {
		return ErrRefused
	}
	for i := range p.writes {
		if err := p.add(i, now); err != nil {
			return err
		}
	}
	if len(p.collected) > 0 {
		return p.checkCollections()
	}
	return nil
}

// read reads the stored item, if the write needs it.
func (p *plan) read(w *planned, now Instant) error {
	desc, err := w.w.Table.live()
	if err != nil {
		return err
	}
	w.desc, w.stored, w.old, w.removal = desc, nil, nil, Never
	if !w.w.ReadOld && !desc.needsOld() {
		return nil
	}
	value, ok, err := get(p.e.kv, w.w.Key.bytes())
	if err != nil || !ok {
		return err
	}
	if w.oldHeader, w.stored, err = splitStored(value); err != nil {
		return err
	}
	w.old = w.stored
	if desc.expired(w.oldHeader, now) {
		w.old = nil
		p.hidden = max(p.hidden, desc.deadlineOf(w.oldHeader))
	}
	return nil
}

// add adds one decided change to the batch.
func (p *plan) add(i int, now Instant) error {
	w := &p.writes[i]
	next := w.w.New
	if next == nil && w.old == nil && (w.stored != nil || w.desc.needsOld() || w.w.ReadOld) {
		return nil // no item before or after; the reaper removes an expired one
	}
	if next != nil {
		w.newHeader = w.desc.headerFor(w.w.Key, next, now)
		w.w.NewBytes = w.newHeader.size
		if w.old != nil {
			w.newHeader.inherit(w.oldHeader)
		}
		if w.old != nil && bytes.Equal(w.old, next) && w.newHeader == w.oldHeader {
			return nil
		}
	}
	if next != nil && (w.old == nil || len(next) > len(w.old)) && p.e.full() {
		return ErrDiskFull
	}
	p.changed = true
	p.remember(w)
	if w.stored != nil && w.old == nil {
		records := len(p.records)
		p.expire(w)
		p.checkExpired(w.desc, records)
	}
	w.desc.putItem(p.batch, w.w.Key, w.old, next, w.oldHeader, w.newHeader, &w.w.Indexes)
	p.collect(w, w.growth(), i)
	if next != nil {
		w.removal = w.newHeader.removal
	}
	p.record(w.desc, w.w.Key, w.old, next, false)
	return nil
}

// expire removes an expired item before the write that replaces it, with its own record: no reader
// may see an item vanish and return without a REMOVE and an INSERT in between.
func (p *plan) expire(w *planned) {
	w.desc.putItem(p.batch, w.w.Key, w.stored, nil, w.oldHeader, header{}, nil)
	if w.w.Table.collections != nil {
		p.collect(w, -w.desc.collectionBytes(w.w.Key, w.stored, w.oldHeader.size), 0)
	}
	p.reaped(w.desc, w.desc.deadlineOf(w.oldHeader))
	if invariant.Injected(invariant.ForgetOldRecord) {
		return
	}
	p.record(w.desc, w.w.Key, w.stored, nil, true)
}

// reaped records an expired item that the plan removes.
func (p *plan) reaped(d *TableDesc, deadline Instant) {
	if n := len(p.reaps); n == 0 || p.reaps[n-1].Table != d.Name || p.reaps[n-1].Namespace != d.Namespace {
		p.reaps = append(p.reaps, Reap{Namespace: d.Namespace, Table: d.Name})
	}
	last := &p.reaps[len(p.reaps)-1]
	last.Due = append(last.Due, deadline)
}

// putItem adds an item's change to a batch: the item, its index entries and its deadline entry.
// Either item may be nil. writes is as in indexChange.
func (d *TableDesc) putItem(b *kv.Batch, key Key, old, next dynamo.Item, oldHeader, newHeader header, writes *[]IndexWrite) {
	entries := d.indexChange(b, key, old, next, oldHeader, newHeader, writes)
	if old != nil && oldHeader.removal != Never && (next == nil || newHeader.removal != oldHeader.removal) {
		b.Delete(appendDeadlineKey(nil, d.ID, oldHeader.removal, key.suffix()))
	}
	if next == nil {
		b.Delete(key.bytes())
		return
	}
	value := newHeader.append(make([]byte, 0, len(next)+32))
	b.Set(key.bytes(), append(value, next...))
	newHeader.checkWritten()
	if newHeader.removal != Never {
		e := deadlineEntry{generation: newHeader.generation, size: newHeader.size, indexed: entries}
		b.Set(appendDeadlineKey(nil, d.ID, newHeader.removal, key.suffix()), e.append(nil))
	}
}

// fill completes the batch inside the commit section: it re-checks the plan at the commit's
// instant, and adds sequence numbers and marks. It returns errStale if the plan must be built
// again.
func (p *plan) fill(c *commit) error {
	for i := range p.writes {
		w := &p.writes[i]
		if w.w.Table.desc.Load() != w.desc {
			return errStale
		}
		if w.old != nil && w.desc.expired(w.oldHeader, c.now) {
			return errStale
		}
	}
	p.checkHidden(c)
	for i := range p.writes {
		w := &p.writes[i]
		if w.removal != Never && w.w.Table.marks.lower(position{w.removal, w.w.Key.enc[tablePrefixLen:]}) {
			p.batch.Set(idKey(catMark, w.desc.ID), appendInstant(nil, w.removal))
		}
	}
	before := p.e.order.lastSeq
	if !invariant.Injected(invariant.DropRecordBatch) {
		p.e.sequence(p.batch, p.records, c.now)
	}
	p.checkSequenced(before)
	p.e.appendHistory(p.batch, p.undos, c.now)
	p.e.touch(p.ids, true)
	return nil
}

// wakeReapers wakes the reapers for the plan's deadlines, and the preparers for those that are not
// near already.
func (p *plan) wakeReapers(now Instant) {
	for i := range p.writes {
		w := &p.writes[i]
		if w.removal == Never {
			continue
		}
		w.w.Table.due.Wake(int64(w.removal))
		if soon := w.removal - prepareFrom; soon > now {
			w.w.Table.soon.Wake(int64(soon))
		}
	}
}
