package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Times are in ms since the epoch, by this machine's monotonic clock.

// clockStep is the resolution of the clocks: an instant and a deadline are each rounded by up to a
// millisecond.
const clockStep = 2

// image is an item as the endpoint shows it.
type image struct {
	key   string
	write int64 // 0: the item has none
}

func imageOf(item map[string]types.AttributeValue) (i image) {
	if k, ok := item[keyAttribute].(*types.AttributeValueMemberS); ok {
		i.key = k.Value
	}
	if n, ok := item[writeAttribute].(*types.AttributeValueMemberN); ok {
		i.write, _ = strconv.ParseInt(n.Value, 10, 64)
	}
	return i
}

// write is one of the load's writes of an item.
type write struct {
	number   int64
	deadline int64 // 0: the item has none, or a value that is not one
	faulty   bool  // the deadline is in the phase with faults
	update   bool  // it succeeds only if the item exists
	sent     int64
	answered int64 // 0: not yet
}

// dueBy reports whether the item that the write made may be removed at an instant.
func (w write) dueBy(at int64) bool { return w.deadline != 0 && w.deadline <= at }

// entry is the ledger's page of one item.
type entry struct {
	writes  []write // the last one is the item's state, unless it is gone
	gone    bool    // removed by guard, or deleted by the load
	unknown bool    // a write failed in a way that leaves its effect open; the item is not judged
	removed int64   // the last write whose removal was seen, or the load's deletion; 0: none
	token   string  // of the transaction that removed it; "": none did
	unseen  []span  // of removals in transactions that are judged when the last write is answered
}

// span is the time of a request.
type span struct{ sent, answered int64 }

// expires reports whether guard still has to remove the item.
func (e *entry) expires() bool {
	return !e.gone && !e.unknown && len(e.writes) > 0 && e.last().deadline != 0
}

func (e *entry) last() write { return e.writes[len(e.writes)-1] }

// find returns the write with a number.
func (e *entry) find(number int64) (write, bool) {
	i := slices.IndexFunc(e.writes, func(w write) bool { return w.number == number })
	if i < 0 {
		return write{}, false
	}
	return e.writes[i], true
}

// ledger knows the writes of every item, and judges the removals. Its methods are safe for
// concurrent use.
type ledger struct {
	allowed int64         // ms: the most that a removal may be before its deadline
	seesAll bool          // the witness sees the answer to each removal
	death   chan struct{} // closed when a worker has ended without a reason
	mu      sync.Mutex
	entries map[string]*entry // by key
	counts
	expiring      int     // entries that expire
	strange       int     // removals of items that are not in the ledger
	plain, faulty []int64 // latenesses of removals in ms
	course        *course // of the latenesses; nil: it is not recorded
	findings      []string
	failure       error // of the last failed write
	deathCause    error // of the first worker that died
}

// counts are the results of a run.
type counts struct {
	Items      int   `json:"items"`
	Writes     int   `json:"writes"`
	Failed     int   `json:"failed_writes"` // their items are not judged
	Removals   int   `json:"removals"`
	Batched    int   `json:"removals_in_transactions"`
	Deleted    int   `json:"deleted_by_the_load"`
	Refused    int   `json:"refused"`
	Verified   int   `json:"verified"`     // items found in the state of their last write
	EarlyMaxMS int64 `json:"early_max_ms"` // also of removals that --max-skew allows
	Early      int   `json:"early"`
	Wrong      int   `json:"wrong"`
	Left       int   `json:"left"`
	Died       int   `json:"died"`
}

func newLedger(allowed int64) *ledger {
	return &ledger{allowed: allowed + clockStep, entries: map[string]*entry{}, death: make(chan struct{})}
}

// findingsMost is the number of findings that are kept; all are counted.
const findingsMost = 20

// findLocked counts a finding and keeps its text.
func (l *ledger) findLocked(count *int, format string, args ...any) {
	*count++
	if len(l.findings) < findingsMost {
		l.findings = append(l.findings, fmt.Sprintf(format, args...))
	}
}

// died records a worker that ended without a reason.
func (l *ledger) died(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findLocked(&l.Died, "died: %s", reason)
	if l.Died == 1 {
		l.deathCause = fmt.Errorf("a worker died: %s", reason)
		close(l.death)
	}
}

// firstDeath returns an error with the reason of the first worker that died.
func (l *ledger) firstDeath() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deathCause
}

// trackLocked returns a function that counts whether the entry expires after a change.
func (l *ledger) trackLocked(e *entry) (changed func()) {
	before := e.expires()
	return func() {
		switch after := e.expires(); {
		case after && !before:
			l.expiring++
		case before && !after:
			l.expiring--
		}
	}
}

// remaining returns the number of items that guard still has to remove, now or later.
func (l *ledger) remaining() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expiring
}

// unexpected records a write that guard should not make.
func (l *ledger) unexpected(operation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findLocked(&l.Wrong, "wrong: guard called %s on the table", operation)
}

// refused counts a removal that the endpoint refused.
func (l *ledger) refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Refused++
}

// begin records a write before it is sent, so that its removal is known whenever it is seen.
func (l *ledger) begin(key string, w write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		e = &entry{}
		l.entries[key] = e
		l.Items++
	}
	defer l.trackLocked(e)()
	e.writes = append(e.writes, w)
	e.gone = false
	l.Writes++
}

// written records that the last write has succeeded.
func (l *ledger) written(key string, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.writes[len(e.writes)-1].answered = at
	defer l.trackLocked(e)()
	l.judgeUnseenLocked(key, e)
}

// missed records that the last write was refused because there was no item at a time between sent
// and at. The item may be missing only if it was due.
func (l *ledger) missed(key string, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	defer l.trackLocked(e)()
	e.writes = e.writes[:len(e.writes)-1]
	e.gone = true
	l.judgeUnseenLocked(key, e)
	if w := e.last(); !w.dueBy(at + l.allowed) {
		l.findLocked(&l.Wrong, "wrong: item %s was missing at %d, with the deadline %d (write %d)", key, at, w.deadline, w.number)
	}
}

// awaits reports whether the item's last write has succeeded and the item is not known to be gone.
func (l *ledger) awaits(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	return e != nil && !e.gone && !e.unknown && e.last().answered != 0
}

// failed records a write or a deletion with an unknown effect.
func (l *ledger) failed(key string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	defer l.trackLocked(e)()
	e.unknown = true
	l.Failed++
	l.failure = err
}

// deleted records that the load has deleted the item, and its old image; ok is false if there was
// none.
func (l *ledger) deleted(key string, old image, ok bool, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	defer l.trackLocked(e)()
	if ok {
		l.Deleted++
		e.removed = e.last().number
	}
	switch w := e.last(); {
	case ok && old.write == w.number:
		l.Verified++
	case ok:
		l.findLocked(&l.Wrong, "wrong: item %s was in the state of write %d, and the last write is %d", key, old.write, w.number)
	case !w.dueBy(at + l.allowed):
		l.findLocked(&l.Wrong, "wrong: item %s was missing at %d, with the deadline %d (write %d)", key, at, w.deadline, w.number)
	}
	e.gone = true
}

// removed judges a removal whose old image the endpoint has shown.
func (l *ledger) removed(old image, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Removals++
	e := l.entries[old.key]
	if e == nil {
		l.strange++
		l.findLocked(&l.Wrong, "wrong: the removed item %s is not of this run", old.key)
		return
	}
	defer l.trackLocked(e)()
	w, known := e.find(old.write)
	if !known {
		l.findLocked(&l.Wrong, "wrong: item %s was removed in the state of write %d, which is unknown", old.key, old.write)
		return
	}
	l.judgeLocked(old.key, e, w, at)
	e.removed = max(e.removed, w.number)
	if w.number == e.last().number {
		e.gone = true
		e.writes = []write{w}
	}
}

// judgeLocked judges the removal of an item in the state of a write.
func (l *ledger) judgeLocked(key string, e *entry, w write, at int64) {
	early := w.deadline - at
	isRenewal := slices.ContainsFunc(e.writes, func(o write) bool { return o.number < w.number && o.dueBy(at) })
	switch {
	case w.deadline == 0:
		l.findLocked(&l.Wrong, "wrong: item %s was removed at %d without a deadline (write %d)", key, at, w.number)
	case early > l.allowed && isRenewal:
		l.findLocked(&l.Wrong, "wrong: item %s was removed at %d, although write %d had renewed it to %d", key, at, w.number, w.deadline)
	case early > l.allowed:
		l.findLocked(&l.Early, "early: item %s was removed at %d, %d ms before its deadline %d (write %d)", key, at, early, w.deadline, w.number)
		l.EarlyMaxMS = max(l.EarlyMaxMS, early)
	default:
		if early > clockStep {
			l.EarlyMaxMS = max(l.EarlyMaxMS, early)
		}
		l.lateLocked(w, at)
	}
}

// lateLocked records the lateness of a removal: from the deadline, or from the write if the item
// was written after it.
func (l *ledger) lateLocked(w write, at int64) {
	due := max(w.deadline, w.sent)
	late := max(at-due, 0)
	if l.course != nil {
		l.course.add(due, late)
	}
	if w.faulty {
		l.faulty = append(l.faulty, late)
	} else {
		l.plain = append(l.plain, late)
	}
}

// removedUnseen judges the removal of an item by a transaction, which shows no old image. token is
// the transaction's. The removal is judged when the item's last write has been answered, if that is
// an update: its answer shows whether it came before the removal.
func (l *ledger) removedUnseen(key, token string, during span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e != nil && token != "" && e.token == token {
		return // the worker has sent the transaction again, and the endpoint has repeated its answer
	}
	l.Removals++
	l.Batched++
	if e == nil {
		l.strange++
		l.findLocked(&l.Wrong, "wrong: the removed item %s is not of this run", key)
		return
	}
	defer l.trackLocked(e)()
	e.token = token
	e.unseen = append(e.unseen, during)
	if w := e.last(); !w.update || w.answered != 0 {
		l.judgeUnseenLocked(key, e)
	}
}

// judgeUnseenLocked judges the removals of an item that wait for the answer to its last write.
func (l *ledger) judgeUnseenLocked(key string, e *entry) {
	for _, during := range e.unseen {
		if !e.unknown {
			l.judgeSpanLocked(key, e, during)
		}
	}
	e.unseen = nil
}

// judgeSpanLocked judges a removal between two instants. An update succeeds only if the item
// exists, so a removal after its request came after it. If a put was under way, the item may have
// had the state before it or after it, and one that was due is enough.
func (l *ledger) judgeSpanLocked(key string, e *entry, during span) {
	var possible []write
	for i, w := range e.writes {
		replaced := false
		if i+1 < len(e.writes) {
			next := e.writes[i+1]
			replaced = next.answered != 0 && (next.update || next.answered < during.sent)
		}
		if !replaced && w.sent <= during.answered && w.number > e.removed {
			possible = append(possible, w)
		}
	}
	if len(possible) == 0 {
		l.findLocked(&l.Wrong, "wrong: item %s was removed between %d and %d, and was gone already", key, during.sent, during.answered)
		return
	}
	w := possible[len(possible)-1]
	if i := slices.IndexFunc(possible, func(w write) bool { return w.dueBy(during.answered + l.allowed) }); i >= 0 {
		w = possible[i]
	}
	l.judgeLocked(key, e, w, during.answered)
	e.removed = w.number
	e.gone = e.gone || len(possible) == 1
}

// waiting returns the keys of the items that are due by an instant and are not known to be gone.
func (l *ledger) waiting(at int64) (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.entries {
		if !e.gone && !e.unknown && e.last().dueBy(at) {
			keys = append(keys, key)
		}
	}
	return keys
}

// seenGone records that items were found missing after their deadlines, without a witness.
func (l *ledger) seenGone(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		e := l.entries[key]
		changed := l.trackLocked(e)
		e.gone = true
		changed()
	}
}

// compare compares the ledger with the contents of the table, read from the instant at on. No write
// and no removal is under way. If the witness sees all removals, it must have seen one of each item
// that is missing.
func (l *ledger) compare(items map[string]image, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	there := 0
	for key, i := range items {
		if l.entries[key] != nil {
			there++
		}
		if l.entries[key] == nil {
			l.findLocked(&l.Wrong, "wrong: item %s (write %d) is not of this run", key, i.write)
		}
	}
	for key, e := range l.entries {
		if e.unknown {
			continue
		}
		w := e.last()
		switch i, there := items[key]; {
		case there && e.gone:
			l.findLocked(&l.Wrong, "wrong: item %s is there (write %d), although its removal was answered", key, i.write)
		case there && i.write != w.number:
			l.findLocked(&l.Wrong, "wrong: item %s is in the state of write %d, and the last write is %d", key, i.write, w.number)
		case there && w.dueBy(at):
			l.findLocked(&l.Left, "left: item %s is there %d ms after its deadline %d (write %d)", key, at-w.deadline, w.deadline, w.number)
		case there:
			l.Verified++
		case l.seesAll && e.removed != w.number:
			l.findLocked(&l.Wrong, "wrong: item %s is missing without a seen removal, with the deadline %d (write %d)", key, w.deadline, w.number)
		case !e.gone && !w.dueBy(at+l.allowed):
			l.findLocked(&l.Wrong, "wrong: item %s is missing, with the deadline %d (write %d)", key, w.deadline, w.number)
		}
	}
	if l.seesAll && l.Wrong+l.Failed == 0 && l.Removals+l.Deleted+there != l.Items {
		l.findLocked(&l.Wrong, "wrong: %d removals, %d deletions by the load and %d items in the table do not add up to %d items", l.Removals, l.Deleted, there, l.Items)
	}
}

// snapshot returns the counts so far.
func (l *ledger) snapshot() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}
