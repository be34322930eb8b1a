package guard

import (
	"math"
	"sync"
)

// partition is what this process knows of a part of the deadlines: those that it has armed, as the owner of the part or because it has learnt of them too late to leave
// them to the owner.
//
// An item may have several deadlines in the table for a while, of which the later of two is not necessarily the right one: what a scan has found may be older than what the
// stream has told already, and a worker that was paused may have written one that is no longer. So all are tried, each in its turn: an item's deadlines are chained in their order,
// and the first one is armed. The wrong ones are refused. A renewal takes its old deadline out, so this costs nothing where all is well.
type partition struct {
	s      *stream
	number int
	wake   chan struct{} // has an element when the owner has to look again
	mu     struct {
		sync.Mutex
		items  map[key]*pending  // the first of each chain
		owned  bool              // this worker has the lease
		loaded int64             // the owner has armed all deadlines before this instant, ms, and arms those that are written from now on
		next   int64             // when the owner looks again, if it is not told to before
		known  map[int64]bool    // minutes that are in the directory for certain
		track  bool              // what has ended is noted, because it may be found once more
		ended  [2]map[spot]ended // what has ended since the owner's last look began, and since the one before
	}
}

// pending is a deadline that is armed, or waits behind another one of the same item.
type pending struct {
	p     *partition
	key   key
	at    int64
	tag   int64    // of the record that it was learnt from
	next  *pending // of the same item, and later
	texts *texts   // nil: the value is the deadline in whole seconds, and there is no version
	inbox bool
}

// spot is a deadline's item and instant.
type spot struct {
	key key
	at  int64
}

// ended is how far a deadline needs nothing more. It may still be in the table, until the stream has told of its removal, or have been when the table was asked.
type ended struct {
	tag int64  // what was learnt from this record
	by  string // and what was learnt from records up to this one; "": not that
}

// texts is what few deadlines have.
type texts struct{ value, version string }

func newPartition(s *stream, number int) *partition {
	p := &partition{s: s, number: number, wake: make(chan struct{}, 1)}
	p.mu.items = map[key]*pending{}
	p.mu.known = map[int64]bool{}
	p.mu.ended = [2]map[spot]ended{{}, {}}
	p.mu.track = s.alone
	return p
}

func (p *partition) look() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (n *pending) entry() entry {
	e := entry{key: n.key, at: n.at, ender: endFunc(n.ended)}
	if n.texts != nil {
		e.value, e.version = n.texts.value, n.texts.version
	}
	return e
}

// arm arms a deadline, or chains it.
func (p *partition) arm(n noted, inbox bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armLocked(n, inbox)
}

// armFound arms a deadline that was found in the table, unless it has ended since the query began, or shortly before.
func (p *partition) armFound(n noted, inbox bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, some := range p.mu.ended {
		if e, has := some[spot{n.key, n.at}]; has && (e.tag == n.tag || n.by <= e.by) {
			return
		}
	}
	p.armLocked(n, inbox)
}

func (p *partition) armLocked(n noted, inbox bool) {
	e := n.lean()
	fresh := &pending{p: p, key: e.key, at: e.at, tag: n.tag, inbox: inbox}
	if e.value != "" || e.version != "" {
		fresh.texts = &texts{e.value, e.version}
	}
	at := &chain{p: p, key: e.key}
	for at.get() != nil && at.get().at < e.at {
		at.move()
	}
	if same := at.get(); same != nil && same.at == e.at {
		if fresh.tag == same.tag && inbox == same.inbox || fresh.tag == 0 {
			same.inbox = same.inbox || inbox
			return // it is what is known already, or from a scan, which knows no better
		}
		fresh.next, same.next = same.next, nil
		fresh.inbox = inbox || same.inbox
		at.set(fresh)
	} else {
		fresh.next = same
		at.set(fresh)
	}
	if at.first {
		p.s.g.arm(fresh.entry())
	}
}

// chain walks along an item's deadlines.
type chain struct {
	p      *partition
	key    key
	before *pending
	first  bool // what was set is the first
}

func (c *chain) get() *pending {
	if c.before == nil {
		return c.p.mu.items[c.key]
	}
	return c.before.next
}

func (c *chain) move() { c.before = c.get() }

// set puts n, and what follows it, where the chain is.
func (c *chain) set(n *pending) {
	c.first = c.before == nil
	switch {
	case c.before != nil:
		c.before.next = n
	case n != nil:
		c.p.mu.items[n.key] = n // with n's key, so that no other text of the same bytes is held
	default:
		delete(c.p.mu.items, c.key)
	}
}

// drop takes a deadline out that is no longer true, as the record by says. It gives what has to be deleted from the inbox.
func (p *partition) drop(k key, at int64, by string) *stored {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.track {
		p.mu.ended[0][spot{k, at}] = ended{by: by, tag: -1}
	}
	c := &chain{p: p, key: k}
	for c.get() != nil && c.get().at < at {
		c.move()
	}
	n := c.get()
	if n == nil || n.at != at {
		return nil
	}
	p.takeLocked(c, n, true)
	if n.inbox {
		return n.stored()
	}
	return nil
}

// takeLocked takes n, at which c is, out of its chain.
func (p *partition) takeLocked(c *chain, n *pending, disarm bool) {
	c.set(n.next)
	switch {
	case !c.first:
	case n.next != nil:
		p.s.g.arm(n.next.entry())
	case disarm:
		p.s.g.disarm(n.key)
	}
}

// ended is told how a deadline has ended. What was removed is deleted from the table by the stream's record of it, and what was refused right now: it may be that no record
// will come of it.
func (n *pending) ended(as outcome) {
	if as == replaced {
		return // by another one of its chain, behind which it waits or with which it has been taken out
	}
	p := n.p
	p.mu.Lock()
	c := &chain{p: p, key: n.key}
	for c.get() != nil && c.get() != n {
		c.move()
	}
	if c.get() == n {
		p.takeLocked(c, n, false)
	}
	inbox := n.inbox
	if p.mu.track {
		p.mu.ended[0][spot{n.key, n.at}] = ended{tag: n.tag}
	}
	p.mu.Unlock()
	if inbox && as != failed {
		p.s.clean(n.stored())
	}
	if as == refused || as == spared { // a dry run has a table of its own
		table := n.stored()
		table.inbox = false
		p.s.clean(table)
	}
}

func (n *pending) stored() *stored {
	return &stored{key: n.key, at: n.at, inbox: n.inbox, tag: n.tag, byTag: true}
}

// unfinished is the earliest deadline of the table, before the instant given, that is not done with; else that instant. What is in the inbox is found there again.
func (p *partition) unfinished(before int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.mu.items {
		for ; n != nil; n = n.next {
			if !n.inbox {
				before = min(before, n.at)
			}
		}
	}
	return before
}

// arms reports whether a deadline that was just written is to be armed here and now: the owner has looked there already, or will not in time. Where there is no room in
// memory, an owner will look there again instead; what is due too soon for that has to wait for room.
func (p *partition) arms(at, soon int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case at < soon:
		return true
	case !p.mu.owned || at >= p.mu.loaded:
		return false
	case p.s.g.room() > 0:
		return true
	}
	p.mu.loaded, p.mu.next = at, math.MinInt64
	p.look()
	return false
}

// knows reports whether a minute is in the directory for certain.
func (p *partition) knows(minute int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.known[minute]
}

// knownMax bounds how many minutes of the directory are remembered, for each partition.
const knownMax = 10_000

// learn notes that a minute is in the directory, and tells an owner that would look too late.
func (p *partition) learn(minute int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.known) >= knownMax {
		clear(p.mu.known)
	}
	p.mu.known[minute] = true
	if p.mu.owned && minute-p.s.ahead() < p.mu.next {
		p.mu.next = minute - p.s.ahead()
		p.look()
	}
}
