package deliver

import (
	"crypto/rand"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/target"
)

// DeadLettersTable is the table of dead letters. Filters use its attributes; the parcel is stored
// for redriving.
const DeadLettersTable = "mayfly.deadletters"

const (
	attrWhen    = "when"       // instant at which the parcel became a dead letter, in epoch seconds
	attrGone    = "gone"       // instant at which the dead letter is deleted: the TTL attribute
	attrTarget  = "target"     // ARN
	attrSource  = "source"     // ARN
	attrGroup   = "group"      // schedule group or trigger
	attrCode    = "code"       // of the last error
	attrMessage = "message"    // of the last error
	attrTries   = "attempts"   // number of attempts
	attrDetails = "attributes" // message attributes for the dead letter's target
	// random: differs between the letters of one delivery, and is part of the keys of the parts
	attrLetter = "letter"
	// Options.Name of the couriers that have the target; absent: the endpoint's own couriers
	attrOf = "dispatcher"

	// Retention is how long a dead letter is kept.
	Retention = 14 * 24 * time.Hour
)

var deadLettersSpec = ensure.Spec{Name: DeadLettersTable, Key: attrID, TTL: attrGone}

// bury makes a dead letter of a task's parcel, which has failed for good. The letter is written to
// the table, and delivered to the parcel's dead-letter target if it has one. The parcel ends when
// the item is durable and that delivery is made or parked.
func (d *Courier) bury(t *task, exhausted string) {
	d.observe(t, Dropped, t.parcel.Last.Code)
	if t.parcel.deadLetter {
		d.observe(t, DeadLetterFailed, t.parcel.Last.Code)
		d.finish(t)
		return
	}
	end := func() { d.ended(t, Ended{Last: t.parcel.Last, Exhausted: exhausted}) }
	letter, cut := d.letter(t, exhausted)
	item, parts, err := d.letterItem(t, &letter)
	if err != nil { // prepare admits only parcels that fit
		d.o.Logger.Error("a dead letter cannot be stored", "id", t.parcel.Delivery.ID, "error", err)
		return
	}
	d.writer.addBehind(parts, put(DeadLettersTable, item, func() {
		d.observe(t, DeadLettered, t.parcel.Last.Code)
		if t.parcel.DeadLetter == "" {
			end()
			return
		}
		if cut {
			d.observe(t, DeadLetterTruncated, "")
		}
		d.accept(d.attempts.ctx, &task{parcel: letter, done: end, impatient: true})
	}))
}

// giveUp buries a task that has not passed a lane.
func (d *Courier) giveUp(t *task, exhausted string) {
	t.parcel = d.prepare(t.parcel)
	if t.parcel.fits() != "" {
		t.parcel.shrink()
	}
	t.target = t.parcel.Delivery.TargetARN
	if l, err := d.lane(t.target); err == nil {
		t.target = l.name
		l.users.Add(-1)
	}
	d.bury(t, exhausted)
}

// letter returns the parcel that delivers a dead letter, and reports whether its body was cut.
func (d *Courier) letter(t *task, exhausted string) (letter Parcel, cut bool) {
	of := d.delivery(t)
	attributes := map[string]string{
		"ERROR_CODE":     t.parcel.Last.Code,
		"ERROR_MESSAGE":  t.parcel.Last.Message,
		"EXECUTION_ID":   of.ID[:min(16, len(of.ID))],
		"RETRY_ATTEMPTS": strconv.Itoa(t.parcel.Delivery.Attempt - 1),
		"SCHEDULED_TIME": of.Time.UTC().Format("2006-01-02T15:04:05.999Z07:00"),
		"SCHEDULE_ARN":   of.Source,
		"TARGET_ARN":     of.TargetARN,
	}
	if exhausted != "" {
		attributes["EXHAUSTED_RETRY_CONDITION"] = exhausted
	}
	size := len("IS_PAYLOAD_TRUNCATEDtrueString")
	for name, value := range attributes {
		if value == "" {
			delete(attributes, name) // SQS refuses empty attributes
			continue
		}
		size += len(name) + len(value) + len("String")
	}
	body := of.Body
	if room := deadBodyMax - size; len(body) > room {
		for body = body[:room]; len(body) > room-utf8.UTFMax && !utf8.RuneStart(of.Body[len(body)]); {
			body = body[:len(body)-1]
		}
		attributes["IS_PAYLOAD_TRUNCATED"] = "true"
		cut = true
	}
	return Parcel{
		Delivery: target.Delivery{
			ID: letterID(of.ID), Source: of.Source, Type: of.Type, Subject: of.Subject, Time: of.Time, ContentType: of.ContentType, Body: body,
			Attributes: attributes, TargetARN: t.parcel.DeadLetter,
		},
		Group: t.parcel.Group, deadLetter: true,
	}, cut
}

// letterID returns the ID of a dead letter's delivery, of at most 128 characters.
func letterID(id string) string {
	const suffix = ".dead"
	return id[:min(len(id), idMax-len(suffix))] + suffix
}

// letterItem returns a dead letter's item and the writes of its body's parts.
func (d *Courier) letterItem(t *task, letter *Parcel) (item map[string]types.AttributeValue, parts []write, err error) {
	parcel := t.parcel
	text, err := encodeParcel(&parcel)
	if err != nil {
		return nil, nil, err
	}
	now := d.o.Now()
	details := maps.Clone(letter.Delivery.Attributes)
	delete(details, "IS_PAYLOAD_TRUNCATED") // the item has the whole body
	gone, which := attr.Seconds(now.Add(Retention)), rand.Text()
	item = map[string]types.AttributeValue{
		attrID:      attr.S(parcel.Delivery.ID),
		attrWhen:    attr.Seconds(now),
		attrGone:    gone,
		attrTarget:  attr.S(parcel.Delivery.TargetARN),
		attrSource:  attr.S(parcel.Delivery.Source),
		attrGroup:   attr.S(parcel.Group),
		attrCode:    attr.S(parcel.Last.Code),
		attrMessage: attr.S(parcel.Last.Message),
		attrTries:   attr.Int(parcel.Delivery.Attempt),
		attrDetails: attr.Strings(details),
		attrLetter:  attr.S(which),
		attrParcel:  attr.S(text),
	}
	if d.o.Name != "" {
		item[attrOf] = attr.S(d.o.Name)
	}
	parts = partPuts(DeadLettersTable, letterParts(which), parcel.Delivery.ID, packBody(item, parcel.Delivery.Body))
	for i := range parts {
		parts[i].request.PutRequest.Item[attrGone] = gone
	}
	return item, parts, nil
}
