package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The tests here change the world between the decision and the commit of a write or a reap. A
// Decide with a side effect on its first run simulates another goroutine.

// overtaken writes an item if it is not nil, and calls happen after the first decision.
func (d *db) overtaken(tab *Table, it dynamo.Item, happen func()) (runs int, w *Write, err error) {
	gone := errors.New("there is none")
	w = &Write{Table: tab, Key: keyOf(d.t, tab, it), ReadOld: true, Decide: func(old dynamo.Item, _ Instant) (dynamo.Item, error) {
		if runs++; runs == 1 {
			happen()
		}
		if old == nil {
			return nil, gone
		}
		return it, nil
	}}
	err = d.Write(context.Background(), w)
	return runs, w, err
}

// A write whose item expires between decision and commit decides again, and sees none.
func TestExpiryOvertakesWrite(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(time.Second)))
	runs, w, err := d.overtaken(tab, item("pk", "a", "sk", 1, "n", 2), func() {
		if err := d.clock.Advance(time.Second); err != nil {
			t.Error(err)
		}
	})
	if runs != 2 || !errors.Is(err, ErrRefused) || w.Err == nil {
		t.Errorf("%d decisions, %v, %v", runs, err, w.Err)
	}
	if n := len(d.records(tab)); n != 1 {
		t.Errorf("%d records, want that of the first put", n)
	}
}

// A write that a change of the table overtakes is decided again under the new description.
func TestAlterOvertakesWrite(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	d.put(tab, item("pk", "a", "sk", 1))
	it := item("pk", "a", "sk", 1, "ttl", unix(time.Minute), "u", unix(time.Hour))
	runs, _, err := d.overtaken(tab, it, func() { d.setTTL("events", "u") })
	if err != nil || runs != 2 {
		t.Fatalf("%d decisions: %v", runs, err)
	}
	if h, _ := d.stored(tab, it); h.generation != 2 || h.deadline != Instant(unix(time.Hour))*1000 {
		t.Errorf("written with %+v", h)
	}
	runs, _, err = d.overtaken(tab, it.With("n", number("1")), func() { alterStream(t, d, tab, "") })
	if err != nil || runs != 2 {
		t.Errorf("%d decisions: %v", runs, err)
	}
	if n := len(d.records(tab)); n != 2 {
		t.Errorf("%d records, want those from before the stream was disabled", n)
	}
	runs, _, err = d.overtaken(tab, it.With("n", number("2")), func() { d.drop(tab) })
	if runs != 1 || !errors.Is(err, ErrTableNotFound) {
		t.Errorf("%d decisions: %v", runs, err)
	}
	for _, p := range d.dump() {
		if p.key[0] == spaceItems {
			t.Errorf("written into a dropped table: %v", p)
		}
	}
}

// A reap that a change of the table overtakes does nothing, and is repeated.
func TestAlterOvertakesReap(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events")
	d.still()
	d.put(tab, item("pk", "a", "sk", 1, "ttl", unix(time.Second)))
	s := d.collect(tab, Never-1)
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	alterStream(t, d, tab, "")
	if err := s.reap(); !errors.Is(err, errStale) {
		t.Errorf("a reap that was overtaken: %v", err)
	}
	if _, it := d.stored(tab, item("pk", "a", "sk", 1)); it == nil {
		t.Error("it removed its item")
	}
	if err := d.collect(tab, Never-1).reap(); err != nil {
		t.Errorf("the next: %v", err)
	}
	if _, it := d.stored(tab, item("pk", "a", "sk", 1)); it != nil {
		t.Error("the next removed nothing")
	}
	d.verify()
}

// Sequence numbers continue after a removed stream.
func TestSequenceSurvivesStream(t *testing.T) {
	dir := newDirectory()
	d := dir.open(t)
	tab := d.table("events")
	count(d, tab, 3, 0, 3)
	alterStream(t, d, tab, "")
	last := d.NextSeq()
	d.advance(25 * time.Hour)
	if s, err := d.Streams(); err != nil || len(s) != 0 {
		t.Fatalf("%d streams are left: %v", len(s), err)
	}
	d.close()
	d = dir.open(t)
	alterStream(t, d, d.reopened("events"), "KEYS_ONLY")
	if next := d.NextSeq(); next < last {
		t.Errorf("the next number is %d; %d was told before", next, last)
	}
}
