package stream

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The owner of a partition polls its deadlines ahead of time, and arms them. In a fleet it polls
// periodically, since others write deadlines too. A worker that is alone knows every write, and
// polls only before the next deadline, or when there is room for more in memory.
//
// The owner may poll rarely, and costs little when nothing is due, because the reader of the stream
// arms its own deadlines that are due before the owner's next poll. So nothing is late for lack of
// a poll. The owner leaves these to the reader: see claim. A poll is needed for the deadlines of a
// reader that has died, and every owner polls when it is found to be dead. Otherwise every 5/4 of a
// lease is enough, because other workers take over its leases no sooner. A poll of an empty partition
// is one query, of the inbox and the directory together.
//
// The owner's watermark is the checkpoint of its lease: all deadlines before it are finished, and
// the next owner begins there. No deadline is written before the watermark, because one that is due
// within the margin goes into the inbox, which every owner polls, and owners do not advance past
// their clock.
const (
	starvedEvery = time.Second // between two polls of an owner without room for all deadlines
	// rows in a page of a poll: the pages of all partitions are in memory at a time
	pageLeast, pageMost = 64, 250
	// between two watermarks: a crash repeats the queries of the time between, which find few rows
	saveMarkEvery  = time.Minute
	watermarkEvery = time.Hour // a watermark that moves although nothing is due
	// a watermark this old needs a scan: streams are kept for 24 hours, so records may be gone
	staleAfter = 20 * time.Hour
)

// owner is one stretch of owning a partition.
type owner struct {
	*partition
	lease   *lease.Lease
	from    int64 // where the next poll begins
	saved   int64 // the watermark in the lease
	triedAt int64 // when saving it was last considered
	// before this bucket, there are none left in the directory; 0: owners before may have left some
	oldest   int64
	again    int64  // until then, remaining old rows are not tried once more
	begun    bool   // there was a poll
	polledAt int64  // when the last one began, ms
	found    bool   // there was something in the table since the watermark was saved
	inbox    string // where the next poll of the inbox continues
	starved  bool   // there was no room for all
	claimed  int64  // the earliest row outside the inbox that the last poll left to another worker
	// by bucket, the sort keys at which the next poll continues, if the deadlines at the end of the
	// armed range are armed in part
	rest map[int64]string
}

// own polls until ctx is done or the lease is lost.
func (p *partition) own(ctx context.Context, l *lease.Lease) error {
	o := &owner{partition: p, lease: l, from: p.d.since}
	if at, err := strconv.ParseInt(l.Checkpoint(), 10, 64); err == nil {
		o.from = at
	}
	o.saved, o.triedAt = o.from, p.s.Now()
	if o.triedAt-o.from > staleAfter.Milliseconds() {
		p.s.AwayForLong(ctx)
	}
	p.begin(o.from)
	defer p.leave()
	for {
		err := p.s.persist(ctx, "Query", func() error { return o.poll(ctx) })
		if err == nil {
			err = o.save(ctx)
		}
		if err == nil {
			err = o.wait(ctx)
		}
		if ctx.Err() != nil {
			o.last(ctx)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *partition) begin(from int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.owned, p.mu.loaded, p.mu.partly, p.mu.next, p.mu.track = true, from, false, math.MaxInt64, true
}

// leave ends the ownership. Deadlines that are due in a moment stay armed, so the change makes
// nothing late, and so do those that the next owner leaves to this worker.
func (p *partition) leave() {
	p.mu.Lock()
	p.mu.owned = false
	p.endTrackLocked()
	p.mu.Unlock()
	now := p.s.Now()
	p.shelves(func(at *shelf) {
		for k := range at.items {
			for c := (&chain{on: at, key: k}); c.get() != nil; {
				if n := c.get(); n.p == p && !n.mine && (n.at < now || n.at >= now+p.s.horizon) {
					p.s.takeLocked(c, n, true)
				} else {
					c.move()
				}
			}
		}
	})
}

// turnTrackLocked begins to track, and forgets the deadlines that have finished before the last turn.
func (p *partition) turnTrackLocked() {
	p.mu.track = true
	p.mu.finished[0], p.mu.finished[1] = p.mu.finished[1], p.mu.finished[0]
	clear(p.mu.finished[0])
}

func (p *partition) turnTrack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turnTrackLocked()
}

func (p *partition) endTrackLocked() {
	p.mu.track = false
	clear(p.mu.finished[0])
	clear(p.mu.finished[1])
}

// poll arms the deadlines within the horizon.
func (o *owner) poll(ctx context.Context) (err error) {
	now := o.s.Now()
	if o.polledAt = now; o.starved && o.room() == 0 {
		o.turnTrack()
		return nil
	}
	from, to := o.raise(now)
	o.starved, o.claimed = false, math.MaxInt64
	defer func() {
		if err != nil {
			o.lower(from) // the next poll begins there again
		}
	}()
	var buckets []int64
	// the inbox may have rejected removals
	if !o.begun || !o.s.alone || o.inbox != "" || o.s.Rejected() {
		buckets, err = o.pollInbox(ctx, from, to)
	} else {
		buckets, err = o.s.store.buckets(ctx, o.d, o.number, from, to)
	}
	if err != nil {
		return err
	}
	for len(buckets) > 0 && !o.starved {
		m, n := minuteOf(buckets[0]), 1
		for n < len(buckets) && minuteOf(buckets[n]) == m {
			n++
		}
		if err := o.pollMinute(ctx, buckets[:n], max(from, m), min(to, m+minute)); err != nil {
			return err
		}
		buckets = buckets[n:]
	}
	o.polled(now)
	return o.plan(ctx)
}

func (o *owner) polled(now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	o.from = max(o.from, min(now, o.mu.loaded, o.claimed))
	if o.s.alone && !o.starved { // the next poll covers deadlines that were not armed before
		o.endTrackLocked()
	}
}

// lower moves the end of the armed deadlines back to an instant, because a poll has failed or had
// no room.
func (o *owner) lower(at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at < o.mu.loaded {
		o.mu.loaded, o.mu.partly = at, false
	}
}

// interrupt ends a poll of buckets, because there is no room for the first of their next deadlines.
// The next poll of a worker that is alone continues there, also among deadlines of one instant: there
// may be a million, and the rows of the removed ones may still be in the table.
func (o *owner) interrupt(buckets []int64, heads []*row, first *row) {
	o.starved = true
	o.mu.Lock()
	defer o.mu.Unlock()
	if first.at >= o.mu.loaded {
		return // a writer had no room for a deadline: the next poll begins there
	}
	if o.mu.loaded, o.mu.partly = first.at, o.s.alone; !o.s.alone {
		return
	}
	o.rest = map[int64]string{}
	for i, b := range buckets {
		o.rest[b] = sortText(first.at + 1)
		if r := heads[i]; r != nil && r.at == first.at {
			o.rest[b], _ = sortKey(r.at, r.key)
		}
	}
}

// raise returns the range of the next poll. From now on, writers arm their deadlines in that range
// themselves, so none is missed between the two.
func (o *owner) raise(now int64) (from, to int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turnTrackLocked()
	from, to = o.from, now+o.s.horizon
	if o.s.alone && o.begun {
		from = o.mu.loaded
	}
	if !o.mu.partly {
		o.rest = nil
	}
	o.mu.loaded, o.mu.partly = max(o.mu.loaded, to), false
	if o.mu.loaded > to { // the clock has gone back
		to = o.mu.loaded
	}
	return from, to
}

// pollMinute arms the deadlines in the buckets of a minute, the earliest first: if there is no room
// for one, all before it are armed, in each bucket.
func (o *owner) pollMinute(ctx context.Context, buckets []int64, from, to int64) (err error) {
	s := o.s.store
	heads, nexts := make([]*row, len(buckets)), make([]func() (*row, bool), len(buckets))
	page := int32(min(max(o.room()/len(buckets), pageLeast), pageMost))
	for i, b := range buckets {
		next, stop := iter.Pull(func(yield func(*row) bool) {
			failure := s.query(ctx, s.bucket(o.d, o.number, b), cmp.Or(o.rest[b], sortText(from)), sortText(to), page, func(item map[string]types.AttributeValue) bool {
				r, ok := o.read(item)
				if ok && o.isClaimed(r, item) {
					o.claimed = min(o.claimed, r.at)
					return true
				}
				return !ok || yield(r)
			})
			err = cmp.Or(err, failure)
		})
		defer stop()
		nexts[i] = next
		heads[i], _ = next()
	}
	for err == nil {
		first := -1
		for i, r := range heads {
			if r != nil && (first < 0 || r.at < heads[first].at) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		if o.room() == 0 {
			o.interrupt(buckets, heads, heads[first])
			break
		}
		o.armFound(heads[first], false)
		heads[first], _ = nexts[first]()
	}
	return err
}

// pollInbox arms the deadlines of the inbox. It returns the buckets between two instants that
// may have deadlines: the directory follows the inbox in the table.
func (o *owner) pollInbox(ctx context.Context, from, to int64) (buckets []int64, err error) {
	s := o.s.store
	begin := max(o.inbox, "0")
	o.inbox = ""
	err = s.query(ctx, s.inbox(o.d, o.number), begin, minuteText(to)+"~", pageMost, func(item map[string]types.AttributeValue) bool {
		o.found = true
		if b, ok := readBucket(attr.String(item[attrAt])); ok {
			if b >= minuteOf(from) {
				buckets = append(buckets, b)
			}
			return true
		}
		r, ok := o.read(item)
		if !ok || o.isClaimed(r, item) {
			return true
		}
		if o.room() == 0 {
			o.starved, o.inbox = true, attr.String(item[attrAt])
			o.lower(from) // the buckets are not polled this time
			return false
		}
		r.inbox = true
		o.armFound(r, false)
		return true
	})
	if err == nil && o.inbox != "" {
		return s.buckets(ctx, o.d, o.number, from, to)
	}
	return buckets, err
}

func (o *owner) read(item map[string]types.AttributeValue) (*row, bool) {
	r, err := readRow(item)
	if err == nil && o.s.Table.Attributes(r.key) == nil {
		err = errNoDeadline
	}
	if err != nil {
		o.s.Log.Warn("an item of the deadline table is skipped", "part", attr.String(item[attrPart]), "at", attr.String(item[attrAt]), "error", err)
		return nil, false
	}
	return r, true
}

// plan sets the next poll of a worker that is alone.
func (o *owner) plan(ctx context.Context) error {
	if !o.s.alone {
		return nil
	}
	o.mu.Lock()
	o.mu.next = math.MaxInt64
	loaded := o.mu.loaded
	o.mu.Unlock()
	first, err := o.s.store.firstBucket(ctx, o.d, o.number, loaded)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if first != math.MaxInt64 {
		o.mu.next = min(o.mu.next, max(first, loaded)-o.s.ahead())
	}
	return nil
}

// wait waits for the next poll, or until the owner is woken.
func (o *owner) wait(ctx context.Context) error {
	hour := o.triedAt + watermarkEvery.Milliseconds()
	if !o.s.alone || o.starved {
		every := o.s.every
		if o.starved {
			every = min(every, starvedEvery)
		}
		// the endpoint's clock may stand still
		timer := clock.AfterFunc(every+every/4, func() { strategy.Nudge(o.wake) })
		defer timer.Stop()
		// if the clock leaps past it, there is one poll
		return o.s.Sleep(ctx, o.polledAt+every.Milliseconds(), o.wake)
	}
	for {
		o.mu.Lock()
		next := min(hour, o.mu.next)
		o.mu.Unlock()
		if o.s.Now() >= next {
			return nil
		}
		if err := o.s.Sleep(ctx, next, o.wake); err != nil {
			return err
		}
	}
}

// save writes the watermark if it has moved, now and then. A worker that is alone does so after
// each poll.
func (o *owner) save(ctx context.Context) error {
	now, every := o.s.Now(), watermarkEvery.Milliseconds()
	if o.found {
		every = saveMarkEvery.Milliseconds()
	}
	if !o.s.alone && now >= o.triedAt && now < o.triedAt+every {
		return nil
	}
	o.triedAt, o.found = now, false
	low := o.unfinished(o.from)
	if low <= o.saved {
		return nil
	}
	return o.s.persist(ctx, "PutItem", func() error {
		if err := o.lease.Save(ctx, strconv.FormatInt(low, 10)); err != nil {
			return err
		}
		o.saved = low
		return o.forget(ctx, low)
	})
}

// forget deletes finished buckets from the directory. A row that remains a minute later, although
// the stream should have shown its removal by then, is tried once more: its record was lost, or an
// outdated worker wrote it.
func (o *owner) forget(ctx context.Context, to int64) error {
	end := minuteOf(to) - minute
	now := o.s.Now()
	if o.oldest >= end || now < o.again || !o.lease.Held() {
		return nil
	}
	past, err := o.s.store.buckets(ctx, o.d, o.number, o.oldest, end-1)
	if err != nil {
		return err
	}
	oldest := end
	o.again = 0
	for _, b := range past {
		left, m := false, minuteOf(b)
		err := o.s.store.query(ctx, o.s.store.bucket(o.d, o.number, b), sortText(m), sortText(m+minute), 0, func(item map[string]types.AttributeValue) bool {
			left = true
			if r, ok := o.read(item); ok && o.s.Room() > 0 {
				o.armFound(r, true)
			}
			return true
		})
		if err == nil && !left {
			err = o.s.store.forgetBucket(ctx, o.d, o.number, b)
		}
		if err != nil {
			return err
		}
		if left {
			oldest, o.again = min(oldest, m), now+minute
		}
	}
	o.oldest = oldest
	return nil
}

// last writes the watermark at the end of the ownership.
func (o *owner) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
	defer cancel()
	if low := o.unfinished(o.from); low > o.saved {
		if err := o.lease.Save(ctx, strconv.FormatInt(low, 10)); err != nil && !errors.Is(err, lease.ErrLost) {
			o.s.Log.Warn("the last watermark was not written; the next owner begins a little earlier", "partition", o.number, "error", err)
		}
	}
}

const lastLimit = 5 * time.Second
