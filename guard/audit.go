package guard

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/audit"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// auditable is a strategy that learns of deadlines from records or an index, which may be
// incomplete. A scan of the table audits it.
type auditable interface {
	// CaughtUp reports whether the strategy has found all that came due before it ran. within is how
	// long it may take to learn of a deadline after its write.
	CaughtUp(ctx context.Context) (within time.Duration, ok bool, err error)
}

const (
	// a worker whose oldest due deadline is so late has a backlog: others may take a missed item
	backlogLeast = time.Minute
	// a worker that has not reported for so long may have ended
	reportFresh = 3 * reportEvery
)

// audit audits a strategy until ctx is done, unless the audit is off. Guard does without it if the
// endpoint forbids it.
func (g *Guard) audit(ctx context.Context, s runner) {
	audited, is := s.(auditable)
	if !is || g.o.AuditRCU < 0 {
		return
	}
	units := g.o.AuditRCU
	if g.o.MaxRCU > 0 {
		units = min(units, g.o.MaxRCU)
	}
	e := g.env()
	e.Leases.Exclusive = g.alone()
	if g.localDeadlines() != nil { // its table has the usual name
		e.Leases.Table = ensure.Settings{}
	}
	a := audit.New(e, audit.Options{
		Units: units, Every: g.o.AuditEvery, Leases: cmp.Or(g.localDeadlines(), g.db),
		Settled: func(ctx context.Context) (time.Duration, bool, error) { return g.settled(ctx, audited) },
		Known:   func(e armed.Entry) bool { return g.given.has(e) || g.spared.has(e) },
	})
	if err := a.Run(optional(ctx)); err != nil && ctx.Err() == nil {
		g.log.Warn("the audit is off until guard starts again: nothing finds items that the strategy misses", "table", g.o.Table, "error", err)
	}
}

// alone reports whether no other worker guards the table.
func (g *Guard) alone() bool { return g.o.Alone || g.localDeadlines() != nil }

// settled reports whether an overdue item that this worker does not know was missed: the strategy
// has caught up, no problem is open, and no worker has a backlog.
func (g *Guard) settled(ctx context.Context, s auditable) (within time.Duration, ok bool, err error) {
	if len(g.Problems()) > 0 || g.spared.full() {
		return 0, false, nil
	}
	now := g.now()
	if due, oldest, _ := g.armed.Tally(now, nil); due > 0 && now-oldest > backlogLeast.Milliseconds() {
		return 0, false, nil
	}
	if !g.alone() {
		rows, err := lease.New(g.db, g.statusName(), lease.Options{Table: g.leasesTable()}).Rows(ctx)
		if err != nil {
			return 0, false, err
		}
		for _, r := range rows {
			w, readable := readWorker(r.Checkpoint)
			other := readable && w.Name != g.o.Owner && g.shownNow().Sub(w.At) < reportFresh
			// in a dry run, only that worker knows the items that it has spared
			if other && (g.o.DryRun || w.Overdue > backlogLeast.Milliseconds()) {
				return 0, false, nil
			}
		}
	}
	return s.CaughtUp(ctx)
}

// missed reports an item that the audit has removed, or would have in a dry run.
func (g *Guard) missed(e armed.Entry) {
	g.observe(g.about(Missed, e.Key))
	if g.passing.now("missed", g.local.Millis()) {
		g.log.Warn("the audit found an overdue item that the strategy did not know of; there may be more", "table", g.o.Table, "key", g.table.KeyJSON(e.Key),
			"deadline", time.UnixMilli(e.At).UTC(), "strategy", string(g.readiness.strategy))
	}
}

// sparedMost is the number of spared items that a dry run remembers, some 40 MB.
const sparedMost = 1_000_000

// spared remembers the items that a dry run has reported: they stay overdue, and the strategy knew
// them.
type spared struct {
	mu   sync.Mutex
	seed maphash.Seed        // guarded by mu, as is all
	all  map[uint64]struct{} // hashes of items with their deadlines; nil: none yet
}

func (s *spared) add(e armed.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.seed, s.all = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	if len(s.all) < sparedMost {
		s.all[hashOf(s.seed, e)] = struct{}{}
	}
}

func (s *spared) has(e armed.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		return false
	}
	_, has := s.all[hashOf(s.seed, e)]
	return has
}

// full reports whether items may have been spared that are not remembered.
func (s *spared) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) >= sparedMost
}
