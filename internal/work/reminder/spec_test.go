package reminder_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/work/reminder"
)

// A file of rules, in all its forms.
func TestReadSpecs(t *testing.T) {
	const file = `
reminders:
  - name: visit
    table: visits
    attribute: visit.times[0]
    zone: Europe/Berlin
    offset: -48h
    target: arn:aws:lambda:us-east-1:000000000000:function:mail
    input: {to: "<$.mail>", text: "See you at <mayfly.at>"}
  - name: payment
    table: bills
    attribute: 'due["at.last"]'
    offset: 90m
    target: hook
    input: "pay <$.sum>"
    past: fire
    retries: 3
    age: 1h
    onFailure: dead
`
	got, err := reminder.ReadSpecs(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	retries := 3
	want := []reminder.Spec{
		{Name: "visit", Table: "visits", Attribute: "visit.times[0]", Zone: "Europe/Berlin", Offset: -48 * time.Hour, Target: "arn:aws:lambda:us-east-1:000000000000:function:mail",
			Input: `{"text":"See you at <mayfly.at>","to":"<$.mail>"}`},
		{Name: "payment", Table: "bills", Attribute: `due["at.last"]`, Offset: 90 * time.Minute, Target: "hook", Input: "pay <$.sum>", Past: "fire", Retries: &retries,
			Age: time.Hour, OnFailure: "dead"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// An error lists all faults of a file, each with the name of its rule.
func TestBadSpecs(t *testing.T) {
	for file, want := range map[string]string{
		`[{}]`: "reminder 1: name: \"\" is not 1 to 64 letters, digits, \"-\", \"_\" and \".\"\nreminder 1: table: \"\" is not a table name\n" +
			"reminder 1: attribute is missing\nreminder 1: target is missing",
		`[{name: a, table: abc, attribute: x, target: y}, {name: a, table: abc, attribute: x, target: y}]`: `reminder "a" is declared twice`,
		`[{name: a, table: mayfly.reminders, attribute: x, target: y, past: skip, offset: 96000h, retries: 186, age: 1s}]`: "reminder \"a\": table: \"mayfly.reminders\" is the table that stores reminders\n" +
			"reminder \"a\": offset: 96000h0m0s is more than ten years\nreminder \"a\": past: \"skip\" is neither drop nor fire\nreminder \"a\": retries: 186 is not between 0 and 185\n" +
			"reminder \"a\": age: 1s is not between 1m0s and 24h0m0s",
		`[{name: a, table: abc, attribute: x, target: y, input: '{"a": <$.b>'}]`: `reminder "a": input: it begins like JSON but is not valid JSON`,
		`[{name: a, table: abc, attribute: x, target: y, offset: soon}]`:         `offset: "soon" is not a duration such as 90s or 2d`,
		`[{name: a, table: abc, attribute: "x..y", target: y}]`:                  `reminder "a": attribute: invalid path "x..y"; use the form a.b[0]["c.d"]`,
		`[{name: a, table: abc, attribute: x, target: y, zone: CEST}]`:           `reminder "a": zone: time zone "CEST": not in the IANA time zone database`,
		`[{name: a, table: abc, attribute: x, target: y, when: now}]`:            "unknown setting when",
	} {
		_, err := reminder.ReadSpecs(strings.NewReader(file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", file, err, want)
		}
	}
}

// Every file is either read or refused.
func FuzzReadSpecs(f *testing.F) {
	f.Add(`[{name: a, table: abc, attribute: "x[0]", target: y, offset: -1d, input: {a: "<$.b>"}}]`)
	f.Fuzz(func(t *testing.T, file string) {
		specs, err := reminder.ReadSpecs(strings.NewReader(file))
		if err == nil && reminder.CheckSpecs(specs) != nil {
			t.Errorf("taken, and refused: %q", file)
		}
	})
}

// The file in the documentation is valid.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reminders.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(page), "```yaml\nreminders:")
	file, _, _ = strings.Cut(file, "```")
	if specs, err := reminder.ReadSpecs(strings.NewReader("reminders:" + file)); len(specs) != 1 || err != nil {
		t.Errorf("%+v, %v", specs, err)
	}
}
