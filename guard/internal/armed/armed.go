package armed

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

// entriesMax is the maximum number of deadlines in memory.
const entriesMax = 2_000_000

// Set holds the deadlines that wait in memory: at most one per key, in a heap ordered by the
// instant of the next attempt.
//
// An entry waits, then is taken while its removal is under way, then is finished or rests until the
// next attempt. An entry that is armed while its key is taken becomes the successor: it begins to
// wait when the removal has ended.
//
// Slots lie in pages of one array each, and the heap and the ledger refer to slots by number. A
// million separately allocated entries would take twice the memory, and the garbage collector would
// visit each of them.
type Set struct {
	// both get an element when another entry has become the next, or a rest has ended: for the pump
	// of removals, and for the watcher of the endpoint's clock
	Wake, Nearer chan struct{}

	mu struct {
		sync.Mutex
		slots   [][]slot
		free    []int32
		byKey   ledger
		heap    []due              // the waiting slots
		resting []resting          // the resting slots, by the end of their rest
		next    map[Key]Entry      // successors
		shared  map[Armer]*details // of armers with many entries, so that their slots share one
	}
	Most    int // the maximum number of entries; strategies ask for room before they arm
	elapsed clock.Elapsed
	timer   clock.Timer // for the end of the first rest; guarded by mu
}

// slot is an armed entry in 40 bytes. A field more costs 16 MB, as there may be two million.
type slot struct {
	key     Key
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
	armer          Armer
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
	key   Key // the slot may have another key by then
}

// New returns an empty set.
func New() *Set {
	a := &Set{Wake: make(chan struct{}, 1), Nearer: make(chan struct{}, 1), Most: entriesMax, elapsed: clock.Stopwatch()}
	a.mu.next = map[Key]Entry{}
	a.mu.shared = map[Armer]*details{}
	return a
}

// Nudge wakes the pump and the watcher.
func (a *Set) Nudge() {
	for _, c := range []chan struct{}{a.Wake, a.Nearer} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (a *Set) at(i int32) *slot { return &a.mu.slots[i/pageSize][i%pageSize] }

func (s *slot) entry() Entry {
	e := Entry{Key: s.key, At: s.at}
	if s.details != nil {
		e.Value, e.Version, e.Armer = s.details.value, s.details.version, s.details.armer
	}
	return e
}

// detailsLocked returns the details of an entry, shared if possible; nil if it has none.
func (a *Set) detailsLocked(e Entry) *details {
	if e.Value == "" && e.Version == "" {
		if e.Armer == nil {
			return nil
		}
		if many, ok := e.Armer.(RememberingArmer); ok {
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
	return &details{e.Value, e.Version, e.Armer}
}

// slotLocked returns the key's slot, in any state.
func (a *Set) slotLocked(k Key) (i int32, found bool) {
	return a.mu.byKey.find(hash(k), func(i int32) bool { return a.at(i).key == k })
}

// Arm adds an entry. An earlier entry of the same key that is not taken ends as replaced.
func (a *Set) Arm(e Entry) {
	if before, found := a.add(e.Lean()); found {
		before.notify(Replaced)
	}
}

// ArmNew adds an entry, unless its key has one. It reports whether the entry was added. So a stale
// deadline never replaces a newer one.
func (a *Set) ArmNew(e Entry) bool {
	e = e.Lean()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, found := a.slotLocked(e.Key); found {
		return false
	}
	a.addLocked(e)
	return true
}

// add arms an entry and returns the one that it has replaced.
func (a *Set) add(e Entry) (before Entry, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, found := a.slotLocked(e.Key)
	if !found {
		a.addLocked(e)
		return Entry{}, false
	}
	if s := a.at(i); s.state != isTaken {
		before = s.entry()
		a.dropLocked(i)
		a.addLocked(e)
		return before, true
	}
	before, found = a.mu.next[e.Key]
	a.mu.next[e.Key] = e
	return before, found
}

// Disarm removes the key's entry, or its successor if the entry is taken. It reports whether there
// was one; that entry ends as replaced.
func (a *Set) Disarm(k Key) bool {
	before, found := a.remove(k)
	if found {
		before.notify(Replaced)
	}
	return found
}

func (a *Set) remove(k Key) (before Entry, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, found := a.slotLocked(k)
	if !found {
		return Entry{}, false
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

func (a *Set) addLocked(e Entry) {
	if len(a.mu.free) == 0 {
		base := int32(len(a.mu.slots) * pageSize)
		a.mu.slots = append(a.mu.slots, make([]slot, pageSize))
		for j := int32(pageSize - 1); j >= 0; j-- {
			a.mu.free = append(a.mu.free, base+j)
		}
	}
	i := a.mu.free[len(a.mu.free)-1]
	a.mu.free = a.mu.free[:len(a.mu.free)-1]
	*a.at(i) = slot{key: e.Key, at: e.At, details: a.detailsLocked(e)}
	a.mu.byKey.add(hash(e.Key), i)
	a.pushLocked(i, e.At)
}

// dropLocked frees a slot. The last entry of a burst frees all memory, since nothing shrinks.
func (a *Set) dropLocked(i int32) {
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

func (a *Set) pushLocked(i int32, at int64) {
	a.mu.heap = append(a.mu.heap, due{at, i})
	a.upLocked(len(a.mu.heap) - 1)
	if a.mu.heap[0].slot == i {
		a.Nudge()
	}
}

func (a *Set) removeLocked(place int32) {
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

func (a *Set) upLocked(i int) {
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

func (a *Set) downLocked(i int) {
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

// Removal is an entry whose removal is under way.
type Removal struct {
	Entry
	slot  int32
	Tries int // attempts that have failed
}

// Take takes up to n entries that are due at now, in the order of their deadlines. The caller ends
// each with End or Retry. next is the earliest deadline that still waits; clock.Never if there is
// none.
func (a *Set) Take(now int64, n int) (batch []Removal, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awakeLocked(now)
	for len(batch) < n && len(a.mu.heap) > 0 && a.mu.heap[0].at <= now {
		i := a.mu.heap[0].slot
		a.removeLocked(0)
		s := a.at(i)
		s.state, s.heap = isTaken, -1
		e := s.entry()
		e.Value = e.Text()
		batch = append(batch, Removal{Entry: e, slot: i, Tries: int(s.tries)})
	}
	next = clock.Never
	if len(a.mu.heap) > 0 {
		next = a.mu.heap[0].at
	}
	return batch, next
}

// End ends a removal with an outcome, and notifies its armer. The key's successor is armed, even if
// it has the same value: the item may have been written again after the removal.
func (a *Set) End(r Removal, how Outcome) {
	a.mu.Lock()
	if m, ok := r.Armer.(RememberingArmer); ok {
		m.Remember(r.Entry, how)
	}
	a.dropLocked(r.slot)
	a.armNextLocked(r.Key)
	a.mu.Unlock()
	r.notify(how)
}

// armNextLocked arms the key's successor and reports whether there is one.
func (a *Set) armNextLocked(k Key) bool {
	e, found := a.mu.next[k]
	if found {
		delete(a.mu.next, k)
		a.addLocked(e)
	}
	return found
}

// Retry lets a removal rest before the next attempt. One that was replaced or disarmed meanwhile
// ends as replaced.
func (a *Set) Retry(r Removal, after time.Duration) {
	if !a.rest(r, after) {
		r.notify(Replaced)
	}
}

func (a *Set) rest(r Removal, after time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.at(r.slot)
	if _, found := a.mu.next[r.Key]; found || s.gone {
		a.dropLocked(r.slot)
		a.armNextLocked(r.Key)
		return false
	}
	s.state = isResting
	s.tries = min(s.tries, math.MaxInt16-1) + 1
	until := a.elapsed() + after
	at, _ := slices.BinarySearchFunc(a.mu.resting, until, func(r resting, t time.Duration) int { return int(r.until - t) })
	a.mu.resting = slices.Insert(a.mu.resting, at, resting{until, r.slot, r.Key})
	if at == 0 {
		a.alarmLocked()
	}
	return true
}

// Has reports whether an equal entry is armed: of the same key, deadline and armer.
func (a *Set) Has(e Entry) bool {
	e = e.Lean()
	a.mu.Lock()
	defer a.mu.Unlock()
	if after, found := a.mu.next[e.Key]; found {
		return after == e
	}
	i, found := a.slotLocked(e.Key)
	return found && !a.at(i).gone && a.at(i).entry() == e
}

// Deadline returns the deadline of the key's entry, unless that was disarmed while it was taken.
func (a *Set) Deadline(k Key) (at int64, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, found := a.slotLocked(k)
	if !found || a.at(i).gone {
		return 0, false
	}
	return a.at(i).at, true
}

// Pending returns the earliest unfinished deadline of an armer; clock.Never if there is none. It
// visits all entries.
func (a *Set) Pending(by Armer) int64 {
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
		if e.Armer == by {
			first = min(first, e.At)
		}
	}
	return first
}

// awakeLocked makes the slots wait again whose rest is over.
func (a *Set) awakeLocked(now int64) {
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
func (a *Set) alarmLocked() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if len(a.mu.resting) > 0 {
		a.timer = clock.AfterFunc(max(a.mu.resting[0].until-a.elapsed(), 0), a.Nudge)
	}
}

// Stop stops the timer that wakes the pump at the end of a rest.
func (a *Set) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// Next returns the earliest deadline that waits; clock.Never if there is none.
func (a *Set) Next() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.mu.heap) == 0 {
		return clock.Never
	}
	return a.mu.heap[0].at
}

// Len returns the number of entries, without successors.
func (a *Set) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.byKey.n
}

// Tally counts the entries that are due at now, and those of each minute from then on. It also
// returns the earliest due deadline, and the next one that is not due; clock.Never: none. It locks
// the set only for a page at a time.
func (a *Set) Tally(now int64, upcoming []int64) (due int, oldest, next int64) {
	oldest, next = clock.Never, clock.Never
	for page := 0; ; page++ {
		a.mu.Lock()
		if page >= len(a.mu.slots) {
			a.mu.Unlock()
			return due, oldest, next
		}
		for i := range a.mu.slots[page] {
			slot := &a.mu.slots[page][i]
			switch {
			case slot.key == "":
			case slot.at <= now:
				due++
				oldest = min(oldest, slot.at)
			default:
				next = min(next, slot.at)
				if minute := (slot.at - now) / 60_000; minute < int64(len(upcoming)) {
					upcoming[minute]++
				}
			}
		}
		a.mu.Unlock()
	}
}
