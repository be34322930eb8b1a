package deliver

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/consume"
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
		d.park(t, next, due, func() { d.settled(t) })
	}
}

// After returns the pause after an attempt, from 1 on, for a jitter from 0 to below 1.
func (b Backoff) After(attempt int, jitter float64) time.Duration {
	most := math.Min(float64(b.First)*math.Pow(2, float64(attempt-1)), float64(b.Most))
	return max(time.Duration(most*jitter), time.Millisecond)
}

// settled is called when the consequence of a task is durable.
func (d *Courier) settled(t *task) {
	if t.secured == nil { // the task is over, so secured no longer changes
		t.done()
		return
	}
	d.slow.end(t)
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
	if t.kept.parts > 0 { // the parts are stored already
		t.kept.mark(item)
		d.writer.add(put(d.parked, item, done))
		return
	}
	parts := packBody(item, parcel.Delivery.Body)
	if len(parts) > 0 {
		t.kept = kept{len(parts), generationOf(parts)}
		t.kept.mark(item)
	}
	d.writer.addBehind(partPuts(d.parked, t.kept.key, parcel.Delivery.ID, parts), put(d.parked, item, done))
}

// partPuts returns the writes of a body's parts.
func partPuts(table string, key partKey, id string, parts [][]byte) []write {
	puts := make([]write, len(parts))
	for i, part := range parts {
		item := key(id, i)
		item[attrBody] = attr.B(part)
		puts[i] = put(table, item, nil)
	}
	return puts
}

// endedKept is the time for which the end of a parcel with deleted parts is recorded. It exceeds
// the time for which a stream may repeat the parcel's records: 24 hours at Amazon.
const endedKept = 48 * time.Hour

// unpark deletes the stored item and parts of an ended task. The parts are deleted last, after the
// end is recorded: an item without parts and without that record is damaged. It calls done when the
// deletion is certain.
func (d *Courier) unpark(t *task, done func()) {
	id := t.parcel.Delivery.ID
	var first []write
	if t.secured != nil {
		first = append(first, remove(d.parked, retryKey(id, partParcel)))
	}
	if t.kept.parts > 0 {
		ended := t.kept.endedKey(id)
		ended[attrDue], ended[attrParts] = attr.Seconds(d.o.Now().Add(endedKept)), attr.Int(t.kept.parts)
		first = append(first, put(d.parked, ended, done))
	} else {
		defer done()
	}
	d.writer.addBehind(first, t.kept.removals(d.parked, id)...)
}

// retry delivers a parked parcel that is due. An unreadable parcel becomes a dead letter.
func (d *Courier) retry(ctx context.Context, r consume.Record) error {
	p, err := readParked(r.Dynamodb)
	if err != nil {
		d.lose(p, err.Error(), r.Done)
		return nil
	}
	if d.slow.join(p.parcel.Delivery.ID, r.Done) {
		return nil // its attempt is still running: no other may begin
	}
	if p.kept.parts > 0 {
		needed, missing := false, 0
		err := retry.Until(ctx, d.o.Logger, retry.Calls, "read the parts of a body", func() (err error) {
			needed, missing, err = d.gather(ctx, &p)
			return err
		})
		switch {
		case err != nil:
			return err
		case !needed:
			r.Done()
			return nil
		case missing > 0:
			d.lose(p, fmt.Sprintf("part %d of the %d of its body is missing", missing, p.kept.parts), r.Done)
			return nil
		}
	}
	if p.parcel.Delivery.Body, err = unpackBody(p.body, p.encoding); err != nil {
		d.lose(p, "its body cannot be unpacked: "+err.Error(), r.Done)
		return nil
	}
	d.accept(ctx, &task{parcel: p.parcel, done: r.Done, kept: p.kept})
	return nil
}

// gather reads the parts of a parked parcel's body. missing is the number of the first missing
// part, from 1 on. needed is false if the record was handled before: the parcel is parked again, or
// has ended.
func (d *Courier) gather(ctx context.Context, p *parked) (needed bool, missing int, err error) {
	id := p.parcel.Delivery.ID
	get := func(key map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
		out, err := d.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.parked, Key: key, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		return out.Item, nil
	}
	again, err := get(retryKey(id, partParcel))
	if err != nil {
		return false, 0, err
	}
	if parcel, err := decodeParcel(attr.String(again[attrParcel])); err == nil && parcel.Delivery.Attempt >= p.parcel.Delivery.Attempt {
		return false, 0, nil
	}
	found := 0
	p.body, found, err = readParts(ctx, d.o.DB, d.parked, p.kept.key, id, p.kept.parts)
	if err != nil || found == p.kept.parts {
		return true, 0, err
	}
	p.body = nil
	ended, err := get(p.kept.endedKey(id))
	return ended == nil, found + 1, err
}

// codeUnreadable is the code of parked parcels whose items were changed or deleted by someone else.
const codeUnreadable = "UnreadableJob"

// lose makes a dead letter of a damaged parked parcel.
func (d *Courier) lose(p parked, message string, done func()) {
	d.o.Logger.Error("a parked delivery cannot be read and becomes a dead letter", "id", p.parcel.Delivery.ID, "error", message)
	t := &task{parcel: d.prepare(p.parcel), done: done, kept: p.kept, state: over}
	if t.parcel.fits() != "" {
		t.parcel.shrink()
	}
	t.parcel.Last = Failure{codeUnreadable, cutText(message, messageMax)}
	t.lane = d.laneOrNone(t.parcel)
	d.bury(t, "")
}
