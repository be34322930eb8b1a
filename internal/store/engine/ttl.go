package engine

import (
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/ttl"
)

// fiveYears is the age from which a TTL value counts as a mistake and arms nothing.
const fiveYears = Instant(ttl.TooOld)

// headerFor returns the header of the item under a key, with its deadline under the table's present
// TTL setting. now is the instant of the write, or of the enabling for an older item.
func (d *TableDesc) headerFor(key Key, item dynamo.Item, now Instant) header {
	h := noDeadline(d.TTL.Generation, item.Size())
	if d.TTL.Attribute == "" {
		return h
	}
	at, ok := millisOf(item.Get(d.TTL.Attribute))
	if !ok || at <= now-fiveYears {
		return h
	}
	h.deadline = at
	h.removal = d.TTL.Expiry.removal(h.deadline, now, key)
	return h
}

// millisOf returns the instant in a TTL attribute, or false if there is none.
func millisOf(v dynamo.Value) (at Instant, ok bool) {
	if v == nil || v.Kind() != dynamo.KindNumber {
		return 0, false
	}
	ms, ok := v.Number().Millis()
	return Instant(ms), ok
}

// deadlineOf returns the deadline that counts for a stored item: its own under the present TTL
// generation; under an earlier one only a deadline that had passed when that generation ended.
func (d *TableDesc) deadlineOf(h header) Instant {
	if h.deadline == Never {
		return Never
	}
	if h.generation >= d.TTL.Generation { // a later one: the item was written after d was loaded
		return h.deadline
	}
	if at, ok := d.TTL.endOf(h.generation); ok && h.deadline <= at {
		return h.deadline
	}
	return Never
}

// endOf returns the instant at which an earlier generation ended.
func (t *TTLDesc) endOf(generation uint32) (at Instant, ok bool) {
	for _, ends := range [][]GenerationEnd{t.Ended, t.Backfilled} {
		for _, e := range ends {
			if e.Generation == generation {
				return e.At, true
			}
		}
	}
	return 0, false
}

// expired reports whether a stored item no longer exists at now. In aws expiry it exists until its
// removal.
func (d *TableDesc) expired(h header, now Instant) bool {
	if h.late() && h.generation >= d.TTL.Generation || invariant.Injected(invariant.ShowExpired) {
		return false
	}
	if invariant.Injected(invariant.FireEarly) {
		now += 1000
	}
	return d.deadlineOf(h) <= now
}
