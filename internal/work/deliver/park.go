package deliver

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/target"
)

// failed handles a failed attempt: it parks the parcel until the next one, or makes a dead letter.
func (d *Courier) failed(t *task, err error) {
	e := target.AsError(err)
	t.parcel.Last = Failure{cutText(e.Code, messageMax), cutText(e.Message, messageMax)}
	t.parcel.Waits = 0
	attempt := t.parcel.Delivery.Attempt
	due := d.o.Now().Add(max(d.o.Backoff.After(attempt, d.o.Jitter()), e.After))
	switch {
	case e.Permanent:
		d.bury(t, "")
	case attempt >= t.parcel.Policy.MaxAttempts:
		d.bury(t, ExhaustedAttempts)
	case due.Sub(t.parcel.First) > t.parcel.Policy.MaxAge:
		d.bury(t, ExhaustedAge)
	default:
		next := t.parcel
		next.Delivery.Attempt++
		d.observe(t, Parked, e.Code)
		d.park(t, next, due, t.done)
	}
}

// After returns the pause after an attempt, from 1 on, for a jitter from 0 to below 1.
func (b Backoff) After(attempt int, jitter float64) time.Duration {
	most := b.pause(attempt)
	return max(time.Duration(float64(most)*jitter), time.Millisecond)
}

// pause returns the n-th pause without jitter, from 1 on.
func (b Backoff) pause(n int) time.Duration {
	return retry.Policy{First: b.First, Most: b.Most}.Pause(n)
}

// park writes a task's parcel as an item that expires at due, and calls done when that is durable.
func (d *Courier) park(t *task, parcel Parcel, due time.Time, done func()) {
	text, err := encodeParcel(&parcel)
	if err != nil { // prepare admits only parcels that fit
		d.o.Logger.Error("a failed delivery cannot be parked", "id", parcel.Delivery.ID, "error", err)
		return
	}
	item := map[string]types.AttributeValue{
		attrID:     attr.S(parcel.Delivery.ID),
		attrPart:   attr.S(partParcel),
		attrDue:    attr.Seconds(due),
		attrParcel: attr.S(text),
	}
	if t.stored.parts > 0 { // the parts are stored already
		t.stored.mark(item)
		d.writer.add(put(d.parked, item, done))
		return
	}
	parts := packBody(item, parcel.Delivery.Body)
	if len(parts) > 0 {
		t.stored = bodyParts{len(parts), generationOf(parts)}
		t.stored.mark(item)
	}
	d.writer.addBehind(partPuts(d.parked, t.stored.key, parcel.Delivery.ID, parts), put(d.parked, item, done))
}

// endedKept is the time for which the end of a parcel with deleted parts is recorded. It exceeds
// the time for which a stream may repeat the parcel's records: 24 hours at Amazon.
const endedKept = 48 * time.Hour

// finish deletes the stored item and parts of a task whose parcel has ended. The parts are deleted
// last, after the end is recorded: an item without parts and without that record is damaged. It calls
// the task's done when the deletion is certain.
func (d *Courier) finish(t *task) {
	id := t.parcel.Delivery.ID
	var first []write
	if t.secured != nil {
		first = append(first, remove(d.parked, retryKey(id, partParcel)))
	}
	if t.stored.parts > 0 {
		ended := t.stored.endedKey(id)
		ended[attrDue], ended[attrParts] = attr.Seconds(d.o.Now().Add(endedKept)), attr.Int(t.stored.parts)
		first = append(first, put(d.parked, ended, t.done))
	} else {
		defer t.done()
	}
	if len(first) > 0 {
		d.writer.addBehind(first, partRemovals(d.parked, t.stored.key, id, t.stored.parts)...)
	}
}
