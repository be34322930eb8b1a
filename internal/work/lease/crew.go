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

// Crew is the workers of one consumer. Each has a lease of its own, whose beats show the others
// that it is alive.
type Crew struct {
	leases   *Leases
	presence *Lease // nil: not taken yet
	beat     int64  // the greatest beat that its own leases may have had so far
}

// crewPrefix begins the shard of a worker's own lease.
const crewPrefix = "worker/"

// IsCrew reports whether a row is a worker's own lease.
func IsCrew(shard string) bool { return strings.HasPrefix(shard, crewPrefix) }

// NewCrew returns the crew of the workers that share the leases.
func NewCrew(l *Leases) *Crew { return &Crew{leases: l} }

// Meet announces this worker, and returns all workers in order, from rows that were just read. It
// deletes the rows of workers that were silent for the duration of a lease before anything of
// theirs is taken: then they cannot renew that row without noticing. An exclusive worker announces
// nothing.
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
			if now.Term != 0 { // the worker is back: none of its leases is free
				c.leases.noteChange(now)
				workers = append(workers, name)
			}
		}
	}
	slices.Sort(workers)
	return workers, nil
}

// attend renews this worker's own lease, which renews all its others.
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
		c.beat = max(c.beat, c.presence.greatestBeat())
	}
	row := rows[crewPrefix+c.leases.Owner()]
	row.Shard = crewPrefix + c.leases.Owner()
	if row.Term == 0 {
		row.Beat = c.beat // a worker that has deleted the row must see that this is a new one
	}
	c.beat = max(c.beat, row.Beat) + 1 // Take writes it, and may get no answer
	c.presence, err = c.leases.Take(ctx, row)
	switch {
	case err == nil:
		c.leases.attended(c.presence.written(), false)
	case errors.Is(err, ErrLost):
		err = nil // the row has changed since it was read: next time
	}
	return err
}

// Leave deletes this worker's own lease.
func (c *Crew) Leave(ctx context.Context) {
	if c.presence == nil {
		return
	}
	_ = c.leases.Forget(ctx, c.presence.Row()) // otherwise the others delete it after its silence
}

// written returns the time at which the last successful write of the row began.
func (h *Lease) written() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.renewed
}

// greatestBeat returns the greatest beat that the row may have: a write without an answer may have been
// executed.
func (h *Lease) greatestBeat() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row.Beat + h.mu.failed
}

// Row returns the lease as it was last written.
func (h *Lease) Row() Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.row
}

// Share returns a worker's part of n shards. Parts are equal, except that the first workers in
// order have one more if n cannot be divided.
func Share(n int, workers []string, me string) int {
	share := n / len(workers)
	if slices.Index(workers, me) < n%len(workers) {
		share++
	}
	return share
}

// Shuffled returns the rows in a fixed order that differs by worker, so that workers that start at
// once do not all try the same shards.
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

// mixed orders leases so that each part of the list has about as many of each kind, the part of a
// name before the slash: "sweep" or "patrol". Otherwise a worker may have all leases of the kind that
// is work. Leases of one kind keep their order, and names without a slash are of one kind.
func mixed[T any](all []T, name func(T) string) []T {
	kind := func(v T) string {
		kind, _, has := strings.Cut(name(v), "/")
		if !has {
			return ""
		}
		return kind
	}
	counts := map[string]int{}
	for _, v := range all {
		counts[kind(v)]++
	}
	type place struct {
		of   T
		at   float64 // 0 to 1
		kind string
	}
	places, seen := make([]place, len(all)), map[string]int{}
	for i, v := range all {
		k := kind(v)
		places[i] = place{v, (float64(seen[k]) + 0.5) / float64(counts[k]), k}
		seen[k]++
	}
	sort.SliceStable(places, func(i, j int) bool {
		if places[i].at != places[j].at {
			return places[i].at < places[j].at
		}
		return places[i].kind > places[j].kind
	})
	out := make([]T, len(all))
	for i, p := range places {
		out[i] = p.of
	}
	return out
}
