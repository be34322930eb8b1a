package consume

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	stallAfter = 2 * time.Minute // default of Patience
	// attempts that must have failed: one list of shards may omit the newest ones
	stallTries = 3

	listOfShards = "" // the part of a stream that is not a shard
)

// errNoShard is the reason of a stall: the stream is enabled, but each listed shard is finished.
var errNoShard = errors.New("the stream is enabled, but all its shards are closed and none has a child")

// stalls remembers since when parts of a stream cannot be followed: its list of shards, or a shard.
type stalls struct {
	patience time.Duration
	stalled  func(reason error) // nil: nothing is remembered
	elapsed  clock.Elapsed
	mu       sync.Mutex
	parts    map[string]*stall // guarded by mu
}

// stall is a series of failed attempts.
type stall struct {
	since    time.Duration
	tries    int
	reported bool
}

func newStalls(c *Consumer) *stalls {
	return &stalls{patience: cmp.Or(c.Patience, stallAfter), stalled: c.Stalled, elapsed: clock.Stopwatch(), parts: map[string]*stall{}}
}

// note notes the outcome of an attempt at a part. It reports the first stall, and the end of the
// last one.
func (s *stalls) note(part string, err error) {
	if s.stalled == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[part]
	switch {
	case err == nil && p == nil:
		return
	case err == nil:
		if delete(s.parts, part); p.reported && !s.anyLocked() {
			s.stalled(nil)
		}
		return
	case p == nil:
		p = &stall{since: s.elapsed()}
		s.parts[part] = p
	}
	p.tries++
	if p.reported || p.tries < stallTries || s.elapsed()-p.since < s.patience {
		return
	}
	if !s.anyLocked() {
		s.stalled(err)
	}
	p.reported = true
}

func (s *stalls) anyLocked() bool {
	for _, p := range s.parts {
		if p.reported {
			return true
		}
	}
	return false
}
