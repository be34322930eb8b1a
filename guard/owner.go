package guard

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The owner of a partition looks at its deadlines ahead of time, and arms them. Where there are others it looks now and then, since they write deadlines too; a worker that is alone is
// told of all that is written, and looks once in a while at what comes next.
//
// That the owner need not look often, and so costs little when nothing is due, rests on the reader of the stream: it arms itself whatever it has written that is due before the owner has
// looked for certain, so nothing is late for want of a look. A look is needed for what a reader takes with it when it dies, and for that it is soon enough every 5/4 of a lease: so long it
// takes until other workers have the leases of one that has died. A look is one query, of the partition's inbox and directory together, where nothing is in them.
//
// Its watermark is the checkpoint of its lease: all deadlines before it are done with. The next owner begins there. No deadline is written before the watermark, because whoever
// writes one that is due within the margin puts it into the inbox, in which every owner looks; and neither do owners go past their clock.
const (
	starvedEvery   = time.Second    // between two looks of an owner that had no room for all
	saveMarkEvery  = time.Minute    // between two watermarks: after a crash what has come due in between is asked for once more, of which little is left in the table
	watermarkEvery = time.Hour      // a watermark that moves although nothing is due
	staleAfter     = 20 * time.Hour // a watermark this old: what the stream had to tell may be gone, as streams are kept for 24 hours, and a scan has to make up for it

	minutesMax = 2 // so many minutes are asked without a look into the directory
)

// owner is one stretch of owning a partition.
type owner struct {
	*partition
	lease    *lease.Lease
	from     int64  // where the next look begins
	saved    int64  // the watermark in the lease
	triedAt  int64  // when it was last looked whether that is to be written
	oldest   int64  // before this minute, there are none left in the directory; 0: owners before may have left some
	again    int64  // until then, those that are left are not tried once more
	begun    bool   // there was a look
	lookedAt int64  // when the last one began, ms
	found    bool   // there was something in the table since the watermark was saved
	inbox    string // where the next look into the inbox goes on
	starved  bool   // there was no room for all
}

// own looks until ctx is done or the lease is lost.
func (p *partition) own(ctx context.Context, l *lease.Lease) error {
	o := &owner{partition: p, lease: l, from: p.s.set.born}
	if at, err := strconv.ParseInt(l.Checkpoint(), 10, 64); err == nil {
		o.from = at
	}
	o.saved, o.triedAt = o.from, p.s.g.now()
	if o.triedAt-o.from > staleAfter.Milliseconds() {
		p.s.awayForLong(ctx)
	}
	p.begin(o.from)
	defer p.leave()
	for {
		err := p.s.persist(ctx, "Query", func() error { return o.look(ctx) })
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
	p.mu.owned, p.mu.loaded, p.mu.next, p.mu.track = true, from, math.MaxInt64, true
}

// leave lets others look. What is due in a moment stays armed, so that nothing is late because of it.
func (p *partition) leave() {
	now := p.s.g.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.owned = false
	p.endTrackLocked()
	for k, n := range p.mu.items {
		if n.at < now || n.at >= now+p.s.horizon {
			delete(p.mu.items, k)
			p.s.g.disarm(k)
		}
	}
}

func (p *partition) endTrackLocked() {
	p.mu.track = false
	clear(p.mu.finished[0])
	clear(p.mu.finished[1])
}

// look arms what is due within the horizon.
func (o *owner) look(ctx context.Context) (err error) {
	now := o.s.g.now()
	from, to := o.raise(now)
	o.starved, o.lookedAt = false, now
	defer func() {
		if err != nil {
			o.lower(from) // the next look begins there again
		}
	}()
	var minutes []int64
	if !o.begun || !o.s.alone || o.inbox != "" || o.s.g.given.any() { // what was given up may be in there
		minutes, err = o.lookIntoInbox(ctx, from, to)
	} else {
		minutes, err = o.minutes(ctx, from, to)
	}
	if err != nil {
		return err
	}
	for _, m := range minutes {
		if err := o.lookInto(ctx, m, max(from, m), min(to, m+minute)); err != nil {
			return err
		}
		if o.starved {
			break
		}
	}
	o.hasLooked(now)
	return o.plan(ctx)
}

func (o *owner) hasLooked(now int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
	o.from = max(o.from, min(now, o.mu.loaded))
	if o.s.alone { // what it looks at next has not been armed before
		o.endTrackLocked()
	}
}

// lower takes back that deadlines from an instant on are armed.
func (o *owner) lower(at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.loaded = min(o.mu.loaded, at)
}

// raise says from where to where is to be looked. What is written there from now on is armed by the one who writes it, so between the two nothing is overlooked.
func (o *owner) raise(now int64) (from, to int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.track = true
	o.mu.finished[0], o.mu.finished[1] = o.mu.finished[1], o.mu.finished[0]
	clear(o.mu.finished[0])
	from, to = o.from, now+o.s.horizon
	if o.s.alone && o.begun {
		from = o.mu.loaded
	}
	o.mu.loaded = max(o.mu.loaded, to)
	if o.mu.loaded > to { // the clock has gone back
		to = o.mu.loaded
	}
	return from, to
}

func (o *owner) minutes(ctx context.Context, from, to int64) (all []int64, err error) {
	if to-minuteOf(from) > minutesMax*minute {
		return o.s.store.minutes(ctx, o.number, from, to)
	}
	for m := minuteOf(from); m < to; m += minute {
		all = append(all, m)
	}
	return all, nil
}

// lookInto arms the deadlines of a minute.
func (o *owner) lookInto(ctx context.Context, m, from, to int64) error {
	s := o.s.store
	return s.query(ctx, s.bucket(o.number, m), sortText(from), sortText(to), 0, func(item map[string]types.AttributeValue) bool {
		r, ok := o.read(item)
		if !ok {
			return true
		}
		if o.s.g.room() == 0 {
			o.starved = true
			o.lower(r.at)
			return false
		}
		o.armFound(r)
		return true
	})
}

// lookIntoInbox arms what is in the inbox, and gives the minutes between two instants in which there may be deadlines: the directory is behind the inbox.
func (o *owner) lookIntoInbox(ctx context.Context, from, to int64) (minutes []int64, err error) {
	s := o.s.store
	begin := max(o.inbox, "0")
	o.inbox = ""
	err = s.query(ctx, s.inbox(o.number), begin, minuteText(to)+"~", 0, func(item map[string]types.AttributeValue) bool {
		o.found = true
		if m, ok := readMinute(attr.String(item[attrAt])); ok {
			if m >= minuteOf(from) {
				minutes = append(minutes, m)
			}
			return true
		}
		r, ok := o.read(item)
		if !ok {
			return true
		}
		if o.s.g.room() == 0 {
			o.starved, o.inbox = true, attr.String(item[attrAt])
			return false
		}
		r.inbox = true
		o.armFound(r)
		return true
	})
	if err == nil && o.inbox != "" {
		return o.minutes(ctx, from, to)
	}
	return minutes, err
}

func (o *owner) read(item map[string]types.AttributeValue) (*row, bool) {
	r, err := readRow(item)
	if err == nil && o.s.g.attributes(r.key) == nil {
		err = errNoDeadline
	}
	if err != nil {
		o.s.g.log.Warn("an item of the deadline table is skipped", "part", attr.String(item[attrPart]), "at", attr.String(item[attrAt]), "error", err)
		return nil, false
	}
	return r, true
}

// plan says when a worker that is alone looks again.
func (o *owner) plan(ctx context.Context) error {
	if !o.s.alone {
		return nil
	}
	o.mu.Lock()
	o.mu.next = math.MaxInt64
	loaded := o.mu.loaded
	o.mu.Unlock()
	first, err := o.s.store.firstMinute(ctx, o.number, loaded)
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

// wait waits until it is time to look, or for the owner to be told to.
func (o *owner) wait(ctx context.Context) error {
	hour := o.triedAt + watermarkEvery.Milliseconds()
	if !o.s.alone || o.starved {
		every := o.s.every
		if o.starved {
			every = min(every, starvedEvery)
		}
		timer := clock.AfterFunc(every+every/4, o.partition.look) // the endpoint's clock may stand still
		defer timer.Stop()
		return o.s.g.sleep(ctx, o.lookedAt+every.Milliseconds(), o.wake) // where the clock leaps past it, there is one look
	}
	for {
		o.mu.Lock()
		next := min(hour, o.mu.next)
		o.mu.Unlock()
		if o.s.g.now() >= next {
			return nil
		}
		if err := o.s.g.sleep(ctx, next, o.wake); err != nil {
			return err
		}
	}
}

// save writes the watermark where it has moved, now and then. A worker that is alone does so when it has looked.
func (o *owner) save(ctx context.Context) error {
	now, every := o.s.g.now(), watermarkEvery.Milliseconds()
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

// forget deletes the minutes that are done with from the directory. What is still in one although a minute more has passed, by which the stream should have told of its removal, is
// tried once more: its record was lost, or it was written by a worker that should not have.
func (o *owner) forget(ctx context.Context, to int64) error {
	end := minuteOf(to) - minute
	now := o.s.g.now()
	if o.oldest >= end || now < o.again || !o.lease.Held() {
		return nil
	}
	past, err := o.s.store.minutes(ctx, o.number, o.oldest, end-1)
	if err != nil {
		return err
	}
	oldest := end
	o.again = 0
	for _, m := range past {
		left := false
		err := o.s.store.query(ctx, o.s.store.bucket(o.number, m), sortText(m), sortText(m+minute), 0, func(item map[string]types.AttributeValue) bool {
			left = true
			if r, ok := o.read(item); ok && o.s.g.room() > 0 {
				o.armFound(r)
			}
			return true
		})
		if err == nil && !left {
			err = o.s.store.forgetMinute(ctx, o.number, m)
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

// last writes the watermark at the end.
func (o *owner) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
	defer cancel()
	if low := o.unfinished(o.from); low > o.saved {
		if err := o.lease.Save(ctx, strconv.FormatInt(low, 10)); err != nil && !errors.Is(err, lease.ErrLost) {
			o.s.g.log.Warn("the last watermark was not written; the next owner begins a little earlier", "partition", o.number, "error", err)
		}
	}
}

const lastLimit = 5 * time.Second
