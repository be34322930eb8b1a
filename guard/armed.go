package guard

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// armedMax is how many deadlines are held in memory at most.
const armedMax = 2_000_000

// armed are the deadlines that are waited for in memory: at most one per key, in a heap by the instant at which something has to be done about them.
//
// An entry waits, then flies, while its removal is under way, then either ends or rests until another attempt. Of a key whose entry flies, a later entry is kept as its
// successor, which waits until the first one has ended.
//
// The slots lie in pages of one array each, and heap and ledger refer to them by number, because a million of entries in objects of their own cost twice the memory and a
// collector's time for each.
type armed struct {
	wake   chan struct{} // gets an element when the pump has to look again
	nearer chan struct{} // and when the watcher has to
	mu     struct {
		sync.Mutex
		slots [][]slot
		free  []int32
		by    ledger
		heap  []due     // of those that wait
		rest  []resting // heap of those that rest, by the stopwatch
		next  map[key]entry
		usual *remains // of the one who has armed last, if that is one who arms many
	}
	most    int // how many may be held; whoever arms asks for room first
	elapsed clock.Elapsed
	timer   clock.Timer // of the first that rests; guarded by mu
}

// slot is an armed entry. There may be two million: a field more is 16 MB more.
type slot struct {
	key   key
	at    int64
	rest  *remains
	heap  int32 // its place in the heap of those that wait; -1 where it does not
	tries int16
	state state
	gone  bool // disarmed or replaced while flying: there is no other attempt
}

// remains are what most entries have in common with the one before, and then share.
type remains struct {
	value, version string
	ender          ender
}

type state int8

const (
	waits state = iota
	flies
	rests
)

const pageSize = 1024

// due is a place in the heap. The instant is here and not in the slot alone, so that comparing does not jump about in memory.
type due struct {
	at   int64
	slot int32
}

type resting struct {
	until time.Duration
	slot  int32
	key   key // the slot may be another's by then
}

func newArmed() *armed {
	a := &armed{wake: make(chan struct{}, 1), nearer: make(chan struct{}, 1), most: armedMax, elapsed: clock.Stopwatch()}
	a.mu.next = map[key]entry{}
	return a
}

func (a *armed) look() {
	for _, c := range []chan struct{}{a.wake, a.nearer} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (a *armed) at(i int32) *slot { return &a.mu.slots[i/pageSize][i%pageSize] }

func (s *slot) entry() entry {
	e := entry{key: s.key, at: s.at}
	if s.rest != nil {
		e.value, e.version, e.ender = s.rest.value, s.rest.version, s.rest.ender
	}
	return e
}

// restLocked is what a slot refers to for what the entry has beside its key and its instant.
func (a *armed) restLocked(e entry) *remains {
	if e.value == "" && e.version == "" {
		if e.ender == nil {
			return nil
		}
		if one, is := e.ender.(rememberer); is {
			if a.mu.usual == nil || a.mu.usual.ender != one {
				a.mu.usual = &remains{ender: one}
			}
			return a.mu.usual
		}
	}
	return &remains{e.value, e.version, e.ender}
}

// slotLocked is the key's slot.
func (a *armed) slotLocked(k key) (i int32, has bool) {
	return a.mu.by.find(hash(k), func(i int32) bool { return a.at(i).key == k })
}

// text is the value where it was left out, because it follows from the instant.
func (e entry) text() string {
	if e.value == "" {
		return strconv.FormatInt(e.at/1000, 10)
	}
	return e.value
}

// lean leaves the value out where it follows from the instant.
func (e entry) lean() entry {
	var room [20]byte
	if e.at%1000 == 0 && e.value == string(strconv.AppendInt(room[:0], e.at/1000, 10)) {
		e.value = ""
	}
	return e
}

// arm holds the entry. It gives what is to be told of the one that it has replaced.
func (a *armed) arm(e entry) told {
	e = e.lean()
	a.mu.Lock()
	defer a.mu.Unlock()
	i, has := a.slotLocked(e.key)
	if !has {
		a.addLocked(e)
		return told{}
	}
	if s := a.at(i); s.state != flies {
		before := s.entry()
		a.dropLocked(i)
		a.addLocked(e)
		return told{before, replaced}
	}
	before := a.mu.next[e.key]
	a.mu.next[e.key] = e
	return told{before, replaced}
}

// disarm takes the key's entry away, and its successor where it flies. It gives what is to be told of that, and whether there was one.
func (a *armed) disarm(k key) (tell told, was bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, has := a.slotLocked(k)
	if !has {
		return told{}, false
	}
	s := a.at(i)
	if s.state != flies {
		before := s.entry()
		a.dropLocked(i)
		return told{before, replaced}, true
	}
	s.gone = true
	before, has := a.mu.next[k]
	delete(a.mu.next, k)
	return told{before, replaced}, has
}

func (a *armed) addLocked(e entry) {
	if len(a.mu.free) == 0 {
		base := int32(len(a.mu.slots) * pageSize)
		a.mu.slots = append(a.mu.slots, make([]slot, pageSize))
		for j := int32(pageSize - 1); j >= 0; j-- {
			a.mu.free = append(a.mu.free, base+j)
		}
	}
	i := a.mu.free[len(a.mu.free)-1]
	a.mu.free = a.mu.free[:len(a.mu.free)-1]
	*a.at(i) = slot{key: e.key, at: e.at, rest: a.restLocked(e)}
	a.mu.by.add(hash(e.key), i)
	a.pushLocked(i, e.at)
}

// dropLocked forgets a slot. What is left of a burst is given back with the last one, since nothing of it shrinks.
func (a *armed) dropLocked(i int32) {
	s := a.at(i)
	if s.state == waits {
		a.removeLocked(s.heap)
	}
	a.mu.by.drop(hash(s.key), i)
	*s = slot{}
	a.mu.free = append(a.mu.free, i)
	if a.mu.by.n == 0 && len(a.mu.slots) > 64 {
		a.mu.slots, a.mu.free, a.mu.by, a.mu.heap, a.mu.rest = nil, nil, ledger{}, nil, nil
	}
}

func (a *armed) pushLocked(i int32, at int64) {
	a.mu.heap = append(a.mu.heap, due{at, i})
	a.upLocked(len(a.mu.heap) - 1)
	if a.mu.heap[0].slot == i {
		a.look()
	}
}

func (a *armed) removeLocked(place int32) {
	h := a.mu.heap
	last := len(h) - 1
	if int(place) != last {
		h[place] = h[last]
		a.at(h[place].slot).heap = place
	}
	a.mu.heap = h[:last]
	if int(place) < last {
		a.downLocked(int(place))
		a.upLocked(int(place))
	}
}

func (a *armed) upLocked(i int) {
	h := a.mu.heap
	moving := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent].at <= moving.at {
			break
		}
		h[i] = h[parent]
		a.at(h[i].slot).heap = int32(i)
		i = parent
	}
	h[i] = moving
	a.at(moving.slot).heap = int32(i)
}

func (a *armed) downLocked(i int) {
	h := a.mu.heap
	moving := h[i]
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].at < h[least].at {
				least = c
			}
		}
		if h[least].at >= moving.at {
			break
		}
		h[i] = h[least]
		a.at(h[i].slot).heap = int32(i)
		i = least
	}
	h[i] = moving
	a.at(moving.slot).heap = int32(i)
}

// flight is an entry whose removal is under way.
type flight struct {
	entry
	slot  int32
	tries int // attempts that have failed
}

// take gives up to n entries that are due at now, in the order of their deadlines, and the instant at which the next is.
func (a *armed) take(now int64, n int) (some []flight, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awakeLocked(now)
	for len(some) < n && len(a.mu.heap) > 0 && a.mu.heap[0].at <= now {
		i := a.mu.heap[0].slot
		a.removeLocked(0)
		s := a.at(i)
		s.state, s.heap = flies, -1
		e := s.entry()
		e.value = e.text()
		some = append(some, flight{entry: e, slot: i, tries: int(s.tries)})
	}
	next = clock.Never
	if len(a.mu.heap) > 0 {
		next = a.mu.heap[0].at
	}
	return some, next
}

// end forgets a flight that has ended, and gives what is to be told of it. Its successor is armed, also one of the same value: it may be of an item that was written again
// after the removal.
func (a *armed) end(f flight, as outcome) told {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r, is := f.ender.(rememberer); is {
		r.remember(f.entry, as)
	}
	a.dropLocked(f.slot)
	if e, has := a.mu.next[f.key]; has {
		delete(a.mu.next, f.key)
		a.addLocked(e)
	}
	return told{f.entry, as}
}

// retry lets a flight rest before another attempt. One that has been replaced or disarmed meanwhile ends as that instead.
func (a *armed) retry(f flight, after time.Duration) told {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.at(f.slot)
	e, succeeded := a.mu.next[f.key]
	if succeeded || s.gone {
		a.dropLocked(f.slot)
		if succeeded {
			delete(a.mu.next, f.key)
			a.addLocked(e)
		}
		return told{f.entry, replaced}
	}
	s.state = rests
	s.tries = min(s.tries, math.MaxInt16-1) + 1
	until := a.elapsed() + after
	at, _ := slices.BinarySearchFunc(a.mu.rest, until, func(r resting, t time.Duration) int { return int(r.until - t) })
	a.mu.rest = slices.Insert(a.mu.rest, at, resting{until, f.slot, f.key})
	if at == 0 {
		a.alarmLocked()
	}
	return told{}
}

// told is an entry's outcome, of which who has armed it is to be told.
type told struct {
	entry
	as outcome
}

func (t told) tell() {
	if t.ender != nil {
		t.ender.ended(t.entry, t.as)
	}
}

// has reports whether an entry is armed that is the same: of the same deadline, and armed by the same.
func (a *armed) has(e entry) bool {
	e = e.lean()
	a.mu.Lock()
	defer a.mu.Unlock()
	if after, has := a.mu.next[e.key]; has {
		return after == e
	}
	i, has := a.slotLocked(e.key)
	return has && !a.at(i).gone && a.at(i).entry() == e
}

// pending is the earliest deadline of those that one has armed and that have not ended; clock.Never: none.
func (a *armed) pending(of ender) int64 {
	first := clock.Never
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, page := range a.mu.slots {
		for i := range page {
			if page[i].rest != nil && page[i].rest.ender == of {
				first = min(first, page[i].at)
			}
		}
	}
	for _, e := range a.mu.next {
		if e.ender == of {
			first = min(first, e.at)
		}
	}
	return first
}

// awakeLocked lets those wait again that have rested.
func (a *armed) awakeLocked(now int64) {
	if len(a.mu.rest) == 0 {
		return
	}
	t, n := a.elapsed(), 0
	for ; n < len(a.mu.rest) && a.mu.rest[n].until <= t; n++ {
		r := a.mu.rest[n]
		if s := a.at(r.slot); s.state == rests && s.key == r.key {
			s.state = waits
			a.pushLocked(r.slot, s.at)
		}
	}
	a.mu.rest = slices.Delete(a.mu.rest, 0, n)
	if n > 0 {
		a.alarmLocked()
	}
}

// alarmLocked makes the pump look when the first that rests has done so.
func (a *armed) alarmLocked() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if len(a.mu.rest) > 0 {
		a.timer = clock.AfterFunc(max(a.mu.rest[0].until-a.elapsed(), 0), a.look)
	}
}

// stop ends the alarm.
func (a *armed) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// next is the earliest deadline of those that wait.
func (a *armed) next() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.mu.heap) == 0 {
		return clock.Never
	}
	return a.mu.heap[0].at
}

func (a *armed) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.by.n
}
