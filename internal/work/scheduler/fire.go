package scheduler

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// outcome is the result of a firing.
type outcome struct {
	place    place
	firing   *firing
	parcels  []deliver.Parcel // deliveries; none for a missed occurrence that does not run
	next     *firing          // the firing to arm; nil: there is none
	complete *completion      // not nil: the schedule completes without a delivery, and is deleted
	done     func()           // completes the record
}

// Limits of batches of firings.
const (
	batchBytes   = 3 << 20 // of one transaction; DynamoDB takes 4 MB
	batchesAhead = 4       // concurrent transactions
)

// fire arms the occurrences that follow expired firings, and hands over their deliveries. A firing
// is done when its deliveries are.
func (s *Scheduler) fire(ctx context.Context, p place, expired []timer.Firing) error {
	now := s.now()
	var all []*outcome
	for _, e := range expired {
		f := s.firingOf(e.Item, p)
		if f == nil {
			e.Done()
			continue
		}
		o, err := s.outcome(p, f, now)
		if err != nil {
			s.o.Logger.Error("a firing cannot be read and is skipped", "group", p.group, "name", f.name, "error", err)
			e.Done()
			continue
		}
		o.done = e.Done
		all = append(all, o)
	}
	return s.armAndDeliver(ctx, all)
}

// firingOf returns the firing that an expired item stands for, or nil.
func (s *Scheduler) firingOf(expired item, p place) *firing {
	if part := attr.String(expired[attrPart]); part != partFiring && part != partRemains {
		return nil
	}
	f, err := readFiring(expired)
	if err != nil {
		s.o.Logger.Error("the item of a firing cannot be read and is skipped", "group", p.group, "error", err)
		return nil
	}
	return f
}

// outcome computes the result of a firing.
func (s *Scheduler) outcome(p place, f *firing, now time.Time) (*outcome, error) {
	o := &outcome{place: p, firing: f}
	return o, s.compute(o, now)
}

func (s *Scheduler) compute(o *outcome, now time.Time) error {
	o.parcels, o.next, o.complete = nil, nil, nil
	if o.place.rules {
		return s.ruleOutcome(o, now)
	}
	return s.scheduleOutcome(o, now)
}

// arms reports whether the outcome changes the table.
func (o *outcome) arms() bool { return o.next != nil || !o.firing.until.IsZero() }

func (s *Scheduler) scheduleOutcome(o *outcome, now time.Time) error {
	f := o.firing
	d, t, err := s.readDocument(f.document, f.input)
	if err != nil {
		return err
	}
	catchUp := d.CatchUp
	if catchUp == CatchUpGroup {
		catchUp = s.catchUpOf(o.place.group)
	}
	runs := o.setNext(t, catchUp, now)
	var end *completion
	if o.next == nil && d.deletes() && f.until.IsZero() {
		end = &completion{
			Table: o.place.table, Name: f.name, Incarnation: f.incarnation, Version: f.version, Token: f.token, Digest: f.digest,
		}
		if !t.end.IsZero() {
			end.End = t.end.UnixMilli()
		}
	}
	if runs {
		o.parcels = []deliver.Parcel{s.parcel(o.place.group, f, d, end)}
	} else {
		o.complete = end
	}
	return nil
}

// setNext computes the next firing, and reports whether this one runs. The next firing of an
// earlier version is never due after the version's end.
func (o *outcome) setNext(t timing, catchUp CatchUp, now time.Time) (runs bool) {
	f := o.firing
	runs, next, more := t.before(f.until).decide(f, catchUp, now)
	if !more {
		return runs
	}
	o.next = f.successor(t, next, now)
	if !f.until.IsZero() && o.next.deadline.After(f.until) {
		o.next = nil
		runs, _, _ = t.before(f.occurrence).decide(f, catchUp, now)
	}
	return runs
}

// successor returns the firing that processing f arms.
func (f *firing) successor(t timing, occurrence, now time.Time) *firing {
	next := *f
	next.number++
	next.occurrence = occurrence
	next.deadline = t.deadline(occurrence, f.incarnation, next.number)
	next.armed = now
	return &next
}

// armAndDeliver arms the next firings in batches, and hands over the deliveries of armed batches in
// order. After an error it hands over no more.
func (s *Scheduler) armAndDeliver(ctx context.Context, all []*outcome) error {
	type armed struct {
		batch []*outcome
		err   chan error
	}
	var under []armed
	var failed error
	wait := func() {
		err := <-under[0].err
		if failed == nil && err == nil {
			err = s.hand(ctx, under[0].batch)
		}
		if failed == nil {
			failed = err
		}
		under = under[1:]
	}
	for _, batch := range batches(all) {
		if len(under) == batchesAhead {
			wait()
		}
		if failed != nil {
			break
		}
		a := armed{batch, make(chan error, 1)}
		under = append(under, a)
		go func() { a.err <- s.arm(ctx, batch) }()
	}
	for len(under) > 0 {
		wait()
	}
	return failed
}

// batches divides outcomes into transactions. A transaction has at most one firing of a schedule.
func batches(all []*outcome) [][]*outcome {
	var out [][]*outcome
	var batch []*outcome
	arming, bytes, names := 0, 0, map[string]bool{}
	for _, o := range all {
		size := 0
		if o.next != nil {
			size = 2 * o.next.size() // with the item of the definition
		}
		if o.arms() && arming == batchFirings || bytes+size > batchBytes && arming > 0 || names[o.firing.name] {
			out = append(out, batch)
			batch, arming, bytes, names = nil, 0, 0, map[string]bool{}
		}
		batch = append(batch, o)
		names[o.firing.name] = true
		if o.arms() {
			arming, bytes = arming+1, bytes+size
		}
	}
	if len(batch) > 0 {
		out = append(out, batch)
	}
	return out
}

// hand gives the deliveries of an armed batch to the courier. Schedules that complete without a
// delivery are deleted first.
func (s *Scheduler) hand(ctx context.Context, batch []*outcome) error {
	var complete []*completion
	for _, o := range batch {
		if o.complete != nil {
			complete = append(complete, o.complete)
		}
	}
	if err := s.complete(ctx, complete); err != nil {
		return err
	}
	now := s.o.Now()
	for _, o := range batch {
		if len(o.parcels) == 0 {
			s.o.Observe(Event{What: Skipped, Group: o.place.group})
			o.done()
			continue
		}
		s.o.Observe(Event{What: Fired, Group: o.place.group, Lateness: now.Sub(o.firing.deadline)})
		done := timer.AfterAll(len(o.parcels), o.done)
		for _, parcel := range o.parcels {
			s.o.Courier.Deliver(ctx, parcel, done)
		}
	}
	return nil
}
