package reminder_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/reminder"
)

// The offset moves the reminder, and the attribute may be nested.
func TestOffset(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(func(s *reminder.Spec) { s.Attribute, s.Offset = "visit.times[1]", -48*time.Hour }))
	w.put("visits", "a", "mail", "a", "visit", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"times": &types.AttributeValueMemberL{Value: []types.AttributeValue{
		&types.AttributeValueMemberS{Value: "no"}, &types.AttributeValueMemberS{Value: "2030-01-04T00:00:00Z"},
	}}}})
	w.pending("a@24h0m0s")
	w.advance(24 * time.Hour)
	w.got("a at 2030-01-04T00:00:00.000Z")
}

// A new rule makes reminders for existing items, and a changed rule replaces them.
func TestExistingItems(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	for _, k := range []string{"a", "b", "c"} {
		w.put("visits", k, "when", at(time.Hour), "mail", k)
	}
	stop := w.run(rule(nil))
	w.pending("a@1h0m0s", "b@1h0m0s", "c@1h0m0s")
	w.delete("visits", "b")
	w.pending("a@1h0m0s", "c@1h0m0s")
	stop()
	w.put("visits", "d", "when", at(2*time.Hour), "mail", "d")
	w.run(rule(func(s *reminder.Spec) { s.Offset = 30 * time.Minute }))
	// the reminders of the earlier version stay, but do not fire
	w.pending("a@1h0m0s", "a@1h30m0s", "c@1h0m0s", "c@1h30m0s", "d@2h30m0s")
	w.advance(3 * time.Hour)
	await(t, "three reminders have come", func() bool { return w.attempts("") >= 3 })
	w.quiet("visits")
	w.pending()
	if n := w.attempts(""); n != 3 {
		t.Errorf("%d reminders came", n)
	}
}

// Workers at one endpoint ignore each other's reminders if they have different rules, or different
// versions of a rule, also while one of them is down.
func TestRulesOfOthers(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.table("others")
	one, other := rule(nil), rule(func(s *reminder.Spec) { s.Name, s.Table, s.Offset = "other", "others", time.Minute })
	otherwise := rule(func(s *reminder.Spec) { s.Table, s.Offset = "others", time.Hour })
	w.run(one)
	stop := w.run(other, otherwise)
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.put("others", "b", "when", at(time.Hour), "mail", "b")
	w.pending("a@1h0m0s", "b@1h1m0s", "b@2h0m0s")
	stop()
	w.advance(90 * time.Minute)
	await(t, "the first rule's reminder comes", func() bool { return w.attempts("") == 1 })
	w.quiet("visits")
	w.run(other, otherwise)
	await(t, "the second rule's reminder comes", func() bool { return w.attempts("") == 2 })
	w.advance(time.Hour)
	await(t, "the reminder of the rule with the same name comes", func() bool { return w.attempts("") == 3 })
}

// A rule that returns to an earlier version continues that version, and finds trimmed changes in
// the table.
func TestRuleComesBack(t *testing.T) {
	for _, away := range []time.Duration{time.Hour, 50 * time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			w := newWorld(t)
			w.table("visits")
			stop := w.run(rule(nil))
			w.put("visits", "a", "when", at(100*time.Hour), "mail", "a")
			w.pending("a@100h0m0s")
			stop()
			stop = w.run(rule(func(s *reminder.Spec) { s.Past = "fire" }))
			w.put("visits", "b", "when", at(100*time.Hour), "mail", "b")
			w.pending("a@100h0m0s", "a@100h0m0s", "b@100h0m0s")
			stop()
			w.advance(away)
			w.put("visits", "c", "when", at(100*time.Hour), "mail", "c")
			w.run(rule(nil))
			w.pending("a@100h0m0s", "a@100h0m0s", "b@100h0m0s", "b@100h0m0s", "c@100h0m0s")
		})
	}
}

// The default input has all values of a reminder.
func TestDefaultInput(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	w.run(rule(func(s *reminder.Spec) { s.Input, s.Offset = "", -time.Minute }))
	w.put("visits", "a", "when", at(time.Hour), "n", 1.5)
	w.pending("a@59m0s")
	w.advance(time.Hour)
	await(t, "the reminder comes", func() bool { return w.attempts("") == 1 })
	d := w.mu.got[0]
	want := `{"id":"` + d.ID + `","reminder":"visit","time":"2030-01-01T00:59:00.000Z","at":"2030-01-01T01:00:00.000Z","table":"visits","key":{"k":"a"},` +
		`"item":{"k":"a","n":1.5,"when":1893459600}}`
	if string(d.Body) != want || d.ContentType != "application/json" || d.Subject != `{"k":{"S":"a"}}` || d.Type != "Reminder" || d.TargetARN != "arn:aws:ses" ||
		!d.Time.Equal(start.Add(59*time.Minute)) {
		t.Errorf("%+v\n%s\n%s", d, d.Body, want)
	}
}

// A table may be created after its rule, and get another stream: the rule finds the writes in
// between.
func TestStreamRenewed(t *testing.T) {
	w := newWorld(t)
	w.run(rule(nil))
	w.table("visits")
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.pending("a@1h0m0s")
	w.stream(false)
	w.put("visits", "b", "when", at(2*time.Hour), "mail", "b")
	w.put("visits", "a", "when", at(3*time.Hour), "mail", "a")
	w.stream(true)
	w.pending("a@3h0m0s", "b@2h0m0s")
	w.put("visits", "c", "when", at(4*time.Hour), "mail", "c")
	w.pending("a@3h0m0s", "b@2h0m0s", "c@4h0m0s")
}

// stream enables or disables the stream of the table visits.
func (w *world) stream(on bool) {
	w.t.Helper()
	s := &types.StreamSpecification{StreamEnabled: &on}
	if on {
		s.StreamViewType = types.StreamViewTypeNewAndOldImages
	}
	w.advance(time.Second) // the label of a stream is the instant of its creation
	_, err := w.DynamoDB().UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: aws.String("visits"), StreamSpecification: s})
	must(w.t, err)
}

// A reminder whose input is too large is a dead letter, also one that is made up for after its item
// is gone.
func TestTooLarge(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			w := newWorld(t)
			w.table("visits")
			stop := w.run(rule(nil))
			w.quiet("visits")
			if late {
				stop()
			}
			w.put("visits", "a", "when", at(time.Hour), "mail", long)
			if late {
				w.advance(2 * time.Hour)
				w.delete("visits", "a")
				w.advance(time.Hour)
				w.run(rule(nil))
			}
			await(t, "there is a dead letter", func() bool {
				out, err := w.DynamoDB().Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String("mayfly.deadletters")})
				return err == nil && len(out.Items) == 1
			})
			w.quiet("visits")
			w.pending()
			w.got()
		})
	}
}

// Deleting a table cancels the reminders of the items whose removal its stream shows. The worker
// continues.
func TestTableDeleted(t *testing.T) {
	w := newWorld(t)
	w.table("visits")
	stop := w.run(rule(nil))
	w.put("visits", "a", "when", at(time.Hour), "mail", "a")
	w.pending("a@1h0m0s")
	stop()
	w.put("visits", "b", "when", at(2*time.Hour), "mail", "b")
	w.advance(3 * time.Hour)
	_, err := w.DynamoDB().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String("visits")})
	must(t, err)
	w.run(rule(nil))
	w.got("a at 2030-01-01T01:00:00.000Z") // b was due while no worker ran, and its item is gone
	w.table("visits")
	w.put("visits", "c", "when", at(5*time.Hour), "mail", "c")
	w.pending("c@5h0m0s")
}
