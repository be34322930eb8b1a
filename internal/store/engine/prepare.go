package engine

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/mayflydb/mayfly/internal/clock"
)

// TTL values are whole seconds, so thousands of items are due at one instant. Reading them and
// encoding their stream records is most of the reaper's work, and none of it needs the deadline to
// have passed. So a preparer does it up to two seconds ahead, in pieces and with pauses.
//
// Preparing changes nothing: not the store, not the marks, not what a read answers. At the instant
// the reaper collects the due entries as always. For an entry with a prepared removal it skips the
// read if no write has changed the stripe since.

const (
	// An entry this near makes the preparer begin. It prepares all entries up to prepareTo, so it
	// is at work between two whole seconds and not at one of them.
	prepareFrom = 1500 // ms
	prepareTo   = 2000 // ms

	prepareBytes = 16 << 20 // of prepared removals, of all tables
	prepareAgain = 100      // ms until a preparer without room, or beside a backlog, tries again
	prepareShare = 4        // the length of a pause, divided by that of the work before
)

// prepared is a removal that was read before its entry is due.
type prepared struct {
	armed
	effects
	seen uint64 // it includes every commit up to this number
}

// size returns the bytes that it takes in memory, without the allocator's rounding. Memory that two
// of its parts share counts once.
func (p *prepared) size() int {
	const fixed = int(unsafe.Sizeof(prepared{}) + unsafe.Sizeof(&prepared{})) // and its place in the list
	n := fixed + len(p.raw) + len(p.key.enc) + len(p.record.value) + len(p.undo.value)
	for _, key := range p.keys {
		n += int(unsafe.Sizeof(key))
		if unsafe.SliceData(key) != unsafe.StringData(p.key.enc) {
			n += len(key)
		}
	}
	if p.feed != nil {
		n += int(unsafe.Sizeof(*p.feed))
		if unsafe.SliceData(p.feed.value) != unsafe.SliceData(p.record.value) {
			n += len(p.feed.value)
		}
	}
	return n
}

// preparations has a table's prepared removals. Its preparer adds them, and its reaper uses them
// up. Those that an entry no longer needs go when the reaper has passed them.
type preparations struct {
	room *atomic.Int64 // bytes that the preparations of all tables may still take
	mu   sync.Mutex    // guards the following
	desc *TableDesc    // of the table when they were read
	list readyList
	upTo position // every entry below was read, if it existed by then
}

// readyList is ordered as the deadline entries are.
type readyList []*prepared

// of returns the removals that were prepared under d.
func (p *preparations) of(d *TableDesc) readyList {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under(d)
	return p.list
}

// under discards what was prepared under another description than d. The caller holds mu.
func (p *preparations) under(d *TableDesc) {
	if p.desc != d {
		p.drop(len(p.list))
		p.desc, p.upTo = d, position{removal: minInstant}
	}
}

// passed discards the removals of the entries below a position.
func (p *preparations) passed(left position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.list) && p.list[n].position().compare(left) < 0 {
		n++
	}
	p.drop(n)
}

// drop discards the first removals. The caller holds mu.
func (p *preparations) drop(n int) {
	for i := range n {
		p.room.Add(int64(p.list[i].size()))
	}
	p.list = p.list[n:]
	if len(p.list) == 0 {
		p.list = nil
	}
}

// armed decodes a deadline entry, or finds it with its prepared removal. The keys of its calls
// ascend. An entry that was written again with another value counts as a new one.
func (l *readyList) armed(d *TableDesc, key, value []byte) (armed, error) {
	for len(*l) > 0 {
		p := (*l)[0]
		order := bytes.Compare(p.keys[0], key)
		if order > 0 {
			break
		}
		*l = (*l)[1:]
		if order == 0 && bytes.Equal(p.raw, value) {
			return p.armed, nil
		}
	}
	return d.decodeArmed(key, value)
}

// preparer prepares the removals of a table. It is a source of the queue of preparers.
type preparer struct{ t *Table }

// Drain prepares one slice of the entries that are due soon, and returns the instant at which to
// continue.
func (p *preparer) Drain(ctx context.Context, now int64) (next int64, err error) {
	t := p.t
	d, err := t.live()
	if err != nil {
		return int64(Never), nil
	}
	if t.due.Head() <= now {
		return now + prepareAgain, nil
	}
	t.prepared.passed(position{removal: Instant(now) + 1}) // renewed items leave theirs behind
	if !d.recordsOld() && len(d.Indexes) == 0 && d.History.Days == 0 {
		return int64(Never), nil // the removals need no item
	}
	if t.prepared.room.Load() <= 0 {
		return now + prepareAgain, nil
	}
	elapsed := clock.Stopwatch()
	s := &slice{t: t, d: d, ahead: true, seen: t.e.commitsSeen()}
	if err := s.prepare(Instant(now)); err != nil {
		return 0, err
	}
	if s.left.removal <= Instant(now+prepareTo) {
		clock.Pause(min(prepareShare*elapsed(), pauseMost), ctx.Done())
		return now, nil
	}
	next = int64(Never)
	if s.left.removal != Never {
		next = int64(s.left.removal) - prepareFrom
	}
	if last := t.prepared.last(); last != Never {
		next = min(next, int64(last)+prepareTo-prepareFrom)
	}
	return next, nil
}

// commitsSeen returns the number of the last commit that every later read sees.
func (e *Engine) commitsSeen() uint64 {
	e.order.Lock()
	defer e.order.Unlock()
	return e.lastCommit.Load()
}

// prepare reads the next entries that are due soon, and prepares their removals. What lies in a
// damaged file is left to the reaper.
func (s *slice) prepare(now Instant) error {
	p := &s.t.prepared
	p.mu.Lock()
	p.under(s.d)
	if now+1 > p.upTo.removal {
		p.upTo = position{removal: now + 1}
	}
	from := p.upTo
	p.mu.Unlock()
	if err := s.collect(from, now+prepareTo); err != nil {
		return err
	}
	list := make(readyList, 0, len(s.found))
	size := 0
	for i := range s.found {
		one := &prepared{armed: s.found[i], seen: s.seen}
		var err error
		if one.effects, err = s.effectsOf(&one.armed); isDamage(err) {
			continue
		} else if err != nil {
			return err
		}
		one.ready = one
		size += one.size()
		list = append(list, one)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.desc == s.d {
		p.list, p.upTo = append(p.list, list...), firstOf(s.left, position{removal: now + prepareTo + 1})
		p.room.Add(-int64(size))
	}
	return nil
}

// last returns the instant of the last prepared removal, or Never.
func (p *preparations) last() Instant {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return Never
	}
	return p.list[len(p.list)-1].removal
}

// clear discards everything, for a table that is dropped.
func (p *preparations) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under(nil)
}
