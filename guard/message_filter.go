package guard

import (
	"hash/maphash"
	"sync"
	"time"
)

// messageFilter limits repeated messages: it accepts each one once for a while, however often it
// occurs and however many there are. A while is between half of filterFor and all of it.
type messageFilter struct {
	seed maphash.Seed
	most int // messages that are remembered of each half of a while
	mu   struct {
		sync.Mutex
		// of this half of a while and the one before: hashes, since keys can be long
		now, before map[uint64]struct{}
		turned      int64 // when this half began, ms by a local clock
		full        bool  // since then
	}
}

const (
	filterFor  = 24 * time.Hour
	filterMost = 100_000 // some 5 MB
)

func newMessageFilter() *messageFilter {
	return &messageFilter{seed: maphash.MakeSeed(), most: filterMost}
}

// first reports whether a message is accepted: the first of its text in a while. last is true if
// further messages are rejected for now, because no more can be remembered.
func (t *messageFilter) first(what string, now int64) (first, last bool) {
	hash := maphash.String(t.seed, what)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.now == nil || now-t.mu.turned >= (filterFor/2).Milliseconds() || now < t.mu.turned {
		t.mu.now, t.mu.before, t.mu.turned, t.mu.full = map[uint64]struct{}{}, t.mu.now, now, false
	}
	_, inNow := t.mu.now[hash]
	_, inBefore := t.mu.before[hash]
	if inNow || inBefore || t.mu.full {
		return false, false
	}
	t.mu.now[hash] = struct{}{}
	t.mu.full = len(t.mu.now) >= t.most
	return true, t.mu.full
}

// oncePerMinute limits messages about causes that affect many removals: one per cause and minute.
type oncePerMinute struct {
	mu struct {
		sync.Mutex
		at map[string]int64
	}
}

const (
	filterEach = time.Minute
	causesMost = 1_000 // causes
)

func (s *oncePerMinute) now(what string, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, has := s.mu.at[what]
	if has && now-last < filterEach.Milliseconds() && now >= last {
		return false
	}
	if s.mu.at == nil || len(s.mu.at) >= causesMost {
		s.mu.at = map[string]int64{}
	}
	s.mu.at[what] = now
	return true
}
