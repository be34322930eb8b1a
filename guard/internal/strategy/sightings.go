package strategy

import (
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	// SightRemoved is the time in ms for which Sightings ignore a removed item that an index still
	// shows.
	SightRemoved = 60_000
	sightRefused = 10_000 // the same for an item that was renewed or deleted
	sightFailed  = 60_000 // until a rejected removal is tried again
	sightsMost   = 1_000_000
)

// Sightings are the deadlines that one reader of an index has armed. It finds the same deadline
// repeatedly, since sweeps overlap and an index shows an item for a while after its removal.
// Sightings arm it once. The earliest unfinished one limits the watermark.
type Sightings struct {
	*Env
	most int // maximum of over
	// News is true after something was armed.
	News atomic.Bool
	// seeing is held from the look at an entry until it is armed, since several readers may find it
	// at once. It is not mu: Remember locks that while the set is locked.
	seeing sync.Mutex
	mu     struct {
		sync.Mutex
		over map[armed.Key]sighting // deadlines that have ended lately; armed has the others
	}
}

// sighting is a deadline that has ended, and is not armed again before an instant.
type sighting struct {
	armed.Entry
	until int64
}

// NewSightings returns the sightings of a reader.
func (e *Env) NewSightings() *Sightings {
	s := &Sightings{Env: e, most: sightsMost}
	s.mu.over = map[armed.Key]sighting{}
	return s
}

// See arms an entry, unless it is armed already, or has ended and must not be armed again yet.
func (s *Sightings) See(e armed.Entry) {
	e = e.Lean()
	e.Armer = s
	s.seeing.Lock()
	defer s.seeing.Unlock()
	if s.Armed.Has(e) {
		return
	}
	s.mu.Lock()
	before, has := s.mu.over[e.Key]
	if has && before.Entry == e && s.Now() < before.until {
		s.mu.Unlock()
		return
	}
	delete(s.mu.over, e.Key)
	s.mu.Unlock()
	s.News.Store(true)
	s.Arm(e)
}

// Finished implements armed.Armer. There is nothing left to do.
func (s *Sightings) Finished(armed.Entry, armed.Outcome) {}

// Remember implements armed.RememberingArmer. The outcome decides for how long the deadline is not
// armed again.
func (s *Sightings) Remember(e armed.Entry, how armed.Outcome) {
	until := s.Now()
	switch how {
	case armed.Removed:
		until += SightRemoved
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

// Pending returns the earliest deadline that has not ended; clock.Never: none.
func (s *Sightings) Pending() int64 { return s.Armed.Pending(s) }

// Forget forgets the ended deadlines that may be armed again. Call it now and then.
func (s *Sightings) Forget() {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, one := range s.mu.over {
		if one.until <= now {
			delete(s.mu.over, k)
		}
	}
}
