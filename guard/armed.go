package guard

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// armedMax is the maximum number of deadlines in memory.
const armedMax = 2_000_000

// armed holds the deadlines that wait in memory: at most one per key, in a heap ordered by the
// instant of the next attempt.
//
// An entry waits, then is taken while its removal is under way, then is finished or rests until the
// next attempt. An entry that is armed while its key is taken becomes the successor: it waits
// when the removal has ended.
//
// Slots lie in pages of one array each, and the heap and the ledger refer to slots by number. A
// million separately allocated entries would take twice the memory, and the garbage collector would
// visit each of them.
type armed struct {
	wake   chan struct{} // gets an element when the pump has to look again
	nearer chan struct{} // gets an element when the watcher has to look again
	mu     struct {
		sync.Mutex
		slots   [][]slot
		free    []int32
		byKey   ledger
		heap    []due              // the waiting slots
		resting []resting          // the resting slots, by the end of their rest
		next    map[key]entry      // successors
		shared  map[armer]*details // of armers with many entries, so that their slots share one
	}
	most    int // the maximum number of entries; strategies ask for room before they arm
	elapsed clock.Elapsed
	timer   clock.Timer // for the end of the first rest; guarded by mu
}

// slot is an armed entry in 40 bytes. A field more costs 16 MB, as there may be two million.
type slot struct {
	key     key
	at      int64
	details *details // nil if the entry has only a key and an instant
	heap    int32    // index in the heap while the slot waits, else -1
	tries   int16
	state   state
	gone    bool // disarmed or replaced while taken: no further attempt
}

// details are the rarely used fields of an entry. Entries of one armer mostly share them.
type details struct {
	value, version string
	armer          armer
}

type state int8

const (
	waits state = iota
	isTaken
	isResting
)

const (
	pageSize  = 1024
	sharedMax = 64 // armers with shared details
)

// due is an element of the heap. It repeats the slot's instant so that comparisons stay within the
// heap's memory.
type due struct {
	at   int64
	slot int32
}

type resting struct {
	until time.Duration // by armed.elapsed
	slot  int32
	key   key // the slot may have another key by then
}

func newArmed() *armed {
	a := &armed{wake: make(chan struct{}, 1), nearer: make(chan struct{}, 1), most: armedMax, elapsed: clock.Stopwatch()}
	a.mu.next = map[key]entry{}
	a.mu.shared = map[armer]*details{}
	return a
}

// nudge wakes the pump and the watcher.
func (a *armed) nudge() {
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
	if s.details != nil {
		e.value, e.version, e.armer = s.details.value, s.details.version, s.details.armer
	}
	return e
}

// detailsLocked returns the details of an entry, shared if possible; nil if it has none.
func (a *armed) detailsLocked(e entry) *details {
	if e.value == "" && e.version == "" {
		if e.armer == nil {
			return nil
		}
		if many, ok := e.armer.(rememberingArmer); ok {
			d := a.mu.shared[many]
			if d == nil {
				if len(a.mu.shared) >= sharedMax {
					clear(a.mu.shared)
				}
				d = &details{armer: many}
				a.mu.shared[many] = d
			}
			return d
		}
	}
	return &details{e.value, e.version, e.armer}
}

// slotLocked returns the key's slot.
func (a *armed) slotLocked(k key) (i int32, found bool) {
	return a.mu.byKey.find(hash(k), func(i int32) bool { return a.at(i).key == k })
}

// arm adds an entry. An earlier entry of the same key that is not taken ends as replaced.
func (a *armed) arm(e entry) {
	if before, found := a.add(e.lean()); found {
		before.notify(replaced)
	}
}

// add arms an entry and returns the one that it has replaced.
func (a *armed) add(e entry) (before entry, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, found := a.slotLocked(e.key)
	if !found {
		a.addLocked(e)
		return entry{}, false
	}
	if s := a.at(i); s.state != isTaken {
		before = s.entry()
		a.dropLocked(i)
		a.addLocked(e)
		return before, true
	}
	before, found = a.mu.next[e.key]
	a.mu.next[e.key] = e
	return before, found
}

// disarm removes the key's entry, or its successor if the entry is taken. It reports whether there
// was one; that entry ends as replaced.
func (a *armed) disarm(k key) bool {
	before, found := a.remove(k)
	if found {
		before.notify(replaced)
	}
	return found
}

func (a *armed) remove(k key) (before entry, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, found := a.slotLocked(k)
	if !found {
		return entry{}, false
	}
	s := a.at(i)
	if s.state != isTaken {
		before = s.entry()
		a.dropLocked(i)
		return before, true
	}
	s.gone = true
	before, found = a.mu.next[k]
	delete(a.mu.next, k)
	return before, found
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
	*a.at(i) = slot{key: e.key, at: e.at, details: a.detailsLocked(e)}
	a.mu.byKey.add(hash(e.key), i)
	a.pushLocked(i, e.at)
}

// dropLocked frees a slot. The last entry of a burst frees all memory, since nothing shrinks.
func (a *armed) dropLocked(i int32) {
	s := a.at(i)
	if s.state == waits {
		a.removeLocked(s.heap)
	}
	a.mu.byKey.drop(hash(s.key), i)
	*s = slot{}
	a.mu.free = append(a.mu.free, i)
	if a.mu.byKey.n == 0 {
		clear(a.mu.shared)
	}
	if a.mu.byKey.n == 0 && len(a.mu.slots) > 64 {
		a.mu.slots, a.mu.free, a.mu.byKey, a.mu.heap, a.mu.resting = nil, nil, ledger{}, nil, nil
	}
}

func (a *armed) pushLocked(i int32, at int64) {
	a.mu.heap = append(a.mu.heap, due{at, i})
	a.upLocked(len(a.mu.heap) - 1)
	if a.mu.heap[0].slot == i {
		a.nudge()
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

// removal is an entry whose removal is under way.
type removal struct {
	entry
	slot  int32
	tries int // attempts that have failed
}

// take returns up to n entries that are due at now, in the order of their deadlines, and the
// instant at which the next one is due.
func (a *armed) take(now int64, n int) (batch []removal, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awakeLocked(now)
	for len(batch) < n && len(a.mu.heap) > 0 && a.mu.heap[0].at <= now {
		i := a.mu.heap[0].slot
		a.removeLocked(0)
		s := a.at(i)
		s.state, s.heap = isTaken, -1
		e := s.entry()
		e.value = e.text()
		batch = append(batch, removal{entry: e, slot: i, tries: int(s.tries)})
	}
	next = clock.Never
	if len(a.mu.heap) > 0 {
		next = a.mu.heap[0].at
	}
	return batch, next
}

// end forgets a removal and notifies its armer. The successor is armed even if it has the same
// value: the item may have been written again after the removal.
func (a *armed) end(r removal, how outcome) {
	a.mu.Lock()
	if m, ok := r.armer.(rememberingArmer); ok {
		m.remember(r.entry, how)
	}
	a.dropLocked(r.slot)
	a.armNextLocked(r.key)
	a.mu.Unlock()
	r.notify(how)
}

// armNextLocked arms the key's successor and reports whether there is one.
func (a *armed) armNextLocked(k key) bool {
	e, found := a.mu.next[k]
	if found {
		delete(a.mu.next, k)
		a.addLocked(e)
	}
	return found
}

// retry lets a removal rest before the next attempt. One that was replaced or disarmed meanwhile
// ends as replaced.
func (a *armed) retry(r removal, after time.Duration) {
	if !a.rest(r, after) {
		r.notify(replaced)
	}
}

func (a *armed) rest(r removal, after time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.at(r.slot)
	if _, found := a.mu.next[r.key]; found || s.gone {
		a.dropLocked(r.slot)
		a.armNextLocked(r.key)
		return false
	}
	s.state = isResting
	s.tries = min(s.tries, math.MaxInt16-1) + 1
	until := a.elapsed() + after
	at, _ := slices.BinarySearchFunc(a.mu.resting, until, func(r resting, t time.Duration) int { return int(r.until - t) })
	a.mu.resting = slices.Insert(a.mu.resting, at, resting{until, r.slot, r.key})
	if at == 0 {
		a.alarmLocked()
	}
	return true
}

// has reports whether an equal entry is armed: of the same key, deadline and armer.
func (a *armed) has(e entry) bool {
	e = e.lean()
	a.mu.Lock()
	defer a.mu.Unlock()
	if after, found := a.mu.next[e.key]; found {
		return after == e
	}
	i, found := a.slotLocked(e.key)
	return found && !a.at(i).gone && a.at(i).entry() == e
}

// pending returns the earliest unfinished deadline of an armer; clock.Never if there is none.
func (a *armed) pending(by armer) int64 {
	first := clock.Never
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, page := range a.mu.slots {
		for i := range page {
			if page[i].details != nil && page[i].details.armer == by {
				first = min(first, page[i].at)
			}
		}
	}
	for _, e := range a.mu.next {
		if e.armer == by {
			first = min(first, e.at)
		}
	}
	return first
}

// awakeLocked makes the slots wait again whose rest is over.
func (a *armed) awakeLocked(now int64) {
	if len(a.mu.resting) == 0 {
		return
	}
	t, n := a.elapsed(), 0
	for ; n < len(a.mu.resting) && a.mu.resting[n].until <= t; n++ {
		r := a.mu.resting[n]
		if s := a.at(r.slot); s.state == isResting && s.key == r.key {
			s.state = waits
			a.pushLocked(r.slot, s.at)
		}
	}
	a.mu.resting = slices.Delete(a.mu.resting, 0, n)
	if n > 0 {
		a.alarmLocked()
	}
}

// alarmLocked wakes the pump at the end of the first rest.
func (a *armed) alarmLocked() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if len(a.mu.resting) > 0 {
		a.timer = clock.AfterFunc(max(a.mu.resting[0].until-a.elapsed(), 0), a.nudge)
	}
}

// stop stops the alarm.
func (a *armed) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// next returns the earliest deadline that waits; clock.Never if there is none.
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
	return a.mu.byKey.n
}
