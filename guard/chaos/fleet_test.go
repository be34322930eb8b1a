package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// A fleet loses, pauses and gets a worker, and keeps its promises.
func TestFleet(t *testing.T) {
	var r fleetReport
	o := ended(t, "fleet")
	decode(t, o, &r)
	var happened []string
	for _, e := range r.Events {
		happened = append(happened, e.What)
	}
	if o.code != 0 || r.Items != 1000 || r.Failed > 0 || !slices.Equal(happened, []string{"killed", "paused", "added"}) {
		t.Errorf("exit code %d: %+v", o.code, r.counts)
	}
	if !strings.Contains(r.Command, "--settle 2m") {
		t.Errorf("the command %q does not repeat the run", r.Command)
	}
	// Each item has been removed, freed or deleted by the load. 20 were to be freed or deleted.
	if r.Removals < 980 || r.Removals > 1000 || r.Late.Count != r.Removals {
		t.Errorf("%d removals, %d with a lateness", r.Removals, r.Late.Count)
	}
	due, removed := 0, 0
	for _, s := range r.Seconds {
		due, removed = due+s.Late.Count, removed+s.Removed
	}
	if due != r.Removals || removed != r.Removals {
		t.Errorf("over time: %d were due and %d removed, of %d", due, removed, r.Removals)
	}
}

// A change of a worker without a process fails, and ends its replacement.
func TestChangesNeedAProcess(t *testing.T) {
	w := &worker{fleet: &fleet{program: []string{"does-not-exist"}, plan: newPlan(1, "stream", nil), ledger: newLedger(0)}, ready: make(chan struct{})}
	if _, err := w.suspend(); !errors.Is(err, errNoProcess) {
		t.Errorf("stop: %v", err)
	}
	if err := w.retire(); !errors.Is(err, errNoProcess) {
		t.Errorf("kill: %v", err)
	}
	w.run(t.Context()) // it returns
	if w.restarts != 0 || w.ledger.Died != 0 {
		t.Errorf("%d restarts, %q", w.restarts, w.ledger.findings)
	}
}

// A dead worker ends the wait for the others.
func TestDeathEndsTheWait(t *testing.T) {
	f := &fleetRun{ledger: newLedger(0)}
	f.fleet = &fleet{ledger: f.ledger, workers: []*worker{{fleet: &fleet{}, ready: make(chan struct{})}}}
	c, cancel := f.untilDeath(t.Context(), time.Hour)
	defer cancel()
	f.ledger.died("bad-table nothing")
	f.ledger.died("and again")
	if err := f.fleet.awaitReady(c); err == nil || !strings.Contains(err.Error(), "bad-table nothing") {
		t.Error(err)
	}
}

// A fleet of broken workers is found.
func TestFleetFlawsAreFound(t *testing.T) {
	for flaw, found := range map[string]func(fleetReport) int{
		"careless": func(r fleetReport) int { return r.Wrong },
		"early":    func(r fleetReport) int { return r.Early },
		"idle":     func(r fleetReport) int { return r.Left },
	} {
		t.Run(flaw, func(t *testing.T) {
			var r fleetReport
			o := ended(t, "fleet "+flaw)
			decode(t, o, &r)
			if flaw == "careless" && r.Batched == 0 {
				t.Error("nothing was removed in a transaction")
			}
			if o.code != exitBroken || found(r) == 0 || len(r.Findings) == 0 {
				t.Errorf("exit code %d: %+v", o.code, r.counts)
			}
			if !strings.Contains(o.err.String(), "next: repeat the run with: go run ./guard/chaos fleet --pending 100 --rate 50") {
				t.Error("it does not say how to repeat the run")
			}
		})
	}
}

// A pending item that is missing is a finding.
func TestPendingItemsAreCounted(t *testing.T) {
	l := newLedger(0)
	l.comparePending(10, 10)
	if l.Wrong != 0 {
		t.Errorf("10 of 10: %q", l.findings)
	}
	l.comparePending(7, 10)
	if l.Wrong != 3 || len(l.findings) != 1 {
		t.Errorf("7 of 10: %d, %q", l.Wrong, l.findings)
	}
	l = newLedger(0)
	l.removed(image{"pending-1", 0}, 5)
	l.comparePending(9, 10)
	if l.Wrong != 1 {
		t.Errorf("a removal that was seen: %d, %q", l.Wrong, l.findings)
	}
}

// The deadlines are spread evenly, or rounded up to whole seconds, and changes come around them.
func TestWave(t *testing.T) {
	w := &wave{count: 300, rate: 100, ahead: 2000}
	w.begin(10_500)
	if w.first != 13_000 || w.deadline(1) != 13_010 || w.deadline(299) != 15_990 {
		t.Errorf("from %d: %d, %d", w.first, w.deadline(1), w.deadline(299))
	}
	changed := 0
	for n := range w.count {
		if at := w.changeAt(n); at != 0 {
			changed++
			if d := at - w.deadline(n); d < -100 || d > 50 {
				t.Errorf("item %d is changed %d ms after its deadline", n, d)
			}
		}
	}
	if changed != 36 {
		t.Errorf("%d of 300 items are changed", changed)
	}
	w.whole, w.ahead = true, 5000
	if w.renewedBy() != 3000 {
		t.Errorf("renewed by %d ms", w.renewedBy())
	}
	if w.deadline(0) != 13_000 || w.deadline(1) != 14_000 || w.deadline(100) != 14_000 || w.deadline(101) != 15_000 {
		t.Errorf("whole seconds: %d, %d, %d, %d", w.deadline(0), w.deadline(1), w.deadline(100), w.deadline(101))
	}
}

// The course has latenesses by the deadline's second, and removals by their own. The picture shows
// both, and the events.
func TestPicture(t *testing.T) {
	c := course{first: 1000}
	c.add(1000, 5)
	c.add(1999, 3001)
	r := fleetReport{Seconds: c.seconds(), Events: []event{{1, "killed"}}, Late: lateness{2, 5, 5, 3001}}
	if s := r.Seconds; len(s) != 5 || s[0].Late != (lateness{2, 5, 5, 3001}) || s[0].Removed != 1 || s[4].Removed != 1 || s[4].Late.Count != 0 {
		t.Errorf("seconds: %+v", s)
	}
	picture := r.picture()
	for _, want := range []string{"a worker killed", "10 s", "Removals in each second", "p99"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
