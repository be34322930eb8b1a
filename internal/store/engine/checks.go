package engine

import (
	"github.com/mayflydb/mayfly/internal/invariant"
)

// The checks of builds with the tag invariants. Each names the faults that violate it on purpose:
// the law's test must notice these, and not a panic in a background goroutine.

// checkCommit checks that the engine's time does not go back, and that the commit is not before a
// deadline that it treats as passed.
func (o *order) checkCommit(c *commit) {
	invariant.CheckUnless(c.now >= o.instant, []invariant.Fault{invariant.ClockBeforeOrder, invariant.NoRestartInstant},
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
func (sh *ShardDesc) checkRead(seq, durable uint64) {
	invariant.CheckUnless(seq >= sh.First && seq > sh.Trimmed && seq <= durable && (sh.Open() || seq <= sh.Last),
		[]invariant.Fault{invariant.UnorderedSeq, invariant.SkipTrimCheck},
		"record %d up to %d in shard %+v", seq, durable, sh)
}

// checkWritten checks that a header about to be written does not remove its item early.
func (h header) checkWritten() {
	invariant.Check(h.removal >= h.deadline && (h.removal == Never) == (h.deadline == Never), "header %+v", h)
}

// checkEntry checks that a header read back matches the deadline entry that was written with it.
func (a *armed) checkEntry(h header) {
	invariant.CheckUnless(a.removal == h.removal && a.entry.generation == h.generation && a.entry.size == h.size && h.deadline <= h.removal,
		[]invariant.Fault{invariant.SkipRecheck, invariant.ReapMissing, invariant.SeenAhead, invariant.IgnoreGeneration},
		"deadline entry at %d %+v of an item with %+v", a.removal, a.entry, h)
}

// checkRecords checks that each removal of a pass has its stream record.
func (s *slice) checkRecords() {
	invariant.CheckUnless(s.d.Stream.ViewType == "" || len(s.records) == len(s.reaped),
		[]invariant.Fault{invariant.RecordTwice, invariant.SkipRecheck, invariant.ReapMissing, invariant.SeenAhead},
		"%s: %d records of %d removals", s.d.Name, len(s.records), len(s.reaped))
}

// checkExpired checks that the removal of an expired item before a write has its stream record.
func (p *plan) checkExpired(d *TableDesc, before int) {
	invariant.CheckUnless(d.Stream.ViewType == "" || len(p.records) == before+1, []invariant.Fault{invariant.ForgetOldRecord},
		"%s: no record of an expired item", d.Name)
}

// check checks that the marks lie below an entry that the present commit carries.
func (m *marks) check(p position) {
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
	for _, h := range cs.of[stream] {
		invariant.CheckUnless(c.last <= h.durable[c.shard], []invariant.Fault{invariant.TrimHeld},
			"stream %d: a trim of shard %d to %d, %s is at %d", stream, c.shard, c.last, h.consumer, h.durable[c.shard])
	}
}

// checkRestart checks that the clock has not gone back over a restart.
func (e *Engine) checkRestart() {
	invariant.CheckUnless(e.Now() >= e.order.instant, []invariant.Fault{invariant.NoRestartInstant},
		"opened at %d, the last instant on disk is %d", e.Now(), e.order.instant)
}
