package guard

import (
	"context"
	"sort"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/index"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Look returns the state of guarding a table. It writes nothing. It counts the deadlines of the
// next minutes, at most LookMinutes.
func Look(ctx context.Context, o Options, minutes int) (*Status, error) {
	g, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := g.prepare(ctx); err != nil {
		return nil, err
	}
	s := &Status{Table: o.Table, Attribute: g.o.Attribute, Created: g.table.Created.UTC(), At: g.shownNow(), Workers: []Worker{}, Shares: []Share{}}
	minutes = min(max(minutes, 0), LookMinutes)
	if err := g.lookAtWorkers(ctx, s); err != nil {
		return nil, g.atStart("Query of "+g.o.Tables.Leases, err)
	}
	if err := g.lookAtShares(ctx, s); err != nil {
		return nil, g.atStart("Query of "+g.o.Tables.Leases, err)
	}
	if err := g.lookAhead(ctx, s, minutes); err != nil {
		return nil, g.atStart("Query", err)
	}
	return s, nil
}

func (g *Guard) lookAtWorkers(ctx context.Context, s *Status) error {
	rows, err := lease.New(g.db, g.statusName(), lease.Options{Table: g.leasesTable()}).Rows(ctx)
	for _, r := range rows {
		if w, ok := readWorker(r.Checkpoint); ok && s.At.Sub(w.At) <= reportForget && !w.At.Before(s.Created.Add(-time.Second)) {
			s.Workers = append(s.Workers, w)
		}
	}
	sort.Slice(s.Workers, func(i, j int) bool { return s.Workers[i].Name < s.Workers[j].Name })
	return err
}

// lookAtShares reads the leases of all strategies.
func (g *Guard) lookAtShares(ctx context.Context, s *Status) error {
	for _, kind := range []string{"stream", "partitions", "scan", "index", "schedule"} {
		share := Share{Of: kind}
		for _, consumer := range g.consumers(kind) {
			rows, err := lease.New(g.db, consumer, lease.Options{Table: g.leasesTable()}).Rows(ctx)
			if err != nil {
				return err
			}
			for shard, r := range rows {
				if !stream.IsShare(shard) || r.Checkpoint == lease.Done || shard == index.LayoutRow {
					continue
				}
				share.Leases = append(share.Leases, leaseStatus(shard, r))
			}
		}
		sort.Slice(share.Leases, func(i, j int) bool { return share.Leases[i].Name < share.Leases[j].Name })
		if len(share.Leases) > 0 {
			s.Shares = append(s.Shares, share)
		}
	}
	return nil
}

func leaseStatus(name string, r lease.Row) LeaseStatus {
	l := LeaseStatus{Name: name, Owner: r.Owner, Term: r.Term}
	if at, ok := index.ReadWatermark(r.Checkpoint); ok && at > 1e12 && at < table.SecondsMax*1000 {
		l.Watermark = time.UnixMilli(at).UTC()
	} else {
		l.Checkpoint = r.Checkpoint
	}
	return l
}

// lookAhead counts the due and the upcoming deadlines: those that a strategy has stored, else those
// that the workers have armed.
func (g *Guard) lookAhead(ctx context.Context, s *Status, minutes int) error {
	now := s.At.UnixMilli()
	c, err := stream.Count(ctx, g.env(), g.localDeadlines(), now, minutes)
	if c == nil && err == nil {
		c, err = index.Count(ctx, g.env(), g.indexOptions(), now, minutes)
	}
	if err != nil {
		return err
	}
	if c != nil {
		s.Backlog, s.Upcoming = &Backlog{Items: c.Due}, c.Upcoming
		if c.Due > 0 {
			s.Backlog.Oldest = time.UnixMilli(c.Oldest).UTC()
		}
		return nil
	}
	s.Upcoming = make([]int64, minutes)
	for _, w := range s.Workers {
		shift := int(s.At.Sub(w.At) / time.Minute)
		for i, n := range w.Upcoming {
			if i-shift >= 0 && i-shift < minutes {
				s.Upcoming[i-shift] += n
			}
		}
	}
	return nil
}
