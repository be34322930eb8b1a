package main

import (
	"strings"
	"testing"
)

// Each kind of finding is found, and what guard may do is none.
func TestLedger(t *testing.T) {
	const due = 1000
	put := func(l *ledger, number, deadline, at int64) {
		l.begin("k", write{number: number, deadline: deadline, sent: at - 1})
		l.written("k", at)
	}
	for name, c := range map[string]struct {
		events             func(l *ledger)
		items              map[string]image
		early, wrong, left int
	}{
		"removed at its deadline": {events: func(l *ledger) { l.removed(image{"k", 1}, due) }},
		"removed within the skew": {events: func(l *ledger) { l.removed(image{"k", 1}, due-100) }},
		"removed early":           {events: func(l *ledger) { l.removed(image{"k", 1}, due-200) }, early: 1},
		"renewed, and removed for the old deadline": {events: func(l *ledger) {
			put(l, 2, 9000, due-10)
			l.removed(image{"k", 2}, due+5)
		}, wrong: 1},
		"removed without a deadline": {events: func(l *ledger) {
			put(l, 2, 0, due-10)
			l.removed(image{"k", 2}, due+5)
		}, wrong: 1},
		"removed and written again": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due})
			l.removed(image{"k", 1}, due+1)
			l.written("k", due+2)
		}, items: map[string]image{"k": {"k", 2}}},
		"renewed too late": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due})
			l.missed("k", due+2)
		}},
		"missing before its deadline": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due - 500})
			l.missed("k", due-500)
		}, wrong: 1},
		"deleted by the load":  {events: func(l *ledger) { l.deleted("k", image{"k", 1}, true, due-500) }},
		"deleted, and stale":   {events: func(l *ledger) { l.deleted("k", image{"k", 7}, true, due-500) }, wrong: 1},
		"deleted, and missing": {events: func(l *ledger) { l.deleted("k", image{}, false, due-500) }, wrong: 1},
		"lost":                 {events: func(l *ledger) { put(l, 2, 9000, due-10) }, wrong: 1},
		"stale": {events: func(l *ledger) { put(l, 2, 9000, due-10) },
			items: map[string]image{"k": {"k", 1}}, wrong: 1},
		"left over":  {events: func(*ledger) {}, items: map[string]image{"k": {"k", 1}}, left: 1},
		"back again": {events: func(l *ledger) { l.removed(image{"k", 1}, due) }, items: map[string]image{"k": {"k", 1}}, wrong: 1},
		"not judged": {events: func(l *ledger) {
			put(l, 2, 9000, due-10)
			l.failed("k", errCut)
		}},
		"of another run":                  {events: func(l *ledger) { l.removed(image{"j", 1}, due) }, wrong: 1},
		"of an unknown write":             {events: func(l *ledger) { l.removed(image{"k", 3}, due) }, wrong: 1},
		"removed by a transaction":        {events: func(l *ledger) { l.removedUnseen("k", "", span{due, due + 1}) }},
		"removed early by a transaction":  {events: func(l *ledger) { l.removedUnseen("k", "", span{due - 500, due - 499}) }, early: 1},
		"renewed and then by transaction": {events: func(l *ledger) { put(l, 2, 9000, due-10); l.removedUnseen("k", "", span{due, due + 1}) }, wrong: 1},
		"renewed, and during that by transaction": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due, update: true})
			l.removedUnseen("k", "", span{due, due + 5})
			l.written("k", due+6)
		}, wrong: 1},
		"renewed too late for a transaction": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due, update: true})
			l.removedUnseen("k", "", span{due, due + 5})
			l.missed("k", due+6)
		}},
		"put again, and during that by transaction": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due})
			l.removedUnseen("k", "", span{due, due + 5})
			l.written("k", due+6)
		}, items: map[string]image{"k": {"k", 2}}},
		"removed twice": {events: func(l *ledger) {
			l.removed(image{"k", 1}, due)
			l.removedUnseen("k", "", span{due + 1, due + 2})
		}, wrong: 1},
		"deleted, and then by transaction": {events: func(l *ledger) {
			l.deleted("k", image{"k", 1}, true, due-10)
			l.removedUnseen("k", "", span{due + 1, due + 2})
		}, wrong: 1},
		"one transaction, answered twice": {events: func(l *ledger) {
			l.removedUnseen("k", "a", span{due + 1, due + 2})
			l.removedUnseen("k", "a", span{due + 1, due + 9})
		}},
		"put by guard": {events: func(l *ledger) { l.unexpected("PutItem"); l.removed(image{"k", 1}, due) }, wrong: 1},
	} {
		l := newLedger(100)
		put(l, 1, due, 10)
		c.events(l)
		if c.wrong == 0 || c.items != nil || name == "lost" {
			l.compare(c.items, 5000)
		}
		if l.Early != c.early || l.Wrong != c.wrong || l.Left != c.left || len(l.findings) != c.early+c.wrong+c.left {
			t.Errorf("%s: early %d, wrong %d, left %d: %q", name, l.Early, l.Wrong, l.Left, l.findings)
		}
	}
}

// Lateness counts from the deadline, or from the write if that was later.
func TestLateness(t *testing.T) {
	l := newLedger(0)
	l.begin("a", write{number: 1, deadline: 1000, sent: 500})
	l.begin("b", write{number: 2, deadline: 1000, sent: 1500, faulty: true})
	l.removed(image{"a", 1}, 1010)
	l.removed(image{"b", 2}, 1520)
	if got := summarize(l.plain); got != (lateness{1, 10, 10, 10}) {
		t.Errorf("without faults: %+v", got)
	}
	if got := summarize(l.faulty); got != (lateness{1, 20, 20, 20}) {
		t.Errorf("with faults: %+v", got)
	}
}

// If the witness sees all removals, a missing item needs one, and the counts add up.
func TestLedgerOfAllRemovals(t *testing.T) {
	const due = 1000
	for name, c := range map[string]struct {
		events func(l *ledger)
		wrong  int
	}{
		"removed":             {events: func(l *ledger) { l.removed(image{"k", 1}, due) }},
		"in a transaction":    {events: func(l *ledger) { l.removedUnseen("k", "", span{due, due + 1}) }},
		"deleted by the load": {events: func(l *ledger) { l.deleted("k", image{"k", 1}, true, due) }},
		"missing":             {events: func(*ledger) {}, wrong: 1},
		"missing for the load": {events: func(l *ledger) {
			l.begin("k", write{number: 2, deadline: 9000, sent: due, update: true})
			l.missed("k", due+1)
		}, wrong: 1},
		"removed twice": {events: func(l *ledger) {
			l.removed(image{"k", 1}, due)
			l.removed(image{"k", 1}, due)
		}, wrong: 1},
	} {
		l := newLedger(0)
		l.seesAll = true
		l.begin("k", write{number: 1, deadline: due})
		l.written("k", 1)
		l.begin("stays", write{number: 3, deadline: 9000})
		l.written("stays", 1)
		if l.remaining() != 2 {
			t.Errorf("%s: %d items remain at first", name, l.remaining())
		}
		c.events(l)
		l.compare(map[string]image{"stays": {"stays", 3}}, 5000)
		if l.Wrong != c.wrong || l.remaining() > 1 && name != "missing" {
			t.Errorf("%s: wrong %d, %d remain: %q", name, l.Wrong, l.remaining(), l.findings)
		}
		if strings.HasPrefix(name, "missing") && !strings.Contains(l.findings[0], "item k ") { // the sum alone names no item
			t.Errorf("%s: %q", name, l.findings)
		}
	}
}
