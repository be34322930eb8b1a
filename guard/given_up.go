package guard

import (
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// givenUp remembers the removals that the endpoint or the archive has rejected. Strategies find
// such items again with each pass, and guard leaves each alone for a while: a minute after the
// first rejection, then twice as long each time, up to givenUpMost.
type givenUp struct {
	seed maphash.Seed
	most int
	mu   struct {
		sync.Mutex
		all   map[uint64]setback // by item and deadline
		swept int64              // when room was made last, ms by the local clock
	}
}

// setback is the state of a removal that was abandoned.
type setback struct {
	until int64 // ms by the local clock
	pause time.Duration
}

const (
	givenUpFirst = time.Minute
	givenUpMost  = 30 * time.Minute
	givenUpSweep = time.Minute // between two passes over all of them that make room
	// entries, some 5 MB; a removal beyond that is tried whenever it is found
	givenUpKept = 100_000
)

func newGivenUp() *givenUp {
	g := &givenUp{seed: maphash.MakeSeed(), most: givenUpKept}
	g.mu.all = map[uint64]setback{}
	return g
}

// hashOf returns a hash of a removal. An item that is renewed, or written again, has another.
func hashOf(seed maphash.Seed, e armed.Entry) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, part := range []string{string(e.Key), strconv.FormatInt(e.At, 10), e.Text(), e.Version} {
		maphash.WriteComparable(&h, part)
	}
	return h.Sum64()
}

// rests reports whether a removal is left alone for now.
func (g *givenUp) rests(e armed.Entry, now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mu.all) == 0 {
		return false
	}
	s, has := g.mu.all[hashOf(g.seed, e)]
	return has && now < s.until
}

// has reports whether a removal was rejected, however long ago.
func (g *givenUp) has(e armed.Entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mu.all) == 0 {
		return false
	}
	_, has := g.mu.all[hashOf(g.seed, e)]
	return has
}

// add records a rejected attempt.
func (g *givenUp) add(e armed.Entry, now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hash := hashOf(g.seed, e)
	s, has := g.mu.all[hash]
	if !has {
		if g.forgetLocked(now); len(g.mu.all) >= g.most {
			return
		}
	}
	s.pause = min(max(2*s.pause, givenUpFirst), givenUpMost)
	s.until = now + s.pause.Milliseconds()
	g.mu.all[hash] = s
}

// end forgets a removal, because it has succeeded or was refused.
func (g *givenUp) end(e armed.Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mu.all) > 0 {
		delete(g.mu.all, hashOf(g.seed, e))
	}
}

// forgetLocked makes room, now and then: an item that was not found again for long is gone.
func (g *givenUp) forgetLocked(now int64) {
	if len(g.mu.all) < g.most || g.mu.swept != 0 && now >= g.mu.swept && now-g.mu.swept < givenUpSweep.Milliseconds() {
		return
	}
	g.mu.swept = now
	for hash, s := range g.mu.all {
		if now-s.until > givenUpMost.Milliseconds() {
			delete(g.mu.all, hash)
		}
	}
}

// any reports whether any rejected removal is remembered, however old.
func (g *givenUp) any() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.mu.all) > 0
}

// count returns the number of rejected removals, without those that no strategy has found again for
// givenUpMost: their items are probably gone.
func (g *givenUp) count(now int64) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.mu.all {
		if now-s.until <= givenUpMost.Milliseconds() {
			n++
		}
	}
	return n
}

// withoutResting ends the removals that were rejected a moment ago, and returns the others.
func (g *Guard) withoutResting(batch []armed.Removal) []armed.Removal {
	now := g.local.Millis()
	others := batch[:0]
	for _, f := range batch {
		if g.given.rests(f.Entry, now) {
			g.end(f, armed.Failed)
			continue
		}
		others = append(others, f)
	}
	return others
}
