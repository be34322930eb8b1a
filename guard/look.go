package guard

import (
	"context"
	"errors"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	s := &Status{Table: o.Table, Attribute: g.o.Attribute, At: g.shownNow(), Workers: []Worker{}, Shares: []Share{}}
	minutes = min(max(minutes, 0), LookMinutes)
	if err := g.lookAtWorkers(ctx, s); err != nil {
		return nil, g.atStart("Query of "+lease.TableName, err)
	}
	if err := g.lookAtShares(ctx, s); err != nil {
		return nil, g.atStart("Query of "+lease.TableName, err)
	}
	if err := g.lookAhead(ctx, s, minutes); err != nil {
		return nil, g.atStart("Query", err)
	}
	return s, nil
}

func (g *Guard) lookAtWorkers(ctx context.Context, s *Status) error {
	rows, err := lease.New(g.db, g.statusName(), lease.Options{}).Rows(ctx)
	for _, r := range rows {
		if w, ok := readWorker(r.Checkpoint); ok {
			s.Workers = append(s.Workers, w)
		}
	}
	sort.Slice(s.Workers, func(i, j int) bool { return s.Workers[i].Name < s.Workers[j].Name })
	return err
}

// lookAtShares reads the leases of all strategies.
func (g *Guard) lookAtShares(ctx context.Context, s *Status) error {
	for _, name := range []string{"stream", "partitions", "scan", "index", "schedule"} {
		rows, err := lease.New(g.db, "guard/"+g.table.label()+"/"+name, lease.Options{}).Rows(ctx)
		if err != nil {
			return err
		}
		share := Share{Of: name}
		for shard, r := range rows {
			if strings.HasPrefix(shard, "worker/") || r.Checkpoint == lease.Done || shard == layoutName {
				continue
			}
			share.Leases = append(share.Leases, leaseStatus(shard, r))
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
	if at, ok := readWatermark(r.Checkpoint); ok && at > 1e12 && at < secondsMax*1000 {
		l.Watermark = time.UnixMilli(at).UTC()
	} else {
		l.Checkpoint = r.Checkpoint
	}
	return l
}

// lookAhead counts the due and the upcoming deadlines.
func (g *Guard) lookAhead(ctx context.Context, s *Status, minutes int) error {
	s.Upcoming = make([]int64, minutes)
	known, err := g.lookIntoDeadlines(ctx, s)
	if !known && err == nil {
		known, err = g.lookIntoIndex(ctx, s)
	}
	if known || err != nil {
		return err
	}
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

// lookIntoIndex counts in the index, if a worker sweeps one or could.
func (g *Guard) lookIntoIndex(ctx context.Context, s *Status) (known bool, err error) {
	if !g.hasWindowIndex() {
		return false, nil
	}
	x := newIndexing(g)
	var why *Problem
	if x.index, why = g.table.expirationIndex(g.o); why != nil {
		return false, nil
	}
	if known, err = x.tryLayout(ctx, g.shares(Index)); err != nil || !known {
		var p *Problem
		if errors.As(err, &p) && p.Code == Misconfigured {
			return false, nil // the number of shards is unknown, which is no error here
		}
		return false, err
	}
	now := s.At.Unix()
	s.Backlog = &Backlog{}
	from := int64(0)
	if x.layout.windows() {
		from = now - pastWindows*x.layout.Granularity
	}
	for _, shard := range x.layout.shards() {
		n, oldest, err := x.count(ctx, shard, from, now)
		if err != nil {
			return false, err
		}
		s.Backlog.add(n, oldest*1000)
	}
	ahead := len(s.Upcoming)
	perMinute := len(x.layout.shards())
	if x.layout.windows() {
		perMinute *= 1 + int(60/x.layout.Granularity)
	}
	ahead = min(ahead, max(lookQueries/perMinute, 1))
	s.Upcoming = s.Upcoming[:ahead]
	for i := range s.Upcoming {
		low := now + int64(i)*60
		for _, shard := range x.layout.shards() {
			n, _, err := x.count(ctx, shard, low+1, low+60)
			if err != nil {
				return false, err
			}
			s.Upcoming[i] += n
		}
	}
	return true, nil
}

// count counts the items of a shard with TTLs from low to high, both in epoch seconds and included.
// It also returns the first TTL.
func (x *indexing) count(ctx context.Context, shard string, low, high int64) (n, first int64, err error) {
	for partition := range x.layout.partitions(shard, low, high) {
		in := x.query(partition, low, high)
		if n == 0 { // the first one is looked at
			one := *in
			one.Limit = aws.Int32(1)
			out, err := x.g.db.Query(ctx, &one)
			if err != nil {
				return 0, 0, err
			}
			if len(out.Items) == 0 {
				continue
			}
			if _, at, err := deadline(out.Items[0][x.g.o.Attribute]); err == nil {
				first = at / 1000
			}
		}
		in.Select = types.SelectCount
		for more := true; more; more = in.ExclusiveStartKey != nil {
			out, err := x.g.db.Query(ctx, in)
			if err != nil {
				return 0, 0, err
			}
			n += int64(out.Count)
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
	return n, first, nil
}
