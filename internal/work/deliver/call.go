package deliver

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/target"
)

// Triggers need ordered deliveries and repeat failed ones themselves. Their calls pass a target's
// gate, beside the workers of its lane: Call and Invoke wait for their turn within the concurrency
// and rate, and return failures to the caller. Nothing is queued or parked, and no origin learns of
// an end.

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
	defer lane.users.Add(-1)
	for from := 0; from < len(parcels); {
		to := min(len(parcels), from+lane.limits.Batch)
		some := lane.pass(ctx, parcels[from:to], lane.target.Deliver)
		copy(results[from:to], some)
		if from = to; errors.Join(some...) != nil {
			fill(results[to:], ErrHeldBack)
			break
		}
	}
	return results
}

// Invoke delivers one parcel and returns the target's answer, if the target is a target.Invoker.
func (d *Courier) Invoke(ctx context.Context, parcel Parcel) ([]byte, error) {
	parcel = d.prepare(parcel)
	lane, err := d.lane(parcel.Delivery.TargetARN)
	if err != nil {
		return nil, err
	}
	defer lane.users.Add(-1)
	invoker, ok := lane.target.(target.Invoker)
	if !ok {
		return nil, lane.pass(ctx, []Parcel{parcel}, lane.target.Deliver)[0]
	}
	answers := make(chan []byte, 1) // with room, since nothing receives a late answer
	invoke := func(ctx context.Context, deliveries []target.Delivery) []error {
		body, err := invoker.Invoke(ctx, deliveries[0])
		answers <- body
		return []error{err}
	}
	if err := lane.pass(ctx, []Parcel{parcel}, invoke)[0]; err != nil {
		return nil, err
	}
	return <-answers, nil
}

// Bury makes a dead letter of a parcel whose attempts the caller has made: in the table, and at the
// parcel's DeadLetter if it has one. It calls done when the letter is durable. exhausted is
// ExhaustedAttempts, ExhaustedAge, or empty for a permanent failure.
func (d *Courier) Bury(ctx context.Context, parcel Parcel, exhausted string, done func()) {
	select {
	case <-d.ready:
		d.giveUp(&task{parcel: parcel, done: done}, exhausted)
	case <-ctx.Done():
	}
}

// pass makes a call when the gate admits it, and reports its results as events. If ctx is done
// first, or the courier ends, it makes no call. It always waits for a call that has begun, so that
// nothing happens after it has returned.
func (g *gate) pass(ctx context.Context, parcels []Parcel, deliver func(context.Context, []target.Delivery) []error) []error {
	if err := g.enter(ctx, parcels[0].Group, len(parcels)); err != nil {
		return fill(make([]error, len(parcels)), err)
	}
	defer g.leave()
	deliveries := make([]target.Delivery, len(parcels))
	for i, parcel := range parcels {
		deliveries[i] = parcel.Delivery
		g.observe(&task{parcel: parcel, target: g.name}, Attempted, "")
	}
	results := g.call(deliveries, deliver)
	for i, err := range results {
		g.observeResult(&task{parcel: parcels[i], target: g.name}, err)
	}
	return results
}
