package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/target"
)

// NewCourier returns a courier. It does nothing until Run.
func NewCourier(o Options) *Courier {
	d := &Courier{o: o.withDefaults(), elapsed: clock.Stopwatch(), ready: make(chan struct{}), origins: map[string]*origin{}}
	d.timers = d.newTimers()
	d.parked = retriesSpec(o.Name).Name
	d.lanes.byName = map[string]*lane{}
	d.attempts.open, d.attempts.close = context.WithCancel(context.Background())
	d.attempts.settled = make(chan struct{})
	d.writer = newWriter(d.o.DB, d.o.Logger)
	d.writer.missing = d.makeTables
	return d
}

// OnEnd registers f for the ends of a kind's parcels: successes and dead letters, in batches. A
// parcel is done when f returns nil; after an error f is called again with the same batch. After a
// crash f may receive an end again. Call OnEnd before Run.
func (d *Courier) OnEnd(kind string, f func(ctx context.Context, ended []Ended) error) {
	d.origin(kind).end = f
}

// OnAttempt registers f, which makes the delivery for an attempt. It receives the parcel as it was
// handed over, with the number of the attempt. Call OnAttempt before Run.
func (d *Courier) OnAttempt(kind string, f func(Parcel) target.Delivery) {
	d.origin(kind).attempt = f
}

func (d *Courier) origin(kind string) *origin {
	if d.origins[kind] == nil {
		d.origins[kind] = newOrigin(d.o.Logger.With("origin", kind))
	}
	return d.origins[kind]
}

// Run delivers parcels, parked ones when they are due, until ctx is done. Then attempts under way
// have the grace to finish. Parcels without an attempt are not done, so their sources hand them
// over again. A courier runs once.
func (d *Courier) Run(ctx context.Context) error {
	if err := d.check(); err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	after := context.WithoutCancel(ctx)
	attempts, cut := context.WithCancel(after)
	defer cut()
	behind, end := context.WithCancel(after) // context of writes and reports that follow an attempt
	defer end()
	d.attempts.ctx = attempts
	var reads, work sync.WaitGroup
	work.Go(func() { d.writer.run(behind) })
	for _, o := range d.origins {
		work.Go(func() { o.run(behind) })
	}
	reads.Go(func() {
		if err := d.timers.Run(ctx); err != nil {
			d.o.Logger.Error("parked deliveries cannot be read", "error", err)
		}
	})
	close(d.ready)
	<-ctx.Done()
	d.stop(cut)
	close(d.attempts.settled)
	reads.Wait()
	end()
	work.Wait()
	return nil
}

func (d *Courier) check() error {
	if d.o.DB == nil || d.o.Streams == nil || d.o.Resolver == nil || d.o.Now == nil {
		return errors.New("DB, Streams, Resolver and Now must be set")
	}
	return nil
}

// stop waits until attempts under way have ended and their results are durable, within the grace.
func (d *Courier) stop(cut func()) {
	d.attempts.close()
	d.lanes.Lock()
	d.lanes.closed = true
	for _, l := range d.lanes.byName {
		l.close()
	}
	d.lanes.Unlock()
	timer := clock.AfterFunc(d.o.Grace, cut)
	defer timer.Stop()
	d.attempts.running.Wait()
	since := clock.Stopwatch()
	for !d.idle() && since() < d.o.Grace {
		clock.Pause(idleLook, nil)
	}
}

// Settle returns, when Run is ending, once no further parcel can become done. That takes at most
// twice the grace plus one second for targets that are interrupted. While Run continues, Settle
// returns after 250 ms. Consumers use it as their Settle if a record is done with its parcel.
func (d *Courier) Settle(ctx context.Context, _ string) {
	goesOn, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	select {
	case <-d.attempts.open.Done():
	case <-goesOn.Done():
		return
	}
	select {
	case <-d.attempts.settled:
	case <-ctx.Done():
	}
}

const (
	idleLook = time.Millisecond // between checks while the courier ends

	// for deliveries under way when Run ends
	settleLimit = 250 * time.Millisecond
)

// begin counts a call under way, unless no more may begin.
func (d *Courier) begin() bool {
	d.lanes.Lock()
	defer d.lanes.Unlock()
	if !d.lanes.closed {
		d.attempts.running.Add(1)
	}
	return !d.lanes.closed
}

// idle reports whether all results of attempts are written and reported.
func (d *Courier) idle() bool {
	for _, o := range d.origins {
		if !o.idle() {
			return false
		}
	}
	return d.writer.idle()
}

// Deliver hands a parcel to its target's lane. If the lane is full, Deliver waits while the lane is
// fast, and parks the parcel otherwise. It calls done once the parcel is delivered, durably parked,
// or durably a dead letter. It does not call done if ctx is done or the courier ends before; the
// source must then hand the parcel over again.
//
// A parcel that is too large for the tables becomes a dead letter with as much of it as fits.
func (d *Courier) Deliver(ctx context.Context, parcel Parcel, done func()) {
	d.accept(ctx, &task{parcel: parcel, done: done})
}

// accept hands a task to the lane of its target, unless there is no lane, or the parcel is too large
// or too old.
func (d *Courier) accept(ctx context.Context, t *task) {
	select {
	case <-d.ready:
	case <-ctx.Done():
		return
	}
	t.parcel = d.prepare(t.parcel)
	t.target = t.parcel.Delivery.TargetARN
	if wrong := t.parcel.fits(); wrong != "" {
		t.parcel.shrink()
		d.refuse(t, target.Permanent(codeTooLarge, wrong))
		return
	}
	lane, err := d.lane(t.target)
	if err != nil {
		d.refuse(t, err)
		return
	}
	defer lane.users.Add(-1)
	t.target = lane.name
	if t.parcel.Waits > 0 && d.o.Now().Sub(t.parcel.First) > t.parcel.Policy.MaxAge {
		if t.parcel.Last.Code == "" {
			t.parcel.Last = Failure{codeBusy, "the target is too busy"}
		}
		d.bury(t, ExhaustedAge)
		return
	}
	if full := lane.push(ctx, t); full {
		lane.overflow(t)
	}
}

// refuse handles a task without a lane as a failed attempt.
func (d *Courier) refuse(t *task, err error) {
	d.observeResult(t, err)
	d.failed(t, err)
}
