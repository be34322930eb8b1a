package stream

import (
	"math"
	"sync"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
)

func newPartition(s *Strategy, d *division, number int) *partition {
	p := &partition{s: s, d: d, number: number, wake: make(chan struct{}, 1)}
	p.mu.known = buckets{}
	p.mu.cleaning = map[armed.Entry]int64{}
	p.mu.finished = [2]map[armed.Entry]finished{{}, {}}
	p.mu.track = s.alone
	return p
}

// shelf has the rows of some keys in memory, from all divisions: the first of each key's chain.
type shelf struct {
	sync.Mutex
	items map[armed.Key]*row
}

func (s *Strategy) shelfOf(k armed.Key) *shelf { return &s.shelves[hashOf(k)%uint64(len(s.shelves))] }

// shelves calls do with each shelf that may have rows of the partition, locked. The number of
// shelves is a multiple of each number of partitions.
func (p *partition) shelves(do func(*shelf)) {
	for i := p.number; i < len(p.s.shelves); i += p.d.partitions {
		at := &p.s.shelves[i]
		at.Lock()
		do(at)
		at.Unlock()
	}
}

// arm arms a row, or chains it behind an earlier deadline of its item.
func (p *partition) arm(r *row) {
	at := p.s.shelfOf(r.key)
	at.Lock()
	defer at.Unlock()
	p.armLocked(at, r, false)
}

// armFound arms a row that was found in the table, unless its deadline has ended since the query
// began, or shortly before, or its row waits for the cleaner. In a backlog the cleaner is late, and
// trying such rows again at each poll would only make the backlog longer. A row whose attempt has
// ended is not tried again, but deleted if nothing else deletes it: if it is in the inbox, or old.
func (p *partition) armFound(r *row, old bool) {
	at := p.s.shelfOf(r.key)
	at.Lock()
	defer at.Unlock()
	switch {
	case p.hasEnded(r):
	case !p.s.ended.has(r):
		p.armLocked(at, r, true)
	case r.inbox || old:
		p.s.clean(&row{key: r.key, at: r.at, tag: r.tag, inbox: r.inbox, p: p})
	}
}

// hasEnded reports whether the deadline of a row that was found has ended.
func (p *partition) hasEnded(r *row) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if tag, waits := p.mu.cleaning[armed.Entry{Key: r.key, At: r.at}]; waits && tag == r.tag {
		return true
	}
	for _, done := range p.mu.finished {
		if f, found := done[armed.Entry{Key: r.key, At: r.at}]; found && (f.tag == r.tag || r.by <= f.by) {
			return true
		}
	}
	return false
}

// armLocked arms a row, or chains it. A worker that is alone writes all rows itself. So if it finds a
// row, and has another record's row of that item and instant in memory, then it read the found one
// before it wrote the other, and keeps the other.
func (p *partition) armLocked(on *shelf, r *row, found bool) {
	r.p, r.by = p, "" // its tag is enough from now on
	at := &chain{on: on, key: r.key}
	for at.get() != nil && (at.get().at < r.at || at.get().at == r.at && at.get().p.d.number > r.p.d.number && !r.hasTextsOf(at.get())) {
		at.move() // among those of one instant, the row of the newest division is tried first
	}
	if same := at.get(); same != nil && same.at == r.at && same.p != r.p && r.hasTextsOf(same) {
		return // it stands for the same attempt; the row that stays in the table is refused and deleted
	} else if same != nil && same.at == r.at && same.p == r.p {
		if found && p.s.alone && same.tag != 0 && r.tag != same.tag {
			return
		}
		if r.tag == same.tag && r.inbox == same.inbox || r.tag == 0 {
			same.inbox, same.mine = same.inbox || r.inbox, same.mine || r.mine
			return // it is known already, or from a scan, which has no newer information
		}
		r.next, same.next = same.next, nil
		r.inbox, r.mine = r.inbox || same.inbox, r.mine || same.mine
	} else {
		r.next = same
		p.held.Add(1)
	}
	at.set(r)
	if at.first {
		p.s.Arm(r.entry())
	}
}

// chain is a position in the list of an item's rows: before the first one, or behind a row.
type chain struct {
	on     *shelf
	key    armed.Key
	before *row
	first  bool // the last set changed the first row
}

func (c *chain) get() *row {
	if c.before == nil {
		return c.on.items[c.key]
	}
	return c.before.next
}

func (c *chain) move() { c.before = c.get() }

// set puts n, and its followers, at the chain's position.
func (c *chain) set(n *row) {
	c.first = c.before == nil
	switch {
	case c.before != nil:
		c.before.next = n
	case n != nil:
		c.on.items[n.key] = n // with n's key, so that no other text of the same bytes is held
	default:
		delete(c.on.items, c.key)
	}
}

// drop removes a deadline from memory because a record shows that the item no longer has it. It
// returns the rows that the record's worker does not delete: rows of the inbox and of older
// divisions.
func (s *Strategy) drop(gone *row) (left []*row) {
	at := s.shelfOf(gone.key)
	at.Lock()
	defer at.Unlock()
	for _, d := range s.store.live() {
		d.parts[d.partitionOf(gone.key)].noteFinished(gone, finished{by: gone.by, tag: -1})
	}
	c := &chain{on: at, key: gone.key}
	for c.get() != nil && c.get().at < gone.at {
		c.move()
	}
	for r := c.get(); r != nil && r.at == gone.at; r = c.get() {
		s.takeLocked(c, r, true)
		if r.inbox || r.p.isOld() {
			left = append(left, r)
		}
	}
	return left
}

// noteFinished records that a deadline has ended, because a query may find its row once more.
func (p *partition) noteFinished(r *row, how finished) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.track {
		p.mu.finished[0][armed.Entry{Key: r.key, At: r.at}] = how
	}
}

// isOld reports whether the partition is of an older division. The records of its items do not
// delete its rows.
func (p *partition) isOld() bool { return p.d != p.s.store.newest() }

// takeLocked takes n, the row at c's position, out of its list. If n was the first, the next one is
// armed; if there is none, disarm takes n out of the armed deadlines.
func (s *Strategy) takeLocked(c *chain, n *row, disarm bool) {
	c.set(n.next)
	if n.p.held.Add(-1) == 0 {
		n.p.pollOn()
	}
	switch {
	case !c.first:
	case n.next != nil:
		s.Arm(n.next.entry())
	case disarm:
		s.Disarm(n.key)
	}
}

// Finished implements armed.Armer. The stream's record of a removal deletes the row from the table.
// A refused row is deleted right now: there may be no record of it.
func (r *row) Finished(_ armed.Entry, how armed.Outcome) {
	if how == armed.Replaced {
		go r.replaced()
		return
	}
	p := r.p
	at := p.s.shelfOf(r.key)
	at.Lock()
	c := &chain{on: at, key: r.key}
	for c.get() != nil && c.get() != r {
		c.move()
	}
	if c.get() == r {
		p.s.takeLocked(c, r, false)
	}
	table := &row{key: r.key, at: r.at, tag: r.tag, p: p}
	inbox := r.inbox
	p.noteFinished(r, finished{tag: r.tag})
	if how != armed.Failed {
		p.s.ended.add(r)
	}
	at.Unlock()
	if inbox && how != armed.Failed {
		p.s.clean(r)
	}
	if how == armed.Refused || how == armed.Spared || how == armed.Removed && p.isOld() { // a dry run has a table of its own
		p.s.clean(table)
	}
}

// replaced takes a row out of its list if another strategy has armed its item, as the scan does while
// the stream cannot be followed. If a row of its own list has replaced it, it is behind that one, or
// no longer in the list, and there is nothing to do. The goroutine that replaces a row may hold its
// shelf, so replaced runs in another.
func (r *row) replaced() {
	s := r.p.s
	at := s.shelfOf(r.key)
	at.Lock()
	defer at.Unlock()
	if c := (&chain{on: at, key: r.key}); c.get() == r && !s.Armed.Has(r.entry()) {
		s.takeLocked(c, r, false)
	}
}

// unfinished returns the earliest unfinished deadline of the table before an instant, else that
// instant. Rows of the inbox do not count: every owner finds them there.
func (p *partition) unfinished(before int64) int64 {
	p.shelves(func(at *shelf) {
		for _, n := range at.items {
			for ; n != nil; n = n.next {
				if n.p == p && !n.inbox {
					before = min(before, n.at)
				}
			}
		}
	})
	return before
}

// arms reports whether a deadline that was just written is armed by its writer: the owner has
// polled past it, or will poll too late. Without room in memory, the owner polls there again
// instead; a deadline that is due too soon for that waits for room.
func (p *partition) arms(at, soon int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case at < soon:
		return true
	case !p.mu.owned || at > p.mu.loaded || at == p.mu.loaded && !p.mu.partly:
		return false
	case p.room() > 0:
		return true
	}
	if p.mu.next != math.MinInt64 {
		p.mu.next = math.MinInt64
		strategy.Nudge(p.wake)
	}
	// the poll finds later deadlines again that are armed already, or were
	p.mu.loaded, p.mu.partly, p.mu.track = at, false, true
	return false
}

// room returns how many more of the partition's deadlines may be armed ahead. A worker that is alone
// limits each partition, of all divisions, so that the armed ones are the earliest of all.
func (p *partition) room() int {
	room := p.s.Room()
	if p.s.alone {
		partitions := 0
		for _, d := range p.s.store.live() {
			partitions += d.partitions
		}
		room = min(room, max(p.s.Armed.Most*2/3/partitions, 1)-int(p.held.Load()))
	}
	return max(room, 0)
}

// pollOn wakes an owner that has stopped for lack of room, since the partition has no rows in memory
// any more.
func (p *partition) pollOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.partly {
		strategy.Nudge(p.wake)
	}
}

// knows reports whether a bucket is in the directory for certain.
func (p *partition) knows(bucket int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.known.has(bucket)
}

// knownHours bounds the memory for buckets of the directory, to some 26 MB: the hours of all
// partitions of a division. With 16 partitions it covers almost two years, with 256 six weeks.
const knownHours = 1 << 18

// learn records that a bucket is in the directory, and wakes an owner that would poll too late.
func (p *partition) learn(bucket int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.known) >= knownHours/p.d.partitions {
		clear(p.mu.known)
	}
	p.mu.known.add(bucket)
	if p.mu.owned && bucket-p.s.ahead() < p.mu.next {
		p.mu.next = bucket - p.s.ahead()
		strategy.Nudge(p.wake)
	}
}

// HorizonAt returns the instant before which this worker has armed all of its partitions; 0 if it
// has none.
func (s *Strategy) HorizonAt() (at int64) {
	for _, d := range s.store.live() {
		for _, p := range d.parts {
			p.mu.Lock()
			if p.mu.owned && (at == 0 || p.mu.loaded < at) {
				at = p.mu.loaded
			}
			p.mu.Unlock()
		}
	}
	return at
}
