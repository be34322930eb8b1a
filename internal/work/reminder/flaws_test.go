package reminder_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/reminder"
	"github.com/mayflydb/mayfly/target"
)

// rule returns a rule for the table visits. Its input is the item's mail and the instant.
func rule(change func(*reminder.Spec)) reminder.Spec {
	s := reminder.Spec{Name: "visit", Table: "visits", Attribute: "when", Target: "arn:aws:ses", Input: "<$.mail> at <mayfly.at>"}
	if change != nil {
		change(&s)
	}
	return s
}

// The published program reads record.dynamodb.email, which does not exist, and sends no mail. The
// address is in the image.
func TestReadsTheImage(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(nil))
	w.put("visits", "a", "when", at(time.Hour), "mail", "ann@example.com")
	w.pending("a@1h0m0s")
	w.advance(time.Hour - time.Millisecond)
	w.pending("a@1h0m0s")
	w.advance(time.Millisecond)
	w.got("ann@example.com at 2030-01-01T01:00:00.000Z")
}

// The published program ignores the event's name, and fails on a record without a new image.
func TestRemoveHasNoNewImage(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(nil))
	w.put("visits", "a", "mail", "x")
	w.delete("visits", "a")
	w.put("visits", "b", "when", at(time.Hour), "mail", "b")
	w.pending("b@1h0m0s")
}

// The published program adds a second reminder when the instant changes. Here the item has one
// reminder, which moves.
func TestOneReminderPerItem(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(nil))
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.pending("a@1h0m0s")
	w.put("visits", "a", "when", at(3*time.Hour), "mail", "a")
	w.pending("a@3h0m0s")
	w.advance(2 * time.Hour)
	w.put("visits", "a", "when", at(3*time.Hour), "mail", "a2") // the input changes too
	w.quiet("visits")
	w.advance(2 * time.Hour)
	w.got("a2 at 2030-01-01T03:00:00.000Z")
	w.put("visits", "a", "when", at(3*time.Hour), "mail", "a3") // it has fired
	w.quiet("visits")
	w.pending()
	w.put("visits", "a", "when", at(5*time.Hour), "mail", "a4") // another instant
	w.pending("a@5h0m0s")
	w.advance(time.Hour)
	w.got("a2 at 2030-01-01T03:00:00.000Z", "a4 at 2030-01-01T05:00:00.000Z")
}

// The published program reminds of deleted items. Here the removal of the item or of its instant
// removes the reminder.
func TestCancelledWithItsItem(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(nil))
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.put("visits", "b", "when", at(time.Hour), "mail", "b")
	w.put("visits", "c", "when", at(time.Hour), "mail", "c")
	w.put("visits", "d", "when", at(time.Hour), "mail", "d")
	w.pending("a@1h0m0s", "b@1h0m0s", "c@1h0m0s", "d@1h0m0s")
	w.delete("visits", "a")
	w.put("visits", "b", "mail", "b")
	w.put("visits", "c", "when", "tomorrow", "mail", "c")
	w.pending("d@1h0m0s")
	w.advance(2 * time.Hour)
	w.got("d at 2030-01-01T01:00:00.000Z")
}

// The published program returns errors as results, so they are lost. Here the courier retries a
// failed delivery, and makes it a dead letter in the end.
func TestErrorsAreNotSwallowed(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.mu.answer = func(d target.Delivery) error {
		if strings.HasPrefix(string(d.Body), "b") || d.Attempt < 3 {
			return errors.New("the mail server is down")
		}
		return nil
	}
	w.run(rule(func(s *reminder.Spec) { s.Retries = new(4) }))
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.put("visits", "b", "when", at(time.Hour), "mail", "b")
	w.pending("a@1h0m0s", "b@1h0m0s")
	w.quiet("visits")
	w.advance(time.Hour)
	var letters []deliver.DeadLetter
	await(t, "a is delivered, and b is dead", func() bool {
		w.advance(time.Second)
		var err error
		letters, _, err = deliver.ListDeadLetters(t.Context(), w.DynamoDB(), deliver.DeadLetterFilter{}, 100, "")
		must(t, err)
		return len(letters) == 1 && w.attempts("a") == 3
	}, func() any { return fmt.Sprint(w.attempts("a"), " ", w.attempts("b"), letters) })
	if l := letters[0]; l.Message != "the mail server is down" || l.Attempts != 5 || l.Source != "arn:aws:mayfly:us-east-1:000000000000:reminder/visit" || w.attempts("b") != 5 {
		t.Errorf("%+v", l)
	}
}

// attempts returns the number of deliveries whose body has a prefix.
func (w *world) attempts(prefix string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.mu.got {
		if strings.HasPrefix(string(d.Body), prefix) {
			n++
		}
	}
	return n
}

// The published program passes the attribute on unchanged, and at() accepts neither Z nor
// milliseconds. Here an instant may have any common form.
func TestInstantsInAllForms(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(nil))
	for k, v := range map[string]any{
		"n": at(time.Hour), "f": float64(at(time.Hour)) + 0.25, "z": "2030-01-01T01:00:00Z", "ms": "2030-01-01T01:00:00.500Z", "ns": "2030-01-01T01:00:00.0000001Z",
		"off": "2030-01-01T03:00:00+02:00", "short": "2030-01-01T03:00:00+0200", "minute": "2030-01-01T01:00Z", "blank": "2030-01-01 01:00:00Z", "basic": "20300101T010000Z",
		"no zone": "2030-01-01T01:00:00", "words": "in an hour", "millis": int64(1893459600000), "negative": int64(-5), "true": &types.AttributeValueMemberBOOL{Value: true},
	} {
		w.put("visits", k, "when", v, "mail", k)
	}
	w.pending("basic@1h0m0s", "blank@1h0m0s", "f@1h0m0.25s", "minute@1h0m0s", "ms@1h0m0.5s", "n@1h0m0s", "ns@1h0m0.001s", "off@1h0m0s", "short@1h0m0s", "z@1h0m0s")
}

// The published program writes instants without a zone, as date -u +%Y-%m-%dT%H:%M:%S prints them.
// A rule's zone says what they mean. A rule that gets a zone finds the items that it refused before.
// The warning about another text names the item.
func TestZone(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.put("visits", "a", "when", "2030-01-01T02:00:44", "mail", "a")
	var log bytes.Buffer
	stop := w.runLogged(&log, rule(nil))
	w.put("visits", "b", "when", "2030-01-01T03:00:00", "mail", "b")
	w.put("visits", "c", "when", "2030-01-01T03:00:00Z", "mail", "c")
	w.pending("c@3h0m0s")
	stop()
	for _, key := range []string{"a", "b"} {
		if want := `key="{\"k\":{\"S\":\"` + key + `\"}}"`; !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "or set the rule's zone") {
			t.Errorf("the log does not have %s: %s", want, &log)
		}
	}
	w.run(rule(func(s *reminder.Spec) { s.Zone = "Europe/Berlin" }))
	// the earlier version's reminder of c stays, but does not fire
	w.pending("a@1h0m44s", "b@2h0m0s", "c@3h0m0s", "c@3h0m0s")
	w.advance(90 * time.Minute)
	w.got("a at 2030-01-01T01:00:44.000Z") // deliveries of two items have no order
	w.advance(30 * time.Minute)
	w.got("a at 2030-01-01T01:00:44.000Z", "b at 2030-01-01T02:00:00.000Z")
}

// The published program does not define reminders in the past. Here the rule does.
func TestPast(t *testing.T) {
	for _, past := range []string{"", "drop", "fire"} {
		t.Run(past, func(t *testing.T) {
			w := newWorld(t)
			w.table("visits")
			w.put("visits", "old", "when", at(-time.Hour), "mail", "old")
			w.put("visits", "soon", "when", at(time.Hour), "mail", "soon")
			w.run(rule(func(s *reminder.Spec) { s.Past = past }))
			if past == "fire" {
				w.got("old at 2029-12-31T23:00:00.000Z")
			}
			w.pending("soon@1h0m0s")
			w.put("visits", "soon", "when", at(-2*time.Hour), "mail", "soon") // moved into the past
			w.quiet("visits")
			w.pending()
			if past == "fire" {
				w.got("old at 2029-12-31T23:00:00.000Z", "soon at 2029-12-31T22:00:00.000Z")
			} else {
				w.got()
			}
		})
	}
}

// Reminders that come due while the worker is down fire late: they are not past.
func TestLateIsNotPast(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	stop := w.run(rule(nil))
	w.quiet("visits")
	stop()
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.put("visits", "b", "when", at(time.Hour), "mail", "b")
	w.delete("visits", "b")
	w.advance(5 * time.Hour)
	w.run(rule(nil))
	w.got("a at 2030-01-01T01:00:00.000Z")
	w.quiet("visits")
	w.pending()
}

// A reminder that is cancelled or moved while the worker is down fires if it was due before that
// change, and only then. It fires once, however often its records come.
func TestLateAfterChange(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	stop := w.run(rule(nil))
	w.quiet("visits")
	stop()
	for _, k := range []string{"deleted", "moved", "deleted in time", "moved in time", "touched"} {
		w.put("visits", k, "when", at(time.Hour), "mail", k)
	}
	w.advance(30 * time.Minute)
	w.delete("visits", "deleted in time")
	w.put("visits", "moved in time", "when", at(9*time.Hour), "mail", "moved in time")
	w.advance(90 * time.Minute)
	w.delete("visits", "deleted")
	w.put("visits", "moved", "when", at(9*time.Hour), "mail", "moved")
	w.put("visits", "touched", "when", at(time.Hour), "mail", "touched later")
	w.advance(time.Hour)
	w.run(rule(nil))
	await(t, "three reminders have come", func() bool { return w.attempts("") == 3 })
	w.quiet("visits")
	w.pending("moved in time@9h0m0s", "moved@9h0m0s")
	for _, k := range []string{"deleted at", "moved at", "touched at"} {
		if w.attempts(k) != 1 {
			t.Errorf("%d times %q", w.attempts(k), k)
		}
	}
	w.advance(10 * time.Hour)
	await(t, "two more reminders have come", func() bool { return w.attempts("") == 5 })
}

// The published program has no key for repetitions. Here every
// attempt has the same ID, also in the message.
func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.mu.answer = func(d target.Delivery) error {
		if d.Attempt == 1 {
			return errors.New("the answer was lost")
		}
		return nil
	}
	w.run(rule(func(s *reminder.Spec) { s.Input = `{"id": "<mayfly.id>"}` }))
	w.put("visits", "a", "when", at(time.Hour))
	w.put("visits", "b", "when", at(time.Hour))
	w.pending("a@1h0m0s", "b@1h0m0s")
	w.quiet("visits")
	w.advance(time.Hour)
	await(t, "both are delivered", func() bool { w.advance(time.Second); return w.attempts("") == 4 })
	ids := map[string]int{}
	for _, d := range w.mu.got {
		ids[d.ID]++
		if string(d.Body) != fmt.Sprintf(`{"id": %q}`, d.ID) || len(d.ID) != 32 {
			t.Errorf("delivery %s has the body %s", d.ID, d.Body)
		}
	}
	if len(ids) != 2 {
		t.Errorf("ids %v", ids)
	}
}
