package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/lifecycle"
	"github.com/mayflydb/mayfly/target"
)

// The known flaws of lifecycles built on TTL and streams (docs/spec/patterns.md, e). This package
// has none of them.

const twoSteps = `
lifecycle: two
states:
  - name: a
    next: [{to: b, after: 1h, handler: note}]
  - name: b
    next: [{to: c, after: 1h, handler: note}]
  - name: c
`

var bg = context.Background()

// Lateness: a transition comes at its instant, not minutes or days later. A late one counts from
// its instant.
func TestFlawELateness(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	w.create("two", "e")
	w.advance(time.Hour - time.Millisecond)
	w.want(w.events("two", "e"), "created →a@0s")
	w.advance(time.Millisecond)
	w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s")
	w.stop()
	w.advance(90 * time.Minute) // no worker runs at the instant, half an hour ago
	w.run(w.options())
	w.advance(0)
	w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s", "transition b→c@2h0m0s")
	events, err := w.History(bg, "two", "e")
	must(t, err)
	if late := events[2].Lateness(); late != 30*time.Minute {
		t.Errorf("it was %s late", late)
	}
}

// Order: transitions of one entity at close or equal instants happen in their order.
func TestFlawEOrder(t *testing.T) {
	const states = 30
	var file strings.Builder
	fmt.Fprint(&file, "lifecycle: close\nstates:\n")
	want := []string{"created →s00@0s"}
	at := time.Duration(0)
	for i := range states {
		after := time.Duration(i%3) * time.Millisecond // every third follows at once
		fmt.Fprintf(&file, "- {name: s%02d, next: [{to: s%02d, after: %dms}]}\n", i, i+1, after.Milliseconds())
		at += after
		want = append(want, fmt.Sprintf("transition s%02d→s%02d@%s", i, i+1, at))
	}
	fmt.Fprintf(&file, "- {name: s%02d}\n", states)
	w := newWorld(t)
	w.apply(file.String())
	for i := range 20 {
		w.create("close", fmt.Sprint(i))
	}
	w.advance(time.Second)
	for i := range 20 {
		w.want(w.events("close", fmt.Sprint(i)), want...)
	}
}

// At least once: a failed call comes again with the same ID, and the transition is not repeated.
func TestFlawEAtLeastOnce(t *testing.T) {
	w := newWorld(t)
	tries := 0
	w.mu.answer = func(lifecycle.Call) error {
		if tries++; tries < 3 {
			return errors.New("not now")
		}
		return nil
	}
	w.apply(strings.Replace(twoSteps, "to: c, after: 1h, handler: note", "to: c, after: 100h", 1))
	w.create("two", "e")
	w.advance(2 * time.Hour)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.calls) != 3 || w.mu.calls[0].ID != w.mu.calls[2].ID {
		t.Fatalf("the calls were %+v", w.mu.calls)
	}
	if n := len(slices.DeleteFunc(slices.Clone(w.mu.changes), func(c lifecycle.Change) bool { return c.Kind != lifecycle.KindTransition })); n != 1 {
		t.Errorf("%d transitions were made", n)
	}
}

// Early trigger: a deletion of any item by a client is no transition.
func TestFlawEEarlyTrigger(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	w.create("two", "e")
	_, err := w.DynamoDB().DeleteItem(bg, &dynamodb.DeleteItemInput{TableName: aws.String(lifecycle.EntityTable("two")), Key: itemKey("e", "next")})
	must(t, err)
	w.advance(30 * time.Minute)
	w.want(w.events("two", "e"), "created →a@0s")
	_, err = w.DynamoDB().DeleteItem(bg, &dynamodb.DeleteItemInput{TableName: aws.String(lifecycle.EntityTable("two")), Key: itemKey("e", "entity")})
	must(t, err)
	w.advance(10 * time.Hour)
	w.want(w.calls())
}

// Cancel: a cancellation or deletion fires nothing, neither then nor later.
func TestFlawECancel(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	for _, id := range []string{"cancelled", "deleted"} {
		w.create("two", id)
	}
	w.advance(59 * time.Minute)
	_, err := w.Cancel(bg, "two", "cancelled")
	must(t, err)
	_, err = w.Delete(bg, "two", "deleted")
	must(t, err)
	w.advance(10 * time.Hour)
	w.want(w.calls())
	w.want(w.events("two", "cancelled"), "created →a@0s", "cancelled a→a@59m0s")
	w.want(w.events("two", "deleted"), "created →a@0s", "deleted a→a@59m0s")
	if got := w.parts("two"); got["next"] != 0 || got["entity"] != 1 {
		t.Errorf("there are %v", got)
	}
	if _, err := w.Move(bg, "two", "cancelled", "b"); !errors.Is(err, lifecycle.ErrEnded) {
		t.Errorf("moved after its end: %v", err)
	}
}

// Garbage collector: a removal by guard, which lacks the service's identity, counts by its mark.
// Without the mark it does not count.
func TestFlawEGarbageCollector(t *testing.T) {
	w := newWorld(t)
	w.stop()
	o := w.options()
	o.Mark = "mayfly:expired"
	w.run(o)
	w.apply(twoSteps)
	table := lifecycle.EntityTable("two")
	for _, id := range []string{"marked", "other", "unmarked"} {
		w.create("two", id)
		out, err := w.DynamoDB().GetItem(bg, &dynamodb.GetItemInput{TableName: &table, Key: itemKey(id, "next")})
		must(t, err)
		mark := out.Item["due"]
		switch id {
		case "unmarked":
			mark = nil
		case "other":
			mark = &types.AttributeValueMemberN{Value: "5"}
		}
		if mark != nil {
			out.Item[o.Mark] = mark
			_, err = w.DynamoDB().PutItem(bg, &dynamodb.PutItemInput{TableName: &table, Item: out.Item})
			must(t, err)
		}
		_, err = w.DynamoDB().DeleteItem(bg, &dynamodb.DeleteItemInput{TableName: &table, Key: itemKey(id, "next")})
		must(t, err)
	}
	w.advance(time.Minute)
	w.want(w.events("two", "marked"), "created →a@0s", "transition a→b@1h0m0s")
	w.want(w.events("two", "unmarked"), "created →a@0s")
	w.want(w.events("two", "other"), "created →a@0s")
}

// Burst: many transitions at one instant all happen then.
func TestFlawEBurst(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	const entities = 500
	for i := range entities {
		w.create("two", fmt.Sprint(i))
	}
	w.advance(90 * time.Minute)
	must(t, w.Each(bg, "two", func(e lifecycle.Entity) error {
		if e.State != "b" {
			t.Errorf("%s is %s", e.ID, e.State)
		}
		return nil
	}))
	if n := len(w.calls()); n != entities {
		t.Errorf("%d calls", n)
	}
}

// Retention: expiries whose records are gone because no worker read the stream are found again:
// transitions and calls.
func TestFlawERetention(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	w.create("two", "e")
	w.stop()
	table := lifecycle.EntityTable("two")
	stream := func(on bool) {
		s := &types.StreamSpecification{StreamEnabled: &on}
		if on {
			s.StreamViewType = types.StreamViewTypeOldImage
		}
		_, err := w.DynamoDB().UpdateTable(bg, &dynamodb.UpdateTableInput{TableName: &table, StreamSpecification: s})
		must(t, err)
	}
	stream(false)
	// the stream with the record of the expiry is gone
	w.advance(50 * time.Hour)
	if n := w.parts("two")["next"]; n != 0 {
		t.Fatalf("%d transitions are pending", n)
	}
	stream(true)
	w.run(w.options())
	await(t, "the transitions are found", func() bool { return len(w.calls()) == 2 })
	w.want(w.events("two", "e"), "created →a@0s", "transition a→b@1h0m0s", "transition b→c@2h0m0s")
}

// Rescheduling: the pending transition moves in one transaction. The move fires nothing, and
// neither does the old instant.
func TestFlawERescheduling(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	w.create("two", "later")
	w.create("two", "sooner")
	_, err := w.Reschedule(bg, "two", "later", begin.Add(5*time.Hour))
	must(t, err)
	_, err = w.Reschedule(bg, "two", "sooner", begin.Add(time.Minute))
	must(t, err)
	w.advance(4 * time.Hour)
	w.want(w.calls(), "sooner a→b@1m0s", "sooner b→c@1h1m0s")
	w.advance(4 * time.Hour)
	w.want(w.events("two", "later"), "created →a@0s", "rescheduled a→a@0s", "transition a→b@5h0m0s", "transition b→c@6h0m0s")
}

// A permanent failure is recorded in the history, and changes nothing else.
func TestDeadLetter(t *testing.T) {
	w := newWorld(t)
	w.mu.answer = func(c lifecycle.Call) error {
		if c.To == "b" {
			return target.Permanent("Gone", "nobody is there")
		}
		return nil
	}
	w.apply(twoSteps)
	w.create("two", "e")
	w.advance(3 * time.Hour)
	events, err := w.History(bg, "two", "e")
	must(t, err)
	if events[1].Outcome != "failed: Gone nobody is there" || events[2].Outcome != "delivered" {
		t.Errorf("%+v", events)
	}
}

func itemKey(id, part string) lifecycle.Item {
	return lifecycle.Item{"entity": &types.AttributeValueMemberS{Value: id}, "part": &types.AttributeValueMemberS{Value: part}}
}

// An entity whose transition is impossible because its item would become too large does not hold up
// the others, and reports the problem.
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 60)
	w.apply(fmt.Sprintf(`
lifecycle: large
states:
  - {name: a, next: [{to: b%[1]s, after: 1h}]}
  - {name: b%[1]s, next: [{to: c%[1]s, after: 1h}]}
  - {name: c%[1]s}
`, long))
	w.createFull("large")
	for i := range 50 {
		w.create("large", fmt.Sprint(i))
	}
	w.advance(3 * time.Hour)
	must(t, w.Each(bg, "large", func(e lifecycle.Entity) error {
		if e.ID != "full" && e.Ended == "" {
			t.Errorf("%+v", e)
		}
		return nil
	}))
	e, err := w.Get(bg, "large", "full")
	must(t, err)
	if e.State != "a" || e.Problem == "" || !e.Next.IsZero() {
		t.Errorf("it is %s, next %s, %q", e.State, e.Next, e.Problem)
	}
	events, err := w.History(bg, "large", "full")
	must(t, err)
	if len(events) != 2 || events[1].Kind != lifecycle.KindRefused || !strings.Contains(events[1].Note, "cannot be made: ") {
		t.Errorf("%+v", events)
	}
	_, err = w.Set(bg, "large", "full", attrs("x", "y")) // this makes room
	must(t, err)
	w.advance(3 * time.Hour)
	w.want([]string{w.state("large", "full")}, "c"+long+" (end)")
}

// createFull creates an entity, "full", with an item of the greatest size.
func (w *world) createFull(lc string) {
	w.t.Helper()
	for size := 400<<10 - 100; ; size-- {
		if _, err := w.Create(bg, lc, "full", attrs("x", strings.Repeat("x", size))); err == nil {
			return
		} else if size < 400<<10-1000 {
			w.t.Fatal(err)
		}
	}
}

// Loss: an entity that cannot be armed again does not keep the search from the others.
func TestFlawELossOfOne(t *testing.T) {
	w := newWorld(t)
	w.apply(twoSteps)
	for _, id := range []string{"a", "bad", "c"} {
		w.create("two", id)
	}
	w.stop()
	table := lifecycle.EntityTable("two")
	found, err := w.DynamoDB().Scan(bg, &dynamodb.ScanInput{TableName: &table, FilterExpression: aws.String("part = :next"), ExpressionAttributeValues: lifecycle.Item{":next": &types.AttributeValueMemberS{Value: "next"}}})
	must(t, err)
	for _, it := range found.Items { // their records are lost
		_, err := w.DynamoDB().DeleteItem(bg, &dynamodb.DeleteItemInput{TableName: &table, Key: lifecycle.Item{"entity": it["entity"], "part": it["part"]}})
		must(t, err)
	}
	l, err := lifecycle.New(w.through(testkit.Refusals{Next: w.Transport().RoundTrip, Code: func(operation string, body []byte) string {
		if operation == "TransactWriteItems" && bytes.Contains(body, []byte(`{"S":"bad"}`)) {
			return "ValidationException"
		}
		return ""
	}}))
	must(t, err)
	armed, _, err := l.SearchForTest(bg, "two", begin.Add(2*time.Hour))
	if armed != 2 || err != nil || len(found.Items) != 3 {
		t.Errorf("of %d transitions %d are armed again: %v", len(found.Items), armed, err)
	}
}
