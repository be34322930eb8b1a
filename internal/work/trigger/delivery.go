package trigger

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

const (
	deliveryType = "DynamoDB Stream Records"
	contentJSON  = "application/json"
)

// hash returns 32 hex digits that depend on all texts.
func hash(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// delivery returns the delivery of a batch.
func (l *lane) delivery(entries []entry, attempt int) target.Delivery {
	first, last := entries[0], entries[len(entries)-1]
	d := target.Delivery{
		ID: hash(l.id, l.name, first.sequence, last.sequence), Source: l.arn, Type: deliveryType, Time: first.written, Attempt: attempt,
		ContentType: contentJSON, Body: payload(entries), TargetARN: l.target,
	}
	if l.feed != nil { // each delivery has one record
		d.Type, d.Body = feedType, first.json
	}
	if len(entries) == 1 {
		d.Key, d.Subject = hash(string(first.key)), string(first.key)
	}
	return d
}

// recordDelivery returns the delivery of a single record.
func (l *lane) recordDelivery(e entry, attempt int) target.Delivery {
	d := l.delivery([]entry{e}, attempt)
	d.ID = e.id
	return d
}

// parcel returns a single record as a parcel, for the courier to retry.
func (l *lane) parcel(e entry) deliver.Parcel {
	return deliver.Parcel{Delivery: l.recordDelivery(e, 1), Policy: l.policy(), DeadLetter: l.onFailure, Group: l.group(), First: l.o.Clock.Now()}
}

// policy returns the limits of the courier's retries.
func (p *plan) policy() (policy deliver.Policy) {
	if p.retries != infinite {
		policy.MaxAttempts = p.retries + 1
	}
	policy.MaxAge = p.age
	return policy
}

// payload returns the JSON value that a function receives.
func payload(entries []entry) []byte {
	size := len(eventOpen) + len(eventClose)
	for i := range entries {
		size += len(entries[i].json) + len(",")
	}
	body := append(make([]byte, 0, size), eventOpen...)
	for i := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, entries[i].json...)
	}
	return append(body, eventClose...)
}
