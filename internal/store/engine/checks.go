package engine

import (
	"encoding/json"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// The checks of builds with the tag invariants. Each names the faults that violate it on purpose.
// While one is injected the check only records that it has failed, since the test of the law must
// fail, and not a background goroutine panic. The laws require that record for every fault.

// unreadFaults are the faults that keep the reaper from reading a collected entry again.
var unreadFaults = []invariant.Fault{invariant.SkipRecheck, invariant.ReapMissing, invariant.SeenAhead}

// checkCommit checks that the engine's time does not go back: the commit's instant is at or after
// its entry into the commit section, and after every earlier commit.
func (o *order) checkCommit(c *commit, entered Instant) {
	invariant.CheckUnless(c.now >= max(entered, o.instant), []invariant.Fault{invariant.ClockBeforeOrder, invariant.NoRestartInstant},
		"commit at %d after one at %d", c.now, o.instant)
}

// checkHidden checks that an item that the plan treats as expired has expired at the commit.
func (p *plan) checkHidden(c *commit) {
	invariant.CheckUnless(p.hidden <= c.now, []invariant.Fault{invariant.FireEarly, invariant.ClockBeforeOrder},
		"commit at %d hides an item until %d", c.now, p.hidden)
}

// checkNext checks that sequence numbers grow, and that a shard's lie behind its beginning.
func (s *stream) checkNext(slot int, seq uint64) {
	if !invariant.Enabled {
		return
	}
	d := s.desc.Load()
	sh := d.shard(s.open[slot].no)
	invariant.CheckUnless(seq > s.tip.Load() && sh.Open() && seq >= sh.First, []invariant.Fault{invariant.UnorderedSeq},
		"stream %d: record %d in shard %+v after record %d", d.ID, seq, *sh, s.tip.Load())
}

// checkRead checks that a record read back lies in its shard and is durable.
func (sh *ShardDesc) checkRead(seq uint64, d *durability) {
	if !invariant.Enabled {
		return
	}
	durable := d.seq.Load()
	invariant.CheckUnless(seq >= sh.First && seq > sh.Trimmed && seq <= durable && (sh.Open() || seq <= sh.Last),
		[]invariant.Fault{invariant.UnorderedSeq, invariant.ServeUndurable},
		"record %d up to %d in shard %+v", seq, durable, sh)
}

// checkWritten checks that a header about to be written does not remove its item early.
func (h header) checkWritten() {
	invariant.Check(h.removal >= h.deadline && (h.removal == Never) == (h.deadline == Never), "header %+v", h)
}

// checkEntry checks that a header read back matches the deadline entry that was written with it.
func (a *armed) checkEntry(h header) {
	if !invariant.Enabled {
		return
	}
	invariant.CheckUnless(a.removal == h.removal && a.entry.generation == h.generation && a.entry.size == h.size && h.deadline <= h.removal,
		append(unreadFaults, invariant.IgnoreGeneration),
		"deadline entry at %d %+v of an item with %+v", a.removal, a.entry, h)
}

// checkReaped checks that each removal of a pass is due and has its stream record.
func (s *slice) checkReaped(c *commit) {
	if !invariant.Enabled {
		return
	}
	for _, removal := range s.reaped {
		invariant.CheckUnless(removal <= c.now, append(unreadFaults, invariant.FireEarly),
			"%s: reaped at %d an item that is due at %d", s.d.Name, c.now, removal)
	}
	invariant.CheckUnless(len(s.records) == s.d.streams()*len(s.reaped), append(unreadFaults, invariant.RecordTwice),
		"%s: %d records of %d removals", s.d.Name, len(s.records), len(s.reaped))
}

// checkExpired checks that the removal of an expired item before a write has its stream record.
func (p *plan) checkExpired(d *TableDesc, before int) {
	invariant.CheckUnless(len(p.records) == before+d.streams(), []invariant.Fault{invariant.ForgetOldRecord},
		"%s: no record of an expired item", d.Name)
}

// check checks that the marks lie below an entry that the present commit carries.
func (m *marks) check(p position) {
	if !invariant.Enabled {
		return
	}
	invariant.CheckUnless(m.low.compare(p) <= 0 && m.since.compare(p) <= 0 && m.stored <= p.removal, []invariant.Fault{invariant.KeepMark},
		"marks %+v above an entry at %d", *m, p.removal)
}

// checkMark checks that no deadline entry on disk lies below the table's mark.
func (t *Table) checkMark(d *TableDesc) {
	if !invariant.Enabled {
		return
	}
	lower, upper := tableSpan(spaceDeadlines, d.ID)
	it := t.e.kv.NewIter(lower, upper)
	defer it.Close()
	if !it.First() {
		return
	}
	first := position{readInstant(it.Key()[tablePrefixLen:]), string(it.Key()[tablePrefixLen+instantLen:])}
	t.e.order.Lock()
	defer t.e.order.Unlock()
	invariant.CheckUnless(t.marks.lowest().compare(first) <= 0, []invariant.Fault{invariant.KeepMark},
		"%s: mark %+v above the entry at %d", d.Name, t.marks.lowest(), first.removal)
}

// checkShown checks that a visible item has not expired.
func (v *View) checkShown(d *TableDesc, h header) {
	if !invariant.Enabled {
		return
	}
	invariant.CheckUnless(d.deadlineOf(h) > v.now || h.late(), []invariant.Fault{invariant.ShowExpired},
		"%s: an item visible at %d with %+v", d.Name, v.now, h)
}

// checkDurable checks that everything is durable that an answer depends on.
func (d *durability) checkDurable(n uint64, hidden Instant) {
	invariant.CheckUnless(d.commit.Load() >= n && Instant(d.instant.Load()) >= hidden, []invariant.Fault{invariant.ServeUndurable, invariant.FireEarly, invariant.ClockBeforeOrder},
		"an answer that depends on commit %d and instant %d, durable are %d and %d", n, hidden, d.commit.Load(), d.instant.Load())
}

// checkCut checks that no consumer needs the records of a cut.
func (cs *consumers) checkCut(stream uint32, c cut) {
	if !invariant.Enabled {
		return
	}
	for _, h := range cs.byStream[stream] {
		invariant.CheckUnless(c.last <= h.durable[c.shard], []invariant.Fault{invariant.TrimHeld},
			"stream %d: a trim of shard %d to %d, %s is at %d", stream, c.shard, c.last, h.consumer, h.durable[c.shard])
	}
}

// checkRestart checks that the clock has not gone back over a restart.
func (e *Engine) checkRestart() {
	invariant.CheckUnless(e.Now() >= e.order.instant, []invariant.Fault{invariant.NoRestartInstant},
		"opened at %d, the last instant on disk is %d", e.Now(), e.order.instant)
}

// checkRise checks that the durable watermark rises only over a commit that is on disk, and that
// its stream records are not below it.
func (d *durability) checkRise(c *commit) {
	invariant.CheckUnless(c.batch.Waited(), []invariant.Fault{invariant.AckBeforeSync}, "commit %d counts as durable before the disk has it", c.n)
	invariant.Check(c.lastSeq >= d.seq.Load(), "commit %d ends with record %d, durable is %d", c.n, c.lastSeq, d.seq.Load())
}

// checkSequenced checks that the plan's batch carries its stream records. before is the last
// sequence number before the commit.
func (p *plan) checkSequenced(before uint64) {
	invariant.CheckUnless(p.e.order.lastSeq == before+uint64(len(p.records)), []invariant.Fault{invariant.DropRecordBatch},
		"a batch with records %d to %d, its plan has %d", before+1, p.e.order.lastSeq, len(p.records))
}

// checkUnread reads the item that the reaper removes without a read. It checks that the deadline
// entry arms the item, that the deadline counts, and that the item has no index entry.
func (s *slice) checkUnread(a *armed) {
	if !invariant.Enabled {
		return
	}
	e := s.t.e
	value, found, err := get(e.kv, a.key.bytes())
	if err != nil {
		return // a damaged file
	}
	invariant.CheckUnless(found, unreadFaults, "%s: a deadline entry at %d without its item", s.d.Name, a.removal)
	h, item, err := splitStored(value)
	if err != nil {
		return
	}
	a.checkEntry(h)
	invariant.CheckUnless(s.d.deadlineOf(h) != Never, append(unreadFaults, invariant.IgnoreGeneration),
		"%s: removes an item whose deadline does not count: %+v", s.d.Name, h)
	for i := range s.d.Indexes {
		key, ok := s.d.appendIndexKey(nil, &s.d.Indexes[i], item, a.key)
		if ok {
			_, ok, _ = get(e.kv, key)
		}
		invariant.CheckUnless(!ok, append(unreadFaults, invariant.ForgetIndexed),
			"%s: removes an item without its entry in %s", s.d.Name, s.d.Indexes[i].Name)
	}
}

// checkInstant checks that the view's instant is not before a commit in its snapshot.
func (v *View) checkInstant() {
	if !invariant.Enabled || v.snap == nil {
		return
	}
	last, _, err := v.e.clockIn(v.snap)
	invariant.CheckUnless(err != nil || v.now >= last, []invariant.Fault{invariant.InstantBeforeSnapshot, invariant.NoRestartInstant, invariant.ClockBeforeOrder},
		"a read at %d of a snapshot with a commit at %d", v.now, last)
}

// checkOrdered checks that the commit section has confirmed every decision by the clock.
func (v *View) checkOrdered(err error) {
	invariant.CheckUnless(v.hidden == minInstant || v.ordered || err != nil, []invariant.Fault{invariant.SkipPassThrough},
		"an answer at %d hides an item until %d that may have been renewed", v.now, v.hidden)
}

// trimmedOnDisk reports whether records of a shard from a sequence number on have been removed. It
// returns false in builds without checks.
func (e *Engine) trimmedOnDisk(stream, shard uint32, from uint64) bool {
	if !invariant.Enabled {
		return false
	}
	value, found, err := get(e.kv, idKey(catStream, stream))
	if err != nil {
		return false // a damaged file
	}
	d := &StreamDesc{}
	if !found || json.Unmarshal(value, d) != nil {
		return false // a new stream, not yet applied
	}
	sh := d.shard(shard)
	return sh == nil && shard < d.NextShard || sh != nil && from <= sh.Trimmed
}

// checkRestored checks that a restored item exists in the backup.
func (s *source) checkRestored(d *TableDesc, h header) {
	if !invariant.Enabled {
		return
	}
	invariant.CheckUnless(!s.d.expired(h, s.at), []invariant.Fault{invariant.RestoreExpired}, "%s: restores at %d an item with %+v", d.Name, s.at, h)
	invariant.Check(d.TTL.Generation == 0 && d.streams() == 0, "%s: a table under restore has TTL %+v and stream %+v", d.Name, d.TTL, d.Stream)
}

// checkIdle checks that the clock leaves a moment at which every consumer was asked and none was
// busy. A consumer that has registered, rested or been sent records since may be busy.
func (e *Engine) checkIdle(at idleMoment) {
	if !invariant.Enabled {
		return
	}
	e.consumers.tips.Lock()
	defer e.consumers.tips.Unlock()
	e.consumers.Lock()
	defer e.consumers.Unlock()
	invariant.CheckUnless(at.tips != nil, []invariant.Fault{invariant.LeaveBehind}, "the clock moves on although no consumer was asked")
	if e.consumers.changes != at.changes {
		return
	}
	for _, hs := range e.consumers.byStream {
		for _, h := range hs {
			tip, asked := at.tips[h.s]
			idle := h.rest != 0 || h.s.tip.Load() != tip || !h.busyLocked(e.Now(), tip)
			invariant.CheckUnless(asked && idle, []invariant.Fault{invariant.LeaveBehind}, "the clock leaves %s behind", h.consumer)
		}
	}
}
