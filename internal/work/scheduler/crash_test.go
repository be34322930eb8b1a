package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/kv"
	"github.com/mayflydb/mayfly/target"
)

// The power is cut repeatedly while schedules are created and fire. Each acknowledged schedule
// fires at all of its occurrences, and each firing has one ID, however often it is delivered. Each
// cut comes after a number of acknowledged schedules, so slow machines have as many.
func TestPowerCuts(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(t, "data", func(w *world) { w.disk = kv.NewCrashFS() })
	type known struct {
		once     time.Time     // of a one-time schedule
		interval time.Duration // of a recurring schedule, until end
		end      time.Time
		answered time.Time
	}
	acknowledged := map[string]known{}
	ids := map[string]string{} // by schedule and occurrence
	deliveries, before := 0, 0 // before counts the deliveries before the round's cut
	note := func(all []target.Delivery) {
		for _, d := range all {
			at := d.Subject + " " + d.Time.Format(time.RFC3339Nano)
			if ids[at] != "" && ids[at] != d.ID {
				t.Errorf("%s has two ids", at)
			}
			ids[at] = d.ID
			deliveries++
		}
	}
	n := 0
	for range 12 {
		w.disk.KeepUnsynced(random.IntN(101), random.Uint64())
		if err := w.engine.Clock().SetRate(1); err != nil {
			t.Fatal(err)
		}
		w.engine.Clock().Run()
		enough, most := len(acknowledged)+10+random.IntN(50), time.Duration(1+random.IntN(30))*time.Millisecond
		for cut := false; !w.disk.WasCut(); {
			if !cut && len(acknowledged) >= enough {
				cut = true
				time.AfterFunc(most, w.disk.CutNow)
			}
			if n++; n > 50_000 {
				t.Fatalf("%d of %d schedules were acknowledged, and the power was not cut", len(acknowledged), n)
			}
			now := w.Scheduler.now()
			k := known{once: now.Add(time.Duration(random.IntN(300)) * time.Millisecond)}
			text, more := "instant("+k.once.Format("2006-01-02T15:04:05.000")+")", []string{}
			if n%3 == 0 {
				k = known{interval: time.Duration(20+random.IntN(30)) * time.Millisecond, end: now.Add(time.Duration(random.IntN(500)) * time.Millisecond)}
				text, more = fmt.Sprintf("every(%d milliseconds)", k.interval.Milliseconds()), []string{`"EndDate":` + epoch(k.end)}
			}
			if n%2 == 0 {
				more = append(more, `"ActionAfterCompletion":"DELETE"`)
			}
			name := fmt.Sprintf("s%d", n)
			if _, err := w.call("POST", "/schedules/"+name, body(text, more...), headerCatchUp, "all"); err == nil {
				k.answered = w.Scheduler.now()
				acknowledged[name] = k
			}
			time.Sleep(time.Millisecond)
		}
		w.stop()
		fired := w.taken()
		before += len(fired)
		note(fired)
		w.disk = w.disk.AfterCrash()
		w.start()
	}
	w.advance(time.Hour)
	note(w.taken())
	anchors := map[string]time.Time{}
	for at := range ids {
		var name, when string
		if _, err := fmt.Sscan(at, &name, &when); err != nil {
			t.Fatal(err)
		}
		if first, err := time.Parse(time.RFC3339Nano, when); err == nil && (anchors[name].IsZero() || first.Before(anchors[name])) {
			anchors[name] = first
		}
	}
	for name, k := range acknowledged {
		if k.interval == 0 {
			if ids[name+" "+k.once.Format(time.RFC3339Nano)] == "" {
				t.Errorf("%s did not fire at %v", name, k.once)
			}
			continue
		}
		anchor := anchors[name] // time of creation, the first occurrence
		if anchor.IsZero() || anchor.After(k.answered) {
			if k.end.After(k.answered) {
				t.Errorf("%s was created by %v, and fired first at %v; it ends at %v", name, k.answered, anchor, k.end)
			}
			continue
		}
		for at := anchor; !at.After(k.end); at = at.Add(k.interval) {
			if ids[name+" "+at.Format(time.RFC3339Nano)] == "" {
				t.Errorf("%s did not fire at %v, between %v and %v", name, at, anchor, k.end)
			}
		}
	}
	t.Logf("%d schedules were acknowledged of %d, %d firings, %d deliveries, %d of them before a cut", len(acknowledged), n, len(ids), deliveries, before)
	if before < 100 {
		t.Errorf("too mild: %d deliveries before the cuts", before)
	}
}
