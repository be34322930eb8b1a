package lifecycle_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/lifecycle"
)

const subscription = `
lifecycle: sub
attributes: {wait: "S?", ends: "S?", paid: "BOOL?"}
values: {yes: true}
states:
  - name: trial
    next:
      - {to: active, after: 2h, when: "paid = :yes", handler: note}
      - {to: over, after: 3h}
      - {to: active, when: "paid = :yes", handler: note}
      - {to: waiting}
      - {to: held}
  - name: active
  - name: over
    keep: 2d
  - name: waiting
    next: [{to: over, after: $wait}]
  - name: held
    next: [{to: over, from: ends, after: -1h}, {to: trial}]
`

// A pause stops the time. After Resume the remaining time is unchanged; a fixed instant stays.
func TestPause(t *testing.T) {
	w := newWorld(t)
	w.apply(subscription)
	w.create("sub", "e")
	w.create("sub", "instant", "ends", "2030-01-01T06:00:00Z")
	_, err := w.Move(bg, "sub", "instant", "held")
	must(t, err)
	w.advance(time.Hour)
	for _, id := range []string{"e", "instant"} {
		_, err = w.Pause(bg, "sub", id)
		must(t, err)
	}
	if _, err := w.Pause(bg, "sub", "e"); !errors.Is(err, lifecycle.ErrPaused) {
		t.Errorf("paused twice: %v", err)
	}
	if _, err := w.Move(bg, "sub", "e", "waiting"); !errors.Is(err, lifecycle.ErrPaused) {
		t.Errorf("moved while paused: %v", err)
	}
	if n := w.parts("sub")["next"]; n != 0 {
		t.Errorf("%d transitions are pending", n)
	}
	w.advance(99 * time.Hour)
	w.want([]string{w.state("sub", "e")}, "trial, active@2h0m0s (paused)")
	for _, id := range []string{"e", "instant"} {
		_, err = w.Resume(bg, "sub", id)
		must(t, err)
	}
	w.want([]string{w.state("sub", "e")}, "trial, active@101h0m0s")
	w.advance(3 * time.Hour)
	w.want(w.events("sub", "e"), "created →trial@0s", "paused trial→trial@1h0m0s", "resumed trial→trial@100h0m0s", "refused trial→trial@101h0m0s", "transition trial→over@102h0m0s")
	w.want(w.events("sub", "instant"), "created →trial@0s", "moved trial→held@0s", "paused held→held@1h0m0s", "resumed held→held@100h0m0s", "transition held→over@100h0m0s")
	if _, err := w.Resume(bg, "sub", "e"); !errors.Is(err, lifecycle.ErrEnded) {
		t.Errorf("resumed at its end: %v", err)
	}
	w.advance(3 * 24 * time.Hour)
	if _, err := w.Get(bg, "sub", "e"); !errors.Is(err, lifecycle.ErrNoEntity) {
		t.Errorf("it was to be kept for two days: %v", err)
	}
}

// Conditions choose between transitions at their instant, and a Move must meet them too.
func TestConditions(t *testing.T) {
	w := newWorld(t)
	w.apply(subscription)
	w.create("sub", "pays")
	w.create("sub", "pays directly")
	w.create("sub", "late")
	w.create("sub", "never")
	if _, err := w.Move(bg, "sub", "pays", "active"); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("moved without having paid: %v", err)
	}
	if _, err := w.Move(bg, "sub", "pays", "over"); err != nil && !errors.Is(err, lifecycle.ErrRefused) {
		t.Error(err)
	}
	if _, err := w.Move(bg, "sub", "never", "nowhere"); !errors.Is(err, lifecycle.ErrNotAllowed) {
		t.Errorf("moved to a state that there is not: %v", err)
	}
	_, err := w.Delete(bg, "sub", "pays")
	must(t, err)
	w.create("sub", "pays")
	_, err = w.Set(bg, "sub", "pays", attrs("paid", true))
	must(t, err)
	// a direct write, as any client may make
	_, err = w.DynamoDB().UpdateItem(bg, &dynamodb.UpdateItemInput{
		TableName: aws.String(lifecycle.EntityTable("sub")), Key: itemKey("pays directly", "entity"), UpdateExpression: aws.String("SET paid = :yes"), ExpressionAttributeValues: attrs(":yes", true),
	})
	must(t, err)
	w.advance(150 * time.Minute)
	_, err = w.Set(bg, "sub", "late", attrs("paid", true))
	must(t, err)
	w.advance(10 * time.Hour)
	for id, want := range map[string]string{"pays": "active (end)", "pays directly": "active (end)", "late": "over (end)", "never": "over (end)"} {
		if got := w.state("sub", id); got != want {
			t.Errorf("%s is %s, and was to be %s", id, got, want)
		}
	}
	w.want(w.calls(), "pays directly trial→active@2h0m0s", "pays trial→active@2h0m0s")
	w.create("sub", "by hand", "paid", true)
	_, err = w.Move(bg, "sub", "by hand", "active")
	must(t, err)
	w.advance(0)
	if n := len(w.calls()); n != 3 {
		t.Errorf("the call of a Move was not made: %v", w.calls())
	}
}

// A rescheduled transition that is refused gives way to those that it delayed.
func TestPutOffAndRefused(t *testing.T) {
	w := newWorld(t)
	w.apply(subscription)
	w.create("sub", "e")
	w.create("sub", "sooner")
	_, err := w.Reschedule(bg, "sub", "e", begin.Add(10*time.Hour))
	must(t, err)
	_, err = w.Reschedule(bg, "sub", "sooner", begin.Add(time.Hour))
	must(t, err)
	w.advance(9 * time.Hour)
	w.want([]string{w.state("sub", "e"), w.state("sub", "sooner")}, "trial, active@10h0m0s", "over (end)")
	w.advance(time.Hour)
	w.want(w.events("sub", "e"), "created →trial@0s", "rescheduled trial→trial@0s", "transition trial→over@10h0m0s")
	w.want(w.events("sub", "sooner"), "created →trial@0s", "rescheduled trial→trial@0s", "refused trial→trial@1h0m0s", "transition trial→over@3h0m0s")
}

// Attributes that set times are checked, and the times follow them.
func TestSet(t *testing.T) {
	w := newWorld(t)
	w.apply(subscription)
	w.create("sub", "e")
	if _, err := w.Move(bg, "sub", "e", "waiting"); err == nil || !strings.Contains(err.Error(), `attribute "wait", the time to wait, is missing`) {
		t.Errorf("moved to where a time is needed: %v", err)
	}
	_, err := w.Set(bg, "sub", "e", attrs("wait", "1 day"))
	must(t, err)
	_, err = w.Move(bg, "sub", "e", "waiting")
	must(t, err)
	w.want([]string{w.state("sub", "e")}, "waiting, over@24h0m0s")
	w.advance(time.Hour)
	_, err = w.Set(bg, "sub", "e", attrs("wait", "2h", "note", "n"))
	must(t, err)
	w.want([]string{w.state("sub", "e")}, "waiting, over@2h0m0s")
	for _, bad := range []lifecycle.Item{attrs("wait", nil), attrs("wait", "soon"), attrs("wait", 5), attrs("_state", "over"), attrs("due", 5), attrs("wait", "3 business days")} {
		if _, err := w.Set(bg, "sub", "e", bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	if _, err := w.Create(bg, "sub", "e", nil); !errors.Is(err, lifecycle.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	if _, err := w.Create(bg, "sub", "f", attrs("paid", "yes")); err == nil || !strings.Contains(err.Error(), `attribute "paid" has the type S and must have BOOL`) {
		t.Errorf("of a wrong type: %v", err)
	}
	if _, err := w.Create(bg, "none", "f", nil); !errors.Is(err, lifecycle.ErrNoLifecycle) {
		t.Errorf("of no lifecycle: %v", err)
	}
	if _, err := w.Create(bg, "sub", strings.Repeat("x", 600), nil); !errors.Is(err, lifecycle.ErrID) {
		t.Errorf("with a long name: %v", err)
	}
	w.advance(time.Hour)
	w.want([]string{w.state("sub", "e")}, "over (end)")
}

// Concurrent changes of an entity: each is made once, on the latest state, and one transition is
// pending.
func TestTogether(t *testing.T) {
	w := newWorld(t)
	w.apply(subscription)
	w.create("sub", "e")
	var work sync.WaitGroup
	for i := range 10 {
		work.Go(func() {
			_, err := w.Reschedule(bg, "sub", "e", begin.Add(time.Duration(i+10)*time.Hour))
			if err != nil && !errors.Is(err, lifecycle.ErrBusy) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	e, err := w.Get(bg, "sub", "e")
	must(t, err)
	events := w.events("sub", "e")
	if int(e.Generation) != len(events) || w.parts("sub")["next"] != 1 {
		t.Errorf("generation %d, events %v, parts %v", e.Generation, events, w.parts("sub"))
	}
}

// Transitions that were missed while no worker ran are made up: the entity passes through the
// states, and the handlers are called as the definition says.
func TestLate(t *testing.T) {
	for late, want := range map[string][]string{
		lifecycle.LateAll:  {"e a→b@1h0m0s", "e b→c@2h0m0s", "e c→d@3h0m0s", "e d→e@10h0m0s"},
		lifecycle.LateLast: {"e c→d@3h0m0s", "e d→e@10h0m0s"},
		lifecycle.LateSkip: {"e d→e@10h0m0s"},
	} {
		t.Run(late, func(t *testing.T) {
			w := newWorld(t)
			w.apply(`
lifecycle: late
late: ` + late + `
states:
  - {name: a, next: [{to: b, after: 1h, handler: note}]}
  - {name: b, next: [{to: c, after: 1h, handler: note}]}
  - {name: c, next: [{to: d, after: 1h, handler: note}]}
  - {name: d, next: [{to: e, after: 7h, handler: note}]}
  - {name: e}
`)
			w.create("late", "e")
			w.stop()
			w.advance(5 * time.Hour)
			w.run(w.options())
			w.advance(0)
			w.want([]string{w.state("late", "e")}, "d, e@10h0m0s")
			w.advance(6 * time.Hour)
			w.want(w.calls(), want...)
			w.want(w.events("late", "e"), "created →a@0s", "transition a→b@1h0m0s", "transition b→c@2h0m0s", "transition c→d@3h0m0s", "transition d→e@10h0m0s")
		})
	}
}

// A new definition cannot drop states in use. Pending transitions stay, or are recomputed on
// request.
func TestApply(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	w.create("two", "e")
	w.advance(90 * time.Minute)
	w.want([]string{w.state("two", "e")}, "b, c@2h0m0s")
	_, err := w.Apply(bg, read(t, "lifecycle: two\nstates: [{name: a, next: [{to: c, after: 1h}]}, {name: c}]"), lifecycle.ApplyOptions{})
	var inUse *lifecycle.InUse
	if !errors.As(err, &inUse) || fmt.Sprint(inUse.States) != "map[b:1]" {
		t.Fatalf("a state in use was taken away: %v", err)
	}
	slower := read(t, strings.ReplaceAll(twoSteps, "1h", "5h"))
	applied, err := w.Apply(bg, slower, lifecycle.ApplyOptions{})
	must(t, err)
	if applied.Version != 2 || applied.Entities["b"] != 1 {
		t.Errorf("%+v", applied)
	}
	w.want([]string{w.state("two", "e")}, "b, c@2h0m0s")
	applied, err = w.Apply(bg, slower, lifecycle.ApplyOptions{Reschedule: true})
	must(t, err)
	if !applied.Unchanged || applied.Version != 2 || applied.Rescheduled != 1 {
		t.Errorf("%+v", applied)
	}
	w.want([]string{w.state("two", "e")}, "b, c@6h0m0s")
	other := read(t, "lifecycle: two\nstates: [{name: a, next: [{to: b, after: 1h}]}, {name: b, next: [{to: d, after: 9h}]}, {name: d}]")
	_, err = w.Apply(bg, other, lifecycle.ApplyOptions{})
	must(t, err)
	w.advance(10 * time.Hour)
	w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s", "rescheduled b→b@1h30m0s", "rescheduled b→b@6h0m0s", "transition b→d@10h0m0s")
	if _, err := w.Apply(bg, read(t, strings.Replace(twoSteps, "handler: note", "handler: nobody", 1)), lifecycle.ApplyOptions{}); lifecycle.FaultsOf(err) == nil {
		t.Errorf("an unknown handler was taken: %v", err)
	}
}

// A definition with texts of several lines that begin with white space, as Go's raw strings do, is
// stored as it is: other processes can read it.
func TestLineBreaks(t *testing.T) {
	w := newWorld(t)
	d := lifecycle.Definition{Name: "visit", Attributes: map[string]string{"\nstarts": "S?"}, States: []lifecycle.State{
		{Name: "booked", Next: []lifecycle.Transition{
			{To: "over", After: "1 hour", When: "\n  attribute_exists(title)", Handler: "note", Input: "\tDear <$.title>,\n\nbye"},
			{To: "over", From: "\nstarts", Handler: "note", Input: map[string]any{"all": []any{"\na", " a\nb", []any{"\n  b", map[string]any{"\nc": "\n\n d |4"}}}}},
		}}, {Name: "over"},
	}}
	_, err := w.Apply(bg, d, lifecycle.ApplyOptions{})
	must(t, err)
	other, err := lifecycle.New(w.options())
	must(t, err)
	got, _, err := other.Definition(bg, "visit")
	must(t, err)
	if !reflect.DeepEqual(got, d) {
		t.Errorf("the definition is\n%#v\nwant\n%#v", got, d)
	}
	if again, err := w.Apply(bg, d, lifecycle.ApplyOptions{}); err != nil || !again.Unchanged {
		t.Errorf("applied again: %+v, %v", again, err)
	}
	d.Attributes["<<"] = "S?"
	if _, err := w.Apply(bg, d, lifecycle.ApplyOptions{}); err == nil || !strings.Contains(err.Error(), "map merge requires map") {
		t.Errorf("a definition that cannot be read: %v", err)
	}
}

// An entity created again under its name is a new one: a pending transition of the first does not
// affect it, and both have a history.
func TestAgain(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	w.create("two", "e")
	w.advance(time.Minute)
	_, err := w.Delete(bg, "two", "e")
	must(t, err)
	w.advance(time.Minute)
	w.create("two", "e")
	w.advance(61 * time.Minute)
	w.want(w.events("two", "e"), "created →a@0s", "deleted a→a@1m0s", "created →a@2m0s", "transition a→b@1h2m0s")
}
