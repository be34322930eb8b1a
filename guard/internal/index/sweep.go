package index

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	// s before the present that every sweep repeats: an index lags its table, and items may be
	// written after their expiry
	overlap     = 5 * 60
	overlapMost = 16 // maximum number of repeated windows, if they are short
	// maximum number of windows to catch up; the patrol finds older deadlines
	catchUpMost = 10_000
	firstBack   = 86_400 // s that a first sweep reaches back
	// ms between two sweeps of all overdue deadlines in an index of shards
	healEvery    = 300_000
	shardsAtOnce = 8     // shards of one lease that are asked at the same time
	saveEvery    = 3_000 // ms between two checkpoints
	// ms between two checkpoints of a sweep that finds nothing: a crash repeats this much, which is
	// cheap
	markEvery = 60_000
	// room needed before a page is read: a page of a megabyte has few deadlines more
	roomLeast = 20_000
)

// sweeper sweeps some shards of an index again and again, under a lease. Its watermark, the lease's
// checkpoint, is an instant in ms: every deadline before it that the index has shown was removed,
// refused or rejected. After a crash the next sweep continues there.
type sweeper struct {
	*Strategy
	lease  *lease.Lease
	shards []string
	seen   *strategy.Sightings
	// ms: when the last sweep began. The index was queried for all deadlines before that, except for
	// those that catchUp still has to query
	swept  int64
	caught atomic.Int64 // ms: missed deadlines are caught up to it; clock.Never: all of them
	ahead  atomic.Int64 // ms: the last sweep has armed up to there
	// ms: the last sweep left deadlines from here on to the next, for lack of room; clock.Never:
	// none
	left   atomic.Int64
	saved  int64 // ms: when the checkpoint was written last
	healed int64 // ms: when all that is overdue was last asked for
}

// newSweeper returns a sweeper that still has to catch up from an instant until now.
func (x *Strategy) newSweeper(l *lease.Lease, shards []string, from, now int64) *sweeper {
	s := &sweeper{Strategy: x, lease: l, shards: shards, seen: x.NewSightings(), swept: now}
	s.caught.Store(min(from, now))
	s.ahead.Store(now)
	s.left.Store(clock.Never)
	return s
}

// armedUntil returns the instant before which all is armed that the index has shown.
func (s *sweeper) armedUntil() int64 { return min(s.caught.Load(), s.ahead.Load()) }

// run sweeps until ctx is done. It catches up from the watermark concurrently, so present deadlines
// are not delayed.
func (s *sweeper) run(ctx context.Context) error {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	now := s.swept
	var past sync.WaitGroup
	caughtUp := make(chan error, 1)
	past.Go(func() {
		err := s.catchUp(work, now)
		if err != nil {
			cancel()
		}
		caughtUp <- err
	})
	err := s.present(work)
	cancel()
	past.Wait()
	if e := <-caughtUp; e != nil && !errors.Is(e, context.Canceled) {
		err = e
	}
	s.save(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// present sweeps due and near deadlines, each period.
func (s *sweeper) present(ctx context.Context) error {
	period := s.o.Period.Milliseconds()
	for {
		now := s.Now()
		if err := s.once(ctx, now, now+2*period); err != nil {
			return err
		}
		if every := s.saveEvery(); now >= s.saved+every || now < s.saved {
			s.save(ctx)
		}
		s.seen.Forget()
		if err := s.Pass(ctx, now, period); err != nil {
			return err
		}
	}
}

// once asks for all deadlines from a while before the last sweep up to ahead, and arms them.
func (s *sweeper) once(ctx context.Context, now, ahead int64) error {
	if err := s.heal(ctx, now); err != nil {
		return err
	}
	// the endpoint's clock may have gone back
	low, high := min(s.swept, now)/1000-s.overlap(), table.WholeSeconds(ahead)
	// after a machine has slept for a year
	if s.layout.windows() {
		low = max(low, high-catchUpMost*s.layout.Granularity)
	}
	s.left.Store(clock.Never)
	if err := s.sweep(ctx, low, high, nil, nil); err != nil {
		return err
	}
	s.swept = now
	s.ahead.Store(min(ahead, s.left.Load()))
	return nil
}

// overlap returns how many seconds before the last sweep the next one begins.
func (s *sweeper) overlap() int64 {
	if s.layout.windows() {
		return min(overlap, overlapMost*s.layout.Granularity)
	}
	return overlap
}

// heal queries all overdue deadlines, however they were missed, if that is one query per shard.
func (s *sweeper) heal(ctx context.Context, now int64) error {
	if s.layout.windows() || s.caught.Load() != clock.Never || now < s.healed+healEvery {
		return nil
	}
	s.healed = now
	return s.sweep(ctx, 0, now/1000, nil, nil)
}

// catchUp queries the deadlines from the watermark up to an instant.
func (s *sweeper) catchUp(ctx context.Context, until int64) error {
	low := s.caught.Load()/1000 - s.overlap()
	if !s.layout.windows() {
		low = 0
		s.healed = until
	} else if least := until/1000 - catchUpMost*s.layout.Granularity; low < least {
		s.Log.Warn("the last sweep was long ago; the patrol finds older deadlines", "table", s.Table.Name, "from", time.Unix(least, 0).UTC())
		low = least
	}
	low, high, windows := max(low, 0), table.WholeSeconds(until), int64(0)
	if s.layout.windows() {
		windows = (windowOf(high, s.layout.length()).end-windowOf(low, s.layout.length()).end)/s.layout.Granularity + 1
	}
	part := s.missed.Part(windows, 0)
	defer part.Leave()
	err := s.sweep(ctx, low, high, func(end int64) { s.caught.Store(min(end*1000, until)) }, part)
	if err == nil {
		s.caught.Store(clock.Never)
		part.End()
	}
	return err
}

// sweep queries all shards for the deadlines from low to high, both in epoch seconds and included,
// and arms them. It calls through when all shards have finished the TTLs up to a second. It adds
// finished windows, or without windows items, to part, which may be nil.
func (s *sweeper) sweep(ctx context.Context, low, high int64, through func(end int64), part *strategy.Part) error {
	low = max(low, 0)
	if !s.layout.windows() || through == nil {
		return s.across(ctx, low, high, part)
	}
	for w := range windowsBetween(low, high, s.layout.length()) {
		if err := s.across(ctx, max(low, w.start+1), min(high, w.end), nil); err != nil {
			return err
		}
		through(w.end)
		part.Add(1)
	}
	return nil
}

// across sweeps the shards side by side.
func (s *sweeper) across(ctx context.Context, low, high int64, part *strategy.Part) error {
	return strategy.Parallel(ctx, len(s.shards), shardsAtOnce, func(ctx context.Context, i int) error { return s.shard(ctx, s.shards[i], low, high, part) })
}

// shard asks one shard, page by page.
func (s *sweeper) shard(ctx context.Context, shard string, low, high int64, part *strategy.Part) error {
	reached := low * 1000
	for partition := range s.layout.partitions(shard, low, high) {
		in := s.query(partition, low, high)
		s.Table.Project(&in.ProjectionExpression, in.ExpressionAttributeNames)
		for more := true; more; more = in.ExclusiveStartKey != nil {
			enough, err := s.awaitRoom(ctx, reached)
			if err != nil {
				return err
			}
			if enough {
				s.leave(reached)
				return nil
			}
			items, err := s.Query(ctx, in)
			if err != nil {
				return err
			}
			if part != nil {
				part.Add(len(items))
			}
			for _, item := range items {
				if e, ok := s.EntryOf(item); ok {
					s.seen.See(e)
					reached = e.At
				}
			}
		}
	}
	return nil
}

// leave records that the present sweep leaves out deadlines from an instant on.
func (s *sweeper) leave(at int64) {
	for left := s.left.Load(); at < left && !s.left.CompareAndSwap(left, at); left = s.left.Load() {
	}
}

// awaitRoom waits for room for a page of deadlines. enough is true if there is none, and the next
// deadlines may wait for the next sweep.
func (s *sweeper) awaitRoom(ctx context.Context, reached int64) (enough bool, err error) {
	if s.Room() < roomLeast && reached > s.Now()+s.o.Period.Milliseconds() {
		return true, nil
	}
	return false, s.AwaitRoom(ctx, roomLeast)
}

// watermark returns the instant at which a sweep continues after a crash. It reads the pending
// deadlines last: those armed meanwhile are later.
func (s *sweeper) watermark() int64 {
	mark, pending := min(s.caught.Load(), s.swept), s.seen.Pending()
	if !invariant.Injected(invariant.DoneEarly) {
		mark = min(mark, pending)
	}
	invariant.CheckUnless(mark <= pending, []invariant.Fault{invariant.DoneEarly}, "the watermark %d passes the unfinished deadline %d", mark, pending)
	return mark
}

// saveEvery returns the time in ms between two saves of the watermark: longer while the sweep finds
// nothing.
func (s *sweeper) saveEvery() int64 {
	if s.caught.Load() == clock.Never && s.seen.Pending() == clock.Never && !s.seen.News.Load() {
		return markEvery
	}
	return saveEvery
}

// save writes the watermark. If that fails, the last one holds until the next save.
func (s *sweeper) save(ctx context.Context) {
	s.seen.News.Store(false)
	s.saved = s.Now()
	s.Save(ctx, s.lease, strconv.FormatInt(s.watermark(), 10), "the watermark of a sweep was not written")
}
