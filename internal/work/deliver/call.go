package deliver

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mayflydb/mayfly/target"
)

// Triggers need ordered deliveries and repeat failed ones themselves. For them a lane is a gate
// without a queue: Call and Invoke wait for their turn within the lane's concurrency and rate, and
// return failures to the caller. Nothing is parked, and no origin learns of an end.

// ErrHeldBack is the result of a parcel that was not handed over because one before it failed.
var ErrHeldBack = errors.New("held back, as an earlier delivery failed")

// Call delivers parcels in their order to the target of the first; all must have the same target.
// It makes as few calls as the batch limit allows, one after another, and returns a result for each
// parcel. After a call with a failure it makes no further call: the remaining parcels fail with
// ErrHeldBack.
func (d *Courier) Call(ctx context.Context, parcels ...Parcel) []error {
	results := make([]error, len(parcels))
	for i := range parcels {
		parcels[i] = d.prepare(parcels[i])
	}
	lane, err := d.lane(parcels[0].Delivery.TargetARN)
	if err != nil {
		return fill(results, err)
	}
	defer lane.letGo()
	for from := 0; from < len(parcels); {
		to := min(len(parcels), from+lane.limits.Batch)
		some := lane.wait(ctx, parcels[from:to], func(deliveries []target.Delivery) []error { return lane.call(deliveries) })
		copy(results[from:to], some)
		if from = to; failedAny(some) {
			fill(results[to:], ErrHeldBack)
			break
		}
	}
	return results
}

// Invoke delivers one parcel and returns the target's answer, if the target is a target.Invoker.
func (d *Courier) Invoke(ctx context.Context, parcel Parcel) (answer []byte, err error) {
	parcel = d.prepare(parcel)
	lane, err := d.lane(parcel.Delivery.TargetARN)
	if err != nil {
		return nil, err
	}
	defer lane.letGo()
	asked, answers := lane.target.(target.Invoker)
	results := lane.wait(ctx, []Parcel{parcel}, func(deliveries []target.Delivery) []error {
		if !answers {
			return lane.call(deliveries)
		}
		got := make(chan []byte, 1)
		results := lane.guard(1, func(ctx context.Context) []error {
			body, err := asked.Invoke(ctx, deliveries[0])
			got <- body
			return []error{err}
		})
		select {
		case answer = <-got:
		default: // the call panicked or timed out
		}
		return results
	})
	if results[0] != nil {
		answer = nil
	}
	return answer, results[0]
}

// Bury makes a dead letter of a parcel whose attempts the caller has made: in the table, and at the
// parcel's DeadLetter if it has one. It calls done when the letter is durable. exhausted is
// ExhaustedAttempts, ExhaustedAge, or empty for a permanent failure.
func (d *Courier) Bury(ctx context.Context, parcel Parcel, exhausted string, done func()) {
	select {
	case <-d.ready:
		parcel = d.prepare(parcel)
		if parcel.fits() != "" {
			parcel.shrink()
		}
		d.bury(&task{parcel: parcel, done: done, lane: d.laneOrNone(parcel), state: over}, exhausted)
	case <-ctx.Done():
	}
}

// wait waits for a turn and then makes a call. If ctx is done first, it makes no call. It always
// waits for a call that has begun, so that nothing happens after wait has returned.
func (l *lane) wait(ctx context.Context, parcels []Parcel, call func([]target.Delivery) []error) []error {
	select {
	case <-l.ready:
	case <-ctx.Done():
		return fill(make([]error, len(parcels)), ctx.Err())
	}
	// set by whichever is first: the call that starts, or the waiter that gives up
	var settled atomic.Bool
	answered := make(chan []error, 1)
	turn := func() {
		if settled.CompareAndSwap(false, true) {
			answered <- l.observed(parcels, call)
		}
	}
	l.push(ctx, &task{parcel: parcels[0], lane: l, turn: turn, size: len(parcels)})
	var err error
	select {
	case results := <-answered:
		return results
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.attempts.stopped:
		err = context.Canceled
	}
	if settled.CompareAndSwap(false, true) {
		return fill(make([]error, len(parcels)), err)
	}
	return <-answered
}

// observed makes a call and reports its results as events.
func (l *lane) observed(parcels []Parcel, call func([]target.Delivery) []error) []error {
	deliveries := make([]target.Delivery, len(parcels))
	for i, parcel := range parcels {
		deliveries[i] = parcel.Delivery
		l.observe(&task{parcel: parcel, lane: l}, Attempted, "")
	}
	results := call(deliveries)
	for i, err := range results {
		t := &task{parcel: parcels[i], lane: l}
		e := target.AsError(err)
		switch {
		case err == nil:
			l.observe(t, Delivered, "")
		case e.Throttled:
			l.observe(t, Failed, e.Code)
			l.observe(t, Throttled, e.Code)
		default:
			l.observe(t, Failed, e.Code)
		}
	}
	return results
}

func failedAny(results []error) bool {
	for _, err := range results {
		if err != nil {
			return true
		}
	}
	return false
}
