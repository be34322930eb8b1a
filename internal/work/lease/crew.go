package lease

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"time"
)

// Crew is the workers of one consumer. Each has a lease of its own, whose beats tell the others that it is there.
type Crew struct {
	leases   *Leases
	presence *Lease // nil: not taken yet
	beat     int64  // the last one of all its leases
}

// crewPrefix begins the shard of a worker's own lease.
const crewPrefix = "worker/"

// IsCrew reports whether a row is a worker's own lease.
func IsCrew(shard string) bool { return strings.HasPrefix(shard, crewPrefix) }

// NewCrew gives the crew that works with the same leases.
func NewCrew(l *Leases) *Crew { return &Crew{leases: l} }

// Meet tells the others that this worker is there, and gives all that are, in order, from rows that were just read. Those of workers that have been silent for
// the duration of a lease are deleted, before anything of theirs is taken: from then on they cannot renew it without learning that. A worker that is alone tells nobody.
func (c *Crew) Meet(ctx context.Context, rows map[string]Row) ([]string, error) {
	me := c.leases.Owner()
	if c.leases.Exclusive() {
		return []string{me}, nil
	}
	if err := c.attend(ctx, rows); err != nil {
		return nil, err
	}
	workers := []string{me}
	for _, r := range rows {
		name, ok := strings.CutPrefix(r.Shard, crewPrefix)
		switch {
		case !ok || name == me:
		case !c.leases.Free(r):
			workers = append(workers, name)
		default:
			now, err := c.leases.forget(ctx, r)
			if err != nil {
				return nil, err
			}
			if now.Term != 0 { // it has come back: nothing of it is free
				c.leases.shown(now)
				workers = append(workers, name)
			}
		}
	}
	slices.Sort(workers)
	return workers, nil
}

// attend renews this worker's own lease, and with it all the others.
func (c *Crew) attend(ctx context.Context, rows map[string]Row) (err error) {
	if c.presence != nil {
		if err = c.presence.Beat(ctx); err == nil {
			c.leases.attended(c.presence.written(), true)
		}
		if !errors.Is(err, ErrLost) {
			return err
		}
	}
	if c.presence != nil {
		c.beat = c.presence.Row().Beat
	}
	row := rows[crewPrefix+c.leases.Owner()]
	row.Shard = crewPrefix + c.leases.Owner()
	if row.Term == 0 {
		row.Beat = c.beat // one who has forgotten this worker has to see that it is another row than the one that was silent
	}
	c.presence, err = c.leases.Take(ctx, row)
	switch {
	case err == nil:
		c.leases.attended(c.presence.written(), false)
	case errors.Is(err, ErrLost):
		err = nil // the row has changed since it was read: next time
	}
	return err
}

// Leave tells the others that this worker ends.
func (c *Crew) Leave(ctx context.Context) {
	if c.presence == nil {
		return
	}
	_ = c.leases.Forget(ctx, c.presence.Row()) // else it is forgotten when it has been silent for long enough
}

// written is when the last write of the row that succeeded began.
func (h *Lease) written() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.renewed
}

// Row is the lease as it was last written.
func (h *Lease) Row() Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row
}

// Share is how many of n shards a worker is to have: all have as many, but for one more that the first ones in order have where n cannot be divided.
func Share(n int, workers []string, me string) int {
	share := n / len(workers)
	if slices.Index(workers, me) < n%len(workers) {
		share++
	}
	return share
}

// Shuffled gives rows in an order that is the same every time and another for each worker, so that workers that start at once do not all reach for the same
// shards.
func Shuffled(rows []Row, me string) []Row {
	rank := func(r Row) uint64 {
		h := fnv.New64a()
		h.Write([]byte(me))
		h.Write([]byte(r.Shard))
		return h.Sum64()
	}
	out := slices.Clone(rows)
	sort.Slice(out, func(i, j int) bool {
		if x, y := rank(out[i]), rank(out[j]); x != y {
			return x < y
		}
		return out[i].Shard < out[j].Shard
	})
	return out
}
