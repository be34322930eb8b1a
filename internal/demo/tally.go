package demo

import (
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// tally collects the observations. Its methods may be called from any goroutine.
type tally struct {
	mu struct {
		sync.Mutex
		counts
		lateness lateness
		items    int
		latest   Arrival
	}
}

// counts are numbers of items. The last group counts broken laws.
type counts struct {
	Written int `json:"written"`     // acknowledged
	Before  int `json:"read_before"` // found by a call that ended before the deadline
	Gone    int `json:"read_gone"`   // not found by a call that began at or after the deadline
	Inserts int `json:"insert_records"`
	Removes int `json:"remove_records"`

	Early     int `json:"early"`
	Visible   int `json:"visible"`
	Lost      int `json:"lost"`
	Twice     int `json:"twice"`
	Unmarked  int `json:"unmarked"`
	Altered   int `json:"altered"`
	Remaining int `json:"remaining"`
}

// Arrival is the arrival of a removal's record at the reader.
type Arrival struct {
	Device, Time string
	Temperature  float64 // °C
	Late         time.Duration
}

func newTally(items int) *tally {
	t := new(tally)
	t.mu.items = items
	return t
}

func (t *tally) acknowledged(batch []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range batch {
		e.seen.written = true
	}
	t.mu.Written += len(batch)
}

// written reports for each item of a batch whether its write was acknowledged by now.
func (t *tally) written(batch []*entry) []bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	acknowledged := make([]bool, len(batch))
	for i, e := range batch {
		acknowledged[i] = e.seen.written
	}
	return acknowledged
}

// wasRead checks the answer of a call that began and ended at these times. Only a call entirely
// before or entirely after an item's deadline proves something; in between either answer is right,
// and counts as no observation.
func (t *tally) wasRead(batch []*entry, acknowledged []bool, found map[string]bool, began, ended time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range batch {
		there := found[e.key()]
		switch {
		case !acknowledged[i]: // perhaps not yet written
		case there && !e.deadline.After(began):
			t.mu.Visible++
		case !there && e.deadline.After(ended):
			t.mu.Early++
		case there && e.deadline.After(ended) && !e.seen.before:
			e.seen.before = true
			t.mu.Before++
		case !there && !e.deadline.After(began) && !e.seen.gone:
			e.seen.gone = true
			t.mu.Gone++
		}
	}
}

// arrived checks a page of the stream that a call returned at that time.
func (t *tally) arrived(byKey map[string]*entry, records []types.Record, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		var e *entry
		if r.Dynamodb != nil {
			e = byKey[itemKey(r.Dynamodb.Keys)]
		}
		switch {
		case e == nil:
			t.mu.Altered++
		case r.EventName == types.OperationTypeInsert:
			t.insertedLocked(e, r)
		case r.EventName == types.OperationTypeRemove:
			t.removedLocked(e, r, at)
		default:
			t.mu.Altered++ // nothing modifies an item here
		}
	}
}

func (t *tally) insertedLocked(e *entry, r types.Record) {
	if e.seen.inserted {
		t.mu.Twice++
		return
	}
	e.seen.inserted = true
	t.mu.Inserts++
	if !e.equals(r.Dynamodb.NewImage) {
		t.mu.Altered++
	}
}

func (t *tally) removedLocked(e *entry, r types.Record, at time.Time) {
	if e.seen.removed {
		t.mu.Twice++
		return
	}
	e.seen.removed = true
	t.mu.Removes++
	late := at.Sub(e.deadline)
	if late < 0 {
		t.mu.Early++
	}
	if !byService(r) {
		t.mu.Unmarked++
	}
	if !e.equals(r.Dynamodb.OldImage) || !e.seen.inserted {
		t.mu.Altered++ // a removal's record follows its insertion's
	}
	t.mu.lateness.add(late)
	t.mu.latest = Arrival{Device: e.device, Time: e.reading.time, Temperature: e.reading.temperature, Late: late}
}

func (t *tally) scanned(items int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.Remaining += items
}

// complete reports whether both records of every item have arrived.
func (t *tally) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.Inserts == t.mu.items && t.mu.Removes == t.mu.items
}

// byService reports whether a removal was an expiry, and not a client's request.
func byService(r types.Record) bool {
	u := r.UserIdentity
	return u != nil && u.Type != nil && u.PrincipalId != nil && *u.Type == "Service" && *u.PrincipalId == "dynamodb.amazonaws.com"
}

// equals reports whether an image equals the written item. Numbers are written in the form in which
// they are returned, except for trailing zeros of the deadline's milliseconds.
func (e *entry) equals(image map[string]types.AttributeValue) bool {
	written := e.item()
	for name, want := range written {
		if !sameValue(image[name], want) {
			return false
		}
	}
	return len(image) == len(written)
}

// sameValue reports whether two attribute values are equal strings or equal numbers.
func sameValue(a, b any) bool {
	if text, ok := attr.AsString(a); ok {
		other, ok := attr.AsString(b)
		return ok && text == other
	}
	text, _ := attr.AsNumber(a)
	other, _ := attr.AsNumber(b)
	x, err := strconv.ParseFloat(text, 64)
	y, otherErr := strconv.ParseFloat(other, 64)
	return err == nil && otherErr == nil && x == y
}
