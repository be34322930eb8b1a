package deliver

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mayflydb/mayfly/target"
)

// Triggers keep the order of what they hand over, and try again in its place what fails. For that a lane is a gate and no queue: Call and Invoke wait for their turn, within
// the lane's concurrency, rate and timeout, and what comes of a failure is the caller's business. Nothing is parked, and nobody is told of an end.

// ErrHeldBack says that a parcel was not handed over, because one before it had failed.
var ErrHeldBack = errors.New("held back, as an earlier delivery failed")

// Call hands parcels to the target of the first, which has to be that of all: in their order, with as few calls as its limit allows, one after another. It gives a result
// for each. Parcels behind a call in which one has failed are not handed over, and their result is ErrHeldBack.
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

// Invoke hands one parcel to its target, and gives the answer of one that answers: see target.Invoker.
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
		default: // it has panicked or takes too long
		}
		return results
	})
	if results[0] != nil {
		answer = nil
	}
	return answer, results[0]
}

// Bury makes a dead letter of a parcel whose attempts the caller has made: in the table, and at the parcel's DeadLetter where it names one. done is called when it
// is durable. exhausted is ExhaustedAttempts or ExhaustedAge, or empty for a failure that no attempt could mend.
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

// laneOrNone is the parcel's lane, or, where its ARN has none, what stands for it in metrics.
func (d *Courier) laneOrNone(parcel Parcel) *lane {
	if l, err := d.lane(parcel.Delivery.TargetARN); err == nil {
		l.letGo() // no more is asked of it than its name
		return l
	}
	return unresolved(d, parcel)
}

// wait waits for a turn, and makes a call then. When ctx is done before its turn comes, no call is made; one that has begun is waited for, so that whoever has stopped
// waiting knows that nothing happens behind its back.
func (l *lane) wait(ctx context.Context, parcels []Parcel, call func([]target.Delivery) []error) []error {
	select {
	case <-l.ready:
	case <-ctx.Done():
		return fill(make([]error, len(parcels)), ctx.Err())
	}
	var settled atomic.Bool // by the call, which begins, or by the one who waits, who does not any more
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

// observed makes a call and tells what comes of it.
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
