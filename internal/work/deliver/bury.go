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

// DeadLettersTable is the table of dead letters. What a parcel's dead letter is about is in attributes that one can filter by; the parcel itself is there to be redriven.
const DeadLettersTable = "mayfly.deadletters"

const (
	attrWhen    = "when"       // it became one, epoch seconds
	attrGone    = "gone"       // when it is forgotten: the TTL attribute
	attrTarget  = "target"     // ARN
	attrSource  = "source"     // ARN
	attrGroup   = "group"      // schedule group or trigger
	attrCode    = "code"       // of the last error
	attrMessage = "message"    // of the last error
	attrTries   = "attempts"   // how many were made
	attrDetails = "attributes" // the message attributes that its target gets
	attrLetter  = "letter"     // which of a delivery's letters it is: random. It is in the keys of its parts
	attrOf      = "dispatcher" // Options.Name of the couriers that have a target for it; absent: the endpoint's own

	// Retention is how long a dead letter is kept.
	Retention = 14 * 24 * time.Hour

	deadBodyMax = 256 << 10 // of a dead letter's delivery, with its attributes: what SQS takes
)

var deadLettersSpec = ensure.Spec{Name: DeadLettersTable, Key: attrID, TTL: attrGone}

// bury makes a dead letter of a task's parcel, which has failed for good: in the table always, and at a target where the parcel names one. The parcel ends when the
// first is durable and the second delivered or parked.
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
	if err != nil { // prepare lets through only what fits
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
		d.accept(d.attempts.ctx, &task{parcel: letter, done: end, hasty: true})
	}))
}

// letter is the parcel that brings a dead letter to its target, and whether its body had to be cut.
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
			delete(attributes, name) // an SQS attribute is not empty
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

// letterID is the id of the delivery of a dead letter. An id has up to 128 characters.
func letterID(id string) string {
	const suffix = ".dead"
	return id[:min(len(id), idMax-len(suffix))] + suffix
}

// letterItem is a dead letter in the table, and the parts of its body.
func (d *Courier) letterItem(t *task, letter *Parcel) (item map[string]types.AttributeValue, parts []write, err error) {
	parcel := t.parcel
	text, err := encodeParcel(&parcel)
	if err != nil {
		return nil, nil, err
	}
	now := d.o.Now()
	details := maps.Clone(letter.Delivery.Attributes)
	delete(details, "IS_PAYLOAD_TRUNCATED") // here it is not
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
