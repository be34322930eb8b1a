package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// trimmer removes a stream's records once they are older than the retention and behind the
// checkpoints of all consumers in this process. It removes a shard with its last record, and the
// stream itself once it has been disabled for the whole retention. It is a source of the due queue
// like any table: it sleeps until the oldest record ages out. If it stopped for a consumer, the
// next checkpoint wakes it.
type trimmer struct{ s *stream }

const (
	trimFew   = 100            // records of a shard that are removed one by one
	trimSlice = 10_000         // records read in one pass
	trimAgain = 60 * 60 * 1000 // ms until a shard with unreadable records is tried again
	// ms between trims of one stream: one range deletion then covers many records
	trimEvery = 60 * 1000
)

// cut is the part of one shard to remove.
type cut struct {
	shard   uint32
	through uint64      // records up to this number
	last    uint64      // at or above the last record among them
	few     []uint64    // their numbers, if they are few
	whole   bool        // remove the shard too
	counted surplusPart // the part counted as surplus
}

// found is the result of one pass over a stream's records.
type found struct {
	desc    *StreamDesc
	now     Instant
	horizon Instant // records up to it have aged out
	budget  int     // the number of records still to read
	cuts    []cut
	left    Instant // when the next record ages out
	more    bool    // aged records are left
	behind  *Hold   // the consumer that needs the oldest aged record; nil: none
	oldest  Instant // when that record was written
}

// aged reports whether a record has aged out and the pass may still read records. Otherwise it
// notes why records are left: f.left is the instant at which this one ages out, f.more the end of
// the budget.
func (f *found) aged(value []byte) (bool, error) {
	at, err := recordInstant(value)
	switch {
	case err != nil:
		return false, err
	case at > f.horizon:
		f.left = min(f.left, at+f.now-f.horizon)
		return false, nil
	case f.budget == 0:
		f.more = true
		return false, nil
	}
	f.budget--
	return true, nil
}

// all reports whether nothing of the stream is left after the cuts.
func (f *found) all() bool {
	return len(f.cuts) == len(f.desc.Shards) && !slices.ContainsFunc(f.cuts, func(c cut) bool { return !c.whole })
}

// Drain trims the records due at now.
func (t *trimmer) Drain(ctx context.Context, now int64) (next int64, err error) {
	e, at := t.s.e, Instant(now)
	pause := min(trimEvery, e.retention()/10+1)
	if until := t.await(at, pause); until > at {
		return int64(until), nil
	}
	f, err := t.find(at)
	if err != nil {
		return 0, err
	}
	d := f.desc
	old := d.Disabled != 0 && at >= d.Disabled+e.retention()
	if old && f.all() {
		err = t.drop(f)
	} else if len(f.cuts) > 0 {
		err = t.apply(f)
	}
	switch {
	case errors.Is(err, errStale):
		return now, nil
	case err != nil:
		return 0, err
	case old && f.all():
		return int64(Never), nil
	}
	t.s.setSurplus(f)
	if d.Disabled != 0 && !old {
		f.left = min(f.left, d.Disabled+e.retention())
	}
	switch {
	case f.more:
		return now, nil
	case f.left == Never:
		return int64(Never), nil
	default:
		return int64(max(f.left, at+pause)), nil
	}
}

// await returns the instant until which the trimmer waits for consumers to report their positions.
// From now on each report wakes it.
func (t *trimmer) await(now, pause Instant) (until Instant) {
	k := &t.s.surplus
	k.mu.Lock()
	k.waits, k.nextRun = true, now+pause
	k.mu.Unlock()
	cs := &t.s.e.consumers
	cs.Lock()
	defer cs.Unlock()
	return cs.untilLocked(t.s.desc.Load().ID, pause)
}

// find collects the aged records.
func (t *trimmer) find(now Instant) (*found, error) {
	f := &found{desc: t.s.desc.Load(), now: now, horizon: now - t.s.e.retention(), budget: trimSlice, left: Never}
	for i := range f.desc.Shards {
		err := t.findIn(f, &f.desc.Shards[i])
		if isDamage(err) {
			t.s.e.logDamage(err, "stream records in a damaged file are not trimmed before their shard ages out", "table", f.desc.Table)
			f.left, err = min(f.left, now+trimAgain), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// findIn collects the aged records of one shard.
func (t *trimmer) findIn(f *found, sh *ShardDesc) error {
	e, id := t.s.e, f.desc.ID
	e.consumers.Lock()
	floor, behind := e.consumers.floorLocked(id, sh.No)
	e.consumers.Unlock()
	if !sh.Open() && sh.Closed > f.horizon {
		f.left = min(f.left, sh.Closed+f.now-f.horizon)
	} else if !sh.Open() {
		c := cut{shard: sh.No, through: sh.Last, last: sh.Last, whole: true}
		if behind != nil { // the shard may end before Last
			var err error
			if c.last, err = e.lastRecord(id, sh.No); err != nil {
				return err
			}
		}
		if c.last <= floor {
			f.cuts = append(f.cuts, c)
			return nil
		}
	}
	it := e.kv.NewIter(appendRecordKey(nil, id, sh.No, sh.Trimmed+1), appendRecordKey(nil, id, sh.No+1, 0))
	c, err := t.walk(f, sh.No, it, floor, behind)
	if c.through != 0 {
		f.cuts = append(f.cuts, c)
	}
	return errors.Join(err, it.Error(), it.Close())
}

// walk reads a shard's records in order. Records up to floor may be removed. Each record after it
// is kept, and counted once.
func (t *trimmer) walk(f *found, shard uint32, it *kv.Iter, floor uint64, behind *Hold) (c cut, err error) {
	c.shard = shard
	part := t.s.surplus.parts[shard]
	for it.First(); it.Valid() && seqOfKey(it.Key()) <= floor; it.Next() {
		if ok, err := f.aged(it.Value()); !ok {
			return c, err
		}
		c.through = seqOfKey(it.Key())
		c.last = c.through
		if len(c.few) <= trimFew {
			c.few = append(c.few, c.through)
		}
		if c.through <= part.counted {
			c.counted.add(it)
		}
	}
	if !it.Valid() {
		return c, nil
	}
	if at, err := recordInstant(it.Value()); err != nil {
		return c, err
	} else if at <= f.horizon && (f.behind == nil || at < f.oldest) {
		f.behind, f.oldest = behind, at
	}
	if part.counted >= seqOfKey(it.Key()) {
		it.SeekGE(appendRecordKey(nil, f.desc.ID, shard, part.counted+1))
	}
	defer func() { t.s.surplus.parts[shard] = part }()
	for ; it.Valid(); it.Next() {
		if ok, err := f.aged(it.Value()); !ok {
			return c, err
		}
		part.counted = seqOfKey(it.Key())
		part.add(it)
	}
	return c, nil
}

// apply removes the cuts in one batch.
func (t *trimmer) apply(f *found) error {
	e := t.s.e
	return e.commitNew(func(c *commit) error {
		if t.s.desc.Load() != f.desc {
			return errStale
		}
		// a consumer that registers now finds the description that shows the trim
		e.consumers.Lock()
		defer e.consumers.Unlock()
		if !t.stillFreeLocked(f) {
			return errStale
		}
		d := f.desc.clone()
		for _, cut := range f.cuts {
			e.consumers.checkCut(d.ID, cut)
			t.remove(c.batch, d.ID, cut)
			if !cut.whole {
				d.shard(cut.shard).Trimmed = cut.through
				continue
			}
			d.Shards = slices.DeleteFunc(d.Shards, func(sh ShardDesc) bool { return sh.No == cut.shard })
			e.consumers.forgetLocked(d.ID, cut.shard)
		}
		e.publishStream(c.batch, t.s, d)
		return nil
	}, func() { t.s.surplus.subtract(f.cuts) })
}

// remove removes the records of a cut. Each range deletion makes every iterator more expensive
// until the store's next flush. A clock that advances through a year trims a record or two at every
// step, so a few records are deleted one by one.
func (t *trimmer) remove(b *kv.Batch, stream uint32, c cut) {
	if c.whole || len(c.few) > trimFew {
		b.DeleteRange(appendRecordKey(nil, stream, c.shard, 0), appendRecordKey(nil, stream, c.shard, c.through+1))
		return
	}
	for _, seq := range c.few {
		b.Delete(appendRecordKey(nil, stream, c.shard, seq))
	}
}

// stillFreeLocked reports whether no consumer needs the cuts.
func (t *trimmer) stillFreeLocked(f *found) bool {
	cs, id := &t.s.e.consumers, f.desc.ID
	if cs.untilLocked(id, 0) == Never {
		return false
	}
	for _, c := range f.cuts {
		if floor, _ := cs.floorLocked(id, c.shard); c.last > floor {
			return false
		}
	}
	return true
}

// drop removes a stream that has been disabled for the whole retention.
func (t *trimmer) drop(f *found) error {
	e, id := t.s.e, f.desc.ID
	return e.commitNew(func(c *commit) error {
		e.consumers.Lock()
		defer e.consumers.Unlock()
		if t.s.desc.Load() != f.desc || !t.stillFreeLocked(f) {
			return errStale
		}
		c.batch.DeleteRange(streamSpan(id))
		c.batch.Delete(idKey(catStream, id))
		e.streams.commit.Store(e.lastCommit.Load() + 1) // before its absence is visible
		e.streams.mu.Lock()
		delete(e.streams.byID, id)
		e.streams.mu.Unlock()
		delete(e.consumers.byStream, id)
		return nil
	}, func() {
		t.s.surplus.subtract(f.cuts)
		t.s.setSurplus(&found{now: f.now})
		t.s.due.Remove()
	})
}
