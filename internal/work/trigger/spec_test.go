package trigger_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/work/trigger"
)

// A file of triggers, with patterns in all their forms.
func TestReadSpecs(t *testing.T) {
	const file = `
triggers:
  - name: resize
    table: photos
    target: arn:aws:lambda:us-east-1:000000000000:function:resize
    filter: {eventName: [INSERT], dynamodb: {NewImage: {size: {N: [{exists: true}]}}}}
    batch: 10
    window: 5s
    partial: true
  - name: mirror
    stream: arn:aws:dynamodb:us-east-1:000000000000:table/photos/stream/2024-05-01T12:00:00.000
    target: hook
    start: LATEST
    filter:
      - '{"eventName": ["REMOVE"]}'
      - eventName: [MODIFY]
    order: none
    per: record
    parallel: 64
    retries: 3
    age: 1h30m
    onFailure: arn:aws:sqs:us-east-1:000000000000:dead
`
	want := []trigger.Spec{
		{Name: "resize", Table: "photos", Target: "arn:aws:lambda:us-east-1:000000000000:function:resize", Batch: 10, Window: 5 * time.Second, Partial: true,
			Filter: []string{`{"dynamodb":{"NewImage":{"size":{"N":[{"exists":true}]}}},"eventName":["INSERT"]}`}},
		{Name: "mirror", Stream: "arn:aws:dynamodb:us-east-1:000000000000:table/photos/stream/2024-05-01T12:00:00.000", Target: "hook", Start: "LATEST",
			Filter: []string{`{"eventName": ["REMOVE"]}`, `{"eventName":["MODIFY"]}`}, Order: "none", Per: "record", Parallel: 64, Retries: new(3),
			Age: 90 * time.Minute, OnFailure: "arn:aws:sqs:us-east-1:000000000000:dead"},
	}
	got, err := trigger.ReadSpecs(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if none, err := trigger.ReadSpecs(strings.NewReader("")); len(none) != 0 || err != nil {
		t.Error(none, err)
	}
}

// All errors of a file are reported together, each with the trigger's name.
func TestBadSpecs(t *testing.T) {
	for file, want := range map[string]string{
		`[{name: a, table: t1t, target: x, colour: red}]`:                      "unknown setting colour",
		`[{name: a, table: t1t, target: x, window: fast}]`:                     `window: "fast" is not a duration such as 90s or 2d`,
		`[{name: a, table: t1t, target: x, filter: [[1]]}]`:                    "line 1, column 44: expected an object, or a string with its JSON",
		`[{name: a, table: t1t, target: x}, {name: a, table: t1t, target: x}]`: `trigger "a" is declared twice`,
		`[{}]`: "trigger 1: name: \"\" is not 1 to 64 letters, digits, \"-\", \"_\" and \".\"\ntrigger 1: set either table or stream\ntrigger 1: target is missing",
		`[{name: a, table: t1t, stream: s, target: x}]`: "trigger \"a\": set either table or stream\ntrigger \"a\": stream: \"s\" is not the ARN of a DynamoDB stream",
		`[{name: a, table: t1t, target: x, start: NOW, batch: 10001, window: 301s, parallel: 1001, order: up, per: week}]`: "trigger \"a\": start: \"NOW\" is neither TRIM_HORIZON nor LATEST\n" +
			"trigger \"a\": batch: 10001 is not between 1 and 10000\ntrigger \"a\": window: 5m1s is not between 0s and 300s\ntrigger \"a\": parallel: 1001 is not between 1 and 1000\n" +
			"trigger \"a\": order: \"up\" is neither key nor none\ntrigger \"a\": per: \"week\" is neither batch nor record",
		`[{name: a, table: t1t, target: x, filter: '{"eventName": "INSERT"}'}]`:        `trigger "a": filter: invalid pattern: "eventName" must be an object or an array`,
		`[{name: a, table: t1t, target: x, bisect: true, per: record, partial: true}]`: "trigger \"a\": bisect needs order: key and per: batch\ntrigger \"a\": partial needs order: key and per: batch",
		`[{name: a, table: t1t, target: x, order: none, retries: 186, age: 25h}]`:      "trigger \"a\": retries: 186 is not between -1 and 185\ntrigger \"a\": age: 25h0m0s is not between 1m0s and 24h0m0s",
		`[{name: a, table: t1t, target: x, retries: 10001, age: 30s}]`:                 "trigger \"a\": retries: 10001 is not between -1 and 10000\ntrigger \"a\": age: 30s is not between 1m0s and 168h0m0s",
		`[{name: 0a1b2c3d-0000-4000-8000-000000000000, table: t1t, target: x}]`:        `trigger "0a1b2c3d-0000-4000-8000-000000000000": name: "0a1b2c3d-0000-4000-8000-000000000000" is a UUID, which is reserved for event source mappings`,
		"- {":                        "did not find expected node content",
		strings.Repeat(" ", 1<<20+1): "the file is larger than 1048576 bytes",
	} {
		_, err := trigger.ReadSpecs(strings.NewReader(file))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(want, "trigger") && err.Error() != want {
			t.Errorf("%.200s\n%v\nwant %s", file, err, want)
		}
	}
}

// Any file is accepted or refused, without a panic.
func FuzzReadSpecs(f *testing.F) {
	f.Add(`[{name: a, table: t1t, target: x, filter: [{eventName: [INSERT]}, '{"a": [1]}'], window: 1s, retries: -1}]`)
	f.Add(`{"triggers": [{"name": "a", "stream": "s"}]}`)
	f.Fuzz(func(t *testing.T, file string) {
		specs, err := trigger.ReadSpecs(strings.NewReader(file))
		if err == nil && trigger.CheckSpecs(specs) != nil {
			t.Errorf("taken, and refused: %q", file)
		}
	})
}

// The file in the documentation is valid.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/trigger-settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ := strings.Cut(string(page), "```yaml\ntriggers:")
	file, _, _ = strings.Cut(file, "```")
	if specs, err := trigger.ReadSpecs(strings.NewReader("triggers:" + file)); len(specs) != 3 || err != nil {
		t.Errorf("%+v, %v", specs, err)
	}
}
