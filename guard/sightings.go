package guard

import (
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	sightRemoved = 60_000 // ms for which an index that still shows a removed item is not believed
	sightRefused = 10_000 // the same of an item that was renewed or deleted
	sightFailed  = 60_000 // until a rejected removal is tried again
	sightsMost   = 1_000_000
)

// sightings are the deadlines that one reader of an index has armed. It finds the same deadline
// repeatedly, since sweeps overlap and an index shows an item for a while after its removal.
// sightings arms it once. The earliest unfinished one limits the watermark.
type sightings struct {
	g    *Guard
	most int         // maximum of over
	news atomic.Bool // something was armed since this was last false
	mu   struct {
		sync.Mutex
		over map[key]sighting // deadlines that have ended lately; armed has the others
	}
}

// sighting is a deadline that has ended, and is not armed again before an instant.
type sighting struct {
	armed.Entry
	until int64
}

func newSightings(g *Guard) *sightings {
	s := &sightings{g: g, most: sightsMost}
	s.mu.over = map[key]sighting{}
	return s
}

// see arms an entry that is news.
func (s *sightings) see(e armed.Entry) {
	e = e.Lean()
	e.Armer = s
	if s.g.armed.Has(e) {
		return
	}
	s.mu.Lock()
	before, has := s.mu.over[e.Key]
	if has && before.Entry == e && s.g.now() < before.until {
		s.mu.Unlock()
		return
	}
	delete(s.mu.over, e.Key)
	s.mu.Unlock()
	s.news.Store(true)
	s.g.arm(e)
}

// Finished implements armed.Armer. There is nothing left to do.
func (s *sightings) Finished(armed.Entry, armed.Outcome) {}

// Remember implements armed.RememberingArmer.
func (s *sightings) Remember(e armed.Entry, how armed.Outcome) {
	until := s.g.now()
	switch how {
	case armed.Removed:
		until += sightRemoved
	case armed.Refused:
		until += sightRefused
	case armed.Failed:
		until += sightFailed
	case armed.Spared:
		until = clock.Never // a dry run reports it once
	case armed.Replaced:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// forget any other: the next attempt at it is refused, or a dry run reports it twice
	if len(s.mu.over) >= s.most {
		for k := range s.mu.over {
			delete(s.mu.over, k)
			break
		}
	}
	s.mu.over[e.Key] = sighting{e.Lean(), until}
}

// pending is the earliest deadline that has not ended; clock.Never: none.
func (s *sightings) pending() int64 { return s.g.armed.Pending(s) }

// forget forgets deadlines that ended long ago.
func (s *sightings) forget() {
	now := s.g.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, one := range s.mu.over {
		if one.until <= now {
			delete(s.mu.over, k)
		}
	}
}
