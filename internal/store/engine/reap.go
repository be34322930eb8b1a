package engine

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The limits of one pass of the reaper. They bound the time under the stripes and in the commit
// section, and so the wait of a writer or another table, and the memory of the batch.
const (
	reapSlice = 128 // entries
	// bytes of the items to read; the item that exceeds it is the last. Also the bound of a
	// backfill
	sliceBytes = 1 << 20
	reapAhead  = 16 // slices that wait for the disk at once, of all tables
)

// reaper removes a table's items as their instants of removal pass. It is a source of the due
// queue.
type reaper struct {
	t     *Table
	retry retry
}

// Drain reaps one slice of the entries due at now, and returns the instant of the next entry.
func (r *reaper) Drain(ctx context.Context, now int64) (next int64, err error) {
	e, elapsed := r.t.e, clock.Stopwatch()
	e.pace.begin(e.calls.items.Load())
	next, err = r.drain(now)
	if next <= now {
		e.pace.giveWay(ctx, e.calls.items.Load(), elapsed(), time.Duration(now-next)*time.Millisecond)
	}
	return next, err
}

func (r *reaper) drain(now int64) (next int64, err error) {
	t, e := r.t, r.t.e
	d, err := t.live()
	if err != nil {
		return int64(Never), nil // dropped together with its entries
	}
	again := r.retry.due()
	if again {
		e.order.Lock()
		t.marks.retry()
		e.order.Unlock()
	}
	s, from := t.newSlice(d)
	s.ready = t.prepared.of(d)
	if err := s.collect(from, Instant(now)); err != nil {
		return 0, err
	}
	t.prepared.passed(firstOf(s.left, position{removal: Instant(now) + 1}))
	defer func() {
		switch {
		case s.damaged:
			r.retry.later(e.life, func() { t.due.Wake(e.clock.Millis()) })
		case again && err == nil:
			r.retry.succeeded()
		}
	}()
	if len(s.found) == 0 {
		e.order.Lock()
		s.skipMarked()
		t.marks.pass(s.left) // over the tombstones of renewed or deleted items
		e.order.Unlock()
		return int64(s.left.removal), nil
	}
	switch err := s.reap(); {
	// the table has changed and nothing was done
	case errors.Is(err, errStale), errors.Is(err, ErrTableNotFound):
		return now, nil
	case err != nil:
		return 0, err
	}
	return int64(s.left.removal), nil
}

// slice is one pass of the reaper.
type slice struct {
	t       *Table
	d       *TableDesc
	ahead   bool   // a preparer's: read before the entries are due, without locks
	seen    uint64 // the collected entries include every commit up to this number
	ready   readyList
	found   []armed  // due, in order
	left    position // the first entry left
	batch   *kv.Batch
	ids     []uint32
	stream  *stream // nil: none
	feed    *stream // nil: none
	records []pending
	undos   []undo
	shrunk  []collected // item collections of a table with local indexes
	reaped  []Instant   // the instants of removal of the removed items
	damaged bool        // some entries were skipped, because they or their items are unreadable
	skipped position    // the first of them
}

// skip leaves an unreadable entry in place, and logs that. The pass continues behind it, and a
// later pass reads it again.
func (s *slice) skip(p position, err error) {
	if s.ahead {
		return // the reaper reports it
	}
	if !s.damaged {
		s.damaged, s.skipped = true, p
	}
	s.skipped = firstOf(s.skipped, p)
	s.t.e.logDamage(err, "expired items in a damaged file stay hidden; their removal is tried again", "table", s.d.Name)
}

// skipMarked keeps the mark on disk below the skipped entries. The caller is inside the commit
// section.
func (s *slice) skipMarked() {
	if s.damaged {
		s.t.marks.skip(s.skipped)
	}
}

// newSlice begins a pass and returns the position to collect from. From here on every commit lowers
// marks.since to its deadlines, so the mark of this pass cannot pass over an entry that its
// snapshot does not hold.
func (t *Table) newSlice(d *TableDesc) (s *slice, from position) {
	t.e.order.Lock()
	defer t.e.order.Unlock()
	s = &slice{t: t, d: d, seen: t.e.lastCommit.Load()}
	if invariant.Injected(invariant.SeenAhead) {
		s.seen += 2
	}
	return s, t.marks.reset()
}

// collect reads up to reapSlice due entries.
func (s *slice) collect(from position, now Instant) error {
	e := s.t.e
	s.left = position{removal: Never}
	lower := appendDeadlineKey(nil, s.d.ID, from.removal, []byte(from.suffix))
	_, upper := tableSpan(spaceDeadlines, s.d.ID)
	if !s.ahead {
		s.t.checkMark(s.d)
	}
	size := 0
	return eachReadable(e.kv, lower, upper, func(key, value []byte) (more bool, err error) {
		a, err := s.ready.armed(s.d, key, value)
		if err != nil {
			return false, err
		}
		limit := now
		if invariant.Injected(invariant.FireEarly) {
			limit += 1000
		}
		if a.removal > limit || len(s.found) == reapSlice || size >= sliceBytes {
			s.left = a.position()
			return false, nil
		}
		if s.needsItem(&a) {
			size += a.entry.size
		}
		s.found = append(s.found, a)
		s.ids = append(s.ids, stripeOf(s.d.ID, a.key.hash()))
		return true, nil
	}, func(from []byte, err error) {
		s.skip(position{readInstant(from[tablePrefixLen:]), string(from[tablePrefixLen+instantLen:])}, err)
	})
}

// reap removes the collected entries under the locks of their keys. It does not wait for the disk,
// so the next slice can begin.
func (s *slice) reap() error {
	e := s.t.e
	s.batch = e.kv.NewBatch()
	s.stream, s.feed = e.streamOf(s.d), e.feedOf(s.d)
	s.stream.fill(1)
	s.feed.fill(1)
	s.ids = e.lockStripes(s.ids)
	c, err := s.reapLocked()
	e.unlockStripes(s.ids)
	if err != nil {
		s.feed.fill(-1)
		s.stream.fill(-1)
		s.batch.Close()
		return err
	}
	e.reaping <- struct{}{} // blocks while the disk is behind
	done := e.activity.Begin()
	e.background.Go(func() {
		s.finish(c)
		done()
		<-e.reaping
	})
	return nil
}

// finish waits for the disk, then wakes the stream's readers and reports the removals. If the store
// has stopped it does neither; every later call returns the failure.
func (s *slice) finish(c *commit) {
	e := s.t.e
	defer s.batch.Close()
	failed := e.finish(c) != nil
	s.stream.fill(-1)
	s.feed.fill(-1)
	if failed {
		return
	}
	if len(s.records) > 0 {
		s.stream.published()
		s.feed.published()
	}
	wakeTrimmers(s.undos, c.now)
	if len(s.reaped) > 0 {
		e.reportReap(Reap{Namespace: s.d.Namespace, Table: s.d.Name, Due: s.reaped})
	}
}

// reportReap reports expired items after their removal has become durable.
func (e *Engine) reportReap(r Reap) {
	if e.opts.OnReap != nil {
		r.Durable = e.clock.Now()
		e.opts.OnReap(r)
	}
}

func (s *slice) reapLocked() (*commit, error) {
	for i := range s.found {
		err := s.remove(&s.found[i])
		if isDamage(err) {
			s.skip(s.found[i].position(), err)
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	c, err := s.t.e.commitSection(s.batch, s.fill)
	if err == nil {
		countCollected(s.shrunk)
	}
	return c, err
}

// fill re-checks the description and raises the mark.
func (s *slice) fill(c *commit) error {
	if s.t.desc.Load() != s.d {
		return errStale
	}
	s.checkReaped(c)
	s.t.e.sequence(s.batch, s.records, c.now)
	s.t.e.appendHistory(s.batch, s.undos, c.now)
	s.t.e.touch(s.ids, false)
	left := s.left
	// a mark in the future would be lowered by every write with a nearer deadline
	if left.removal > c.now {
		left = position{removal: c.now}
	}
	s.skipMarked()
	if s.t.marks.raise(left) {
		s.batch.Set(idKey(catMark, s.d.ID), appendInstant(nil, s.t.marks.stored))
	}
	return nil
}

// remove adds the removal of one entry to the batch, if the entry still arms its item.
func (s *slice) remove(a *armed) error {
	stripe := &s.t.e.stripes[stripeOf(s.d.ID, a.key.hash())]
	if a.ready != nil && stripe.written.Load() <= a.ready.seen {
		s.add(&a.ready.effects)
		return nil
	}
	ok, err := s.stillArmed(a)
	if err == nil && !ok && invariant.Injected(invariant.RecordTwice) {
		r := effects{due: Never}
		err = s.recordKeysOnly(a, &r)
		s.add(&r)
	}
	if err != nil || !ok {
		return err
	}
	r, err := s.effectsOf(a)
	if err == nil {
		s.add(&r)
	}
	return err
}

// add adds the end of an entry to the batch.
func (s *slice) add(r *effects) {
	for _, key := range r.keys {
		s.batch.Delete(key)
	}
	if r.due != Never {
		s.reaped = append(s.reaped, r.due)
	}
	if r.shrink.in != nil {
		s.shrunk = append(s.shrunk, r.shrink)
	}
	if r.undo.table != nil {
		s.undos = append(s.undos, r.undo)
	}
	if r.record.stream != nil {
		s.records = append(s.records, r.record)
	}
	if r.feed != nil {
		s.records = append(s.records, *r.feed)
	}
}

// stillArmed re-reads an entry under the lock of its key: it may have been renewed, disarmed or
// overwritten since the collection. If no write has touched the stripe since, the collected entry is
// current.
func (s *slice) stillArmed(a *armed) (bool, error) {
	e := s.t.e
	if invariant.Injected(invariant.SkipRecheck) {
		return true, nil
	}
	if e.stripes[stripeOf(s.d.ID, a.key.hash())].written.Load() <= s.seen {
		return true, nil
	}
	now, ok, err := get(e.kv, s.d.entryKey(a))
	if err == nil && !ok && invariant.Injected(invariant.ReapMissing) {
		return true, nil
	}
	return ok && bytes.Equal(now, a.raw), err
}

// Backlog returns the number of a table's due entries, counted up to limit, and the instant of the
// oldest (Never: none).
func (t *Table) Backlog(limit int) (n int, oldest Instant, err error) {
	e := t.e
	if err := e.enter(); err != nil {
		return 0, Never, err
	}
	defer e.leave()
	d, err := t.live()
	if err != nil {
		return 0, Never, err
	}
	e.order.Lock()
	from := t.marks.low
	e.order.Unlock()
	oldest = Never
	now := e.Now()
	if from.removal > now {
		return 0, oldest, nil
	}
	it := e.kv.NewIter(appendDeadlineKey(nil, d.ID, from.removal, []byte(from.suffix)), appendDeadlineKey(nil, d.ID, now+1, nil))
	defer it.Close()
	for ok := it.First(); ok && n < limit; ok = it.Next() {
		if n == 0 {
			oldest = readInstant(it.Key()[tablePrefixLen:])
		}
		n++
	}
	return n, oldest, it.Error()
}
