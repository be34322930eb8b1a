package stream

import (
	"hash/maphash"
	"sync"

	"github.com/mayflydb/mayfly/guard/internal/armed"
)

// ended remembers the last rows whose attempts have ended here: the item was removed, or no longer
// had the deadline. That is final for the record that wrote the row, even if the row is found once
// more, or the record is read again. A scan's rows are not remembered, since a later scan writes the
// same row.
//
// It holds hashes in two generations, so it needs at most 2 MB. A forgotten row costs one refused
// attempt.
type ended struct {
	mu       sync.Mutex
	seed     maphash.Seed
	now, old map[uint64]struct{}
}

// endedMost is how many rows the last generation has.
const endedMost = 32_768

func newEnded() *ended { return &ended{seed: maphash.MakeSeed(), now: map[uint64]struct{}{}} }

func (e *ended) hash(r *row) uint64 {
	return maphash.Comparable(e.seed, armed.Entry{Key: r.key, At: r.at}) ^ uint64(r.tag)
}

func (e *ended) add(r *row) {
	if r.tag == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.now) >= endedMost {
		e.now, e.old = map[uint64]struct{}{}, e.now
	}
	e.now[e.hash(r)] = struct{}{}
}

func (e *ended) has(r *row) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.hash(r)
	_, now := e.now[h]
	_, old := e.old[h]
	return now || old
}
