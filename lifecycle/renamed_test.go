package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/lifecycle"
)

// Versions of a lifecycle: with state b, without it, and with b renamed.
const (
	withB    = twoSteps
	withoutB = "lifecycle: two\nstates: [{name: a, next: [{to: c, after: 1h, handler: note}]}, {name: c}]"
	renamedB = `
lifecycle: two
renamed: {b: bee}
states:
  - {name: a, next: [{to: bee, after: 1h, handler: note}]}
  - {name: bee, next: [{to: c, after: 1h, handler: note}, {to: d, after: 3h}]}
  - {name: c}
  - {name: d}
`
)

// Entities of a renamed state continue in the new one, with their next transition.
func TestRenamed(t *testing.T) {
	w := newWorld(t)
	w.apply(withB)
	for _, id := range []string{"e", "paused", "moved"} {
		w.create("two", id)
	}
	w.advance(90 * time.Minute)
	_, err := w.Pause(bg, "two", "paused")
	must(t, err)
	applied, err := w.Apply(bg, read(t, renamedB), lifecycle.ApplyOptions{})
	must(t, err)
	if applied.Renamed != 3 || applied.Stuck != 0 || applied.Entities["bee"] != 3 {
		t.Errorf("%+v", applied)
	}
	w.want([]string{w.state("two", "e"), w.state("two", "paused")}, "bee, c@2h0m0s", "bee, c@2h0m0s (paused)")
	_, err = w.Move(bg, "two", "moved", "d")
	must(t, err)
	w.advance(time.Hour)
	_, err = w.Resume(bg, "two", "paused")
	must(t, err)
	w.advance(time.Hour)
	w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s", "renamed b→bee@1h30m0s", "transition bee→c@2h0m0s")
	w.want(w.events("two", "paused"), "created →a@0s", "transition a→b@1h0m0s", "paused b→b@1h30m0s", "renamed b→bee@1h30m0s", "resumed bee→bee@2h30m0s", "transition bee→c@3h0m0s")
	w.want(w.events("two", "moved"), "created →a@0s", "transition a→b@1h0m0s", "renamed b→bee@1h30m0s", "moved bee→d@1h30m0s")

	// If the new state has no transition to the same target, the next transition is recomputed from
	// the instant at which the entity came.
	w.create("two", "anew")
	w.advance(90 * time.Minute)
	_, err = w.Apply(bg, read(t, "lifecycle: two\nrenamed: {bee: z}\nstates: [{name: a, next: [{to: z, after: 1h}]}, {name: z, next: [{to: d, after: 2h}]}, {name: d}]"), lifecycle.ApplyOptions{})
	must(t, err)
	w.want([]string{w.state("two", "anew")}, "z, d@6h30m0s")
	w.advance(2 * time.Hour)
	w.want([]string{w.state("two", "anew")}, "d (end)")
}

// While a version without the state is applied, a transition by the earlier version brings an
// entity there. The entity reports the problem, and can be moved. If the state was renamed there is
// no problem.
func TestStateGoneMeanwhile(t *testing.T) {
	t.Run("before entities are looked at again", func(t *testing.T) {
		w := newWorld(t)
		w.apply(withB)
		w.create("two", "e")
		applied := w.startApply("PutItem", withoutB)
		w.advance(time.Hour)
		if got := applied(); got.Stuck != 1 || got.Entities["a"] != 1 {
			t.Errorf("%+v", got)
		}
		w.stuck(`version 2 of the definition has no state "b"; move the entity to another state`)
		w.advance(10 * time.Hour)
		w.leaveUnknownState()
	})
	for name, c := range map[string]struct{ file, state, problem string }{
		"after that":              {withoutB, "b, c@2h0m0s", `version 2 of the definition has no state "b"; move the entity to another state`},
		"after that, and renamed": {renamedB, "bee, c@2h0m0s", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(withB)
			w.create("two", "e")
			w.stop()
			g := w.newGate("TransactWriteItems")
			w.run(w.through(g))
			advanced := make(chan struct{})
			go func() {
				defer close(advanced)
				w.advance(time.Hour)
			}()
			g.wait(t)
			other, _ := w.gate("")
			_, err := other.Apply(bg, read(t, strings.ReplaceAll(c.file, ", handler: note", "")), lifecycle.ApplyOptions{})
			must(t, err)
			g.open()
			<-advanced
			e, err := w.Get(bg, "two", "e")
			must(t, err)
			if got := w.state("two", "e"); got != c.state || e.Problem != c.problem {
				t.Fatalf("it is %s, %q", got, e.Problem)
			}
			w.advance(10 * time.Hour)
			if c.problem != "" {
				w.stuck(c.problem)
				w.leaveUnknownState()
			} else {
				w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s", "transition bee→c@2h0m0s")
			}
		})
	}
}

// held starts to apply a definition, and returns a function that continues and waits for the
// result.
func (w *world) startApply(operation, file string) func() lifecycle.Applied {
	w.t.Helper()
	other, g := w.gate(operation)
	type result struct {
		lifecycle.Applied
		err error
	}
	done := make(chan result, 1)
	d := read(w.t, strings.ReplaceAll(file, ", handler: note", ""))
	go func() {
		applied, err := other.Apply(bg, d, lifecycle.ApplyOptions{})
		done <- result{applied, err}
	}()
	g.wait(w.t)
	return func() lifecycle.Applied {
		g.open()
		r := <-done
		must(w.t, r.err)
		return r.Applied
	}
}

// stuck expects entity e to wait in an unknown state.
func (w *world) stuck(problem string) {
	w.t.Helper()
	e, err := w.Get(bg, "two", "e")
	must(w.t, err)
	if e.State != "b" || !e.Next.IsZero() || e.Problem != problem {
		w.t.Fatalf("%+v", e)
	}
	if _, err := w.Apply(bg, read(w.t, strings.ReplaceAll(withoutB, "1h", "2h")), lifecycle.ApplyOptions{}); !errors.As(err, new(*lifecycle.InUse)) {
		w.t.Errorf("another version was applied: %v", err)
	}
	if _, err := w.Reschedule(bg, "two", "e", w.Clock().Now().Add(time.Hour)); !errors.Is(err, lifecycle.ErrNothingNext) {
		w.t.Errorf("it was rescheduled: %v", err)
	}
}

// leaveUnknownState moves entity e out of the unknown state.
func (w *world) leaveUnknownState() {
	w.t.Helper()
	_, err := w.Move(bg, "two", "e", "c")
	must(w.t, err)
	e, err := w.Get(bg, "two", "e")
	must(w.t, err)
	if e.State != "c" || e.Ended != "end" || e.Problem != "" {
		w.t.Errorf("%+v", e)
	}
}

// An entity without a next transition gets one from a definition that has one.
func TestAppliedMends(t *testing.T) {
	w := newWorld(t)
	w.apply(withB)
	w.create("two", "e")
	applied := w.startApply("PutItem", withoutB)
	w.advance(time.Hour)
	applied()
	got, err := w.Apply(bg, read(t, renamedB), lifecycle.ApplyOptions{})
	must(t, err)
	if got.Renamed != 1 || got.Stuck != 0 {
		t.Errorf("%+v", got)
	}
	w.advance(2 * time.Hour)
	w.want([]string{w.state("two", "e")}, "c (end)")
}

// Entities go round while a state is renamed repeatedly: each transition happens once, in order, at
// its instant, and no entity is stuck.
func TestRenamedUnderWay(t *testing.T) {
	w := newWorld(t)
	const round = "lifecycle: two\nrenamed: {OLD: NEW}\nstates: [{name: a, next: [{to: NEW, after: 1h, handler: note}]}, {name: NEW, next: [{to: a, after: 1h, handler: note}]}]"
	name := func(from, to string) lifecycle.Definition {
		return read(t, strings.NewReplacer("OLD", from, "NEW", to).Replace(round))
	}
	_, err := w.Apply(bg, name("b", "bee"), lifecycle.ApplyOptions{})
	must(t, err)
	const entities, hours = 8, 12
	for i := range entities {
		w.create("two", string(rune('a'+i)))
		w.advance(time.Minute)
	}
	end := make(chan struct{})
	applied := make(chan int, 1)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-end:
				applied <- n
				return
			default:
			}
			d := name("b", "bee")
			if n%2 == 0 {
				d = name("bee", "b")
			}
			if _, err := w.Apply(bg, d, lifecycle.ApplyOptions{}); err != nil && !errors.Is(err, lifecycle.ErrBusy) {
				t.Error(err)
			}
		}
	}()
	for range hours * 4 {
		w.advance(15 * time.Minute)
	}
	close(end)
	t.Logf("%d versions", <-applied)
	w.advance(0)
	for i := range entities {
		id := string(rune('a' + i))
		events, err := w.History(bg, "two", id)
		must(t, err)
		made, last := 0, events[0].At
		for g, e := range events {
			if e.Generation != int64(g+1) {
				t.Fatalf("%s: %+v", id, events)
			}
			switch e.Kind {
			case lifecycle.KindTransition:
				made++
				if last = last.Add(time.Hour); !e.Due.Equal(last) || (e.To == "a") != (made%2 == 0) {
					t.Errorf("%s: %+v is not of %s", id, e, last)
				}
			case lifecycle.KindRescheduled, lifecycle.KindRefused:
				t.Errorf("%s: %+v", id, e)
			}
		}
		if made != hours {
			t.Errorf("%s has made %d transitions in %d hours", id, made, hours)
		}
	}
}

// An entity that cannot follow a renamed state because its item would become too large does not
// hold up the others, and is named. After it is made smaller, it follows.
func TestRenamedTooLarge(t *testing.T) {
	w := newWorld(t)
	w.apply("{lifecycle: large, states: [{name: a, next: [{to: b}]}, {name: b}]}")
	w.createFull("large")
	for i := range 20 {
		w.create("large", fmt.Sprint(i))
	}
	next := read(t, strings.ReplaceAll("{lifecycle: large, renamed: {a: long}, states: [{name: long, next: [{to: b}]}, {name: b}]}", "long", strings.Repeat("x", 60)))
	for _, o := range []lifecycle.ApplyOptions{{}, {Reschedule: true}} {
		got, err := w.Apply(bg, next, o)
		must(t, err)
		if want := map[bool][2]int{false: {20, 0}, true: {0, 20}}[o.Reschedule]; got.Renamed != want[0] || got.Rescheduled != want[1] || !slices.Equal(got.Full, []string{"full"}) {
			t.Errorf("%+v", got)
		}
	}
	_, err := w.Set(bg, "large", "full", attrs("x", "y"))
	must(t, err)
	got, err := w.Apply(bg, next, lifecycle.ApplyOptions{Reschedule: true})
	must(t, err)
	if got.Rescheduled != 21 || len(got.Full) != 0 {
		t.Errorf("%+v", got)
	}
}
