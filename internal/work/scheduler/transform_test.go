package scheduler

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// anEvent returns an event with more members than a schedule's.
func anEvent() *ruleEvent {
	return &ruleEvent{
		arn: "arn:aws:events:us-east-1:123456789012:rule/r", name: "r", time: "2030-01-01T00:00:00Z",
		text: []byte(`{"version":"0","id":"7bf73129","detail-type":"Scheduled Event","source":"aws.events","account":"123456789012","time":"2030-01-01T00:00:00Z",` +
			`"region":"us-east-1","resources":["arn:a","arn:b"],"detail":{"id":"i-0","state":"RUN\"NING\\","n":12,"ok":true,"no":null,"tags":[{"k":"a"},{"k":"b"}],"at-all":{"x/y":1}}}`),
	}
}

// Placeholders are replaced by EventBridge's rules of quoting. The examples with i-0 are from its
// documentation.
func TestTransform(t *testing.T) {
	paths := map[string]string{
		"id": "$.detail.id", "state": "$.detail.state", "n": "$.detail.n", "ok": "$.detail.ok", "no": "$.detail.no", "detail": "$.detail.at-all", "tags": "$.detail.tags",
		"resource": "$.resources[0]", "resources": "$.resources", "ks": "$.detail.tags[*].k", "missing": "$.detail.missing.x", "time": "$.time", "all": "$", "slash": "$.detail.at-all.x/y",
		"wild": "$.detail.at-all.*",
	}
	tests := []struct{ template, want string }{
		{`{"time": <time>}`, `{"time":"2030-01-01T00:00:00Z"}`},
		{`"instance <id> is in <n>"`, `"instance i-0 is in 12"`},
		{`"instance \"<id>\" is in <n>"`, `"instance \"i-0\" is in 12"`},
		{`{"instance" : <id>, "state": "<n>", "instanceStatus": "instance \"<id>\" is in <n>"}`, `{"instance":"i-0","state":"12","instanceStatus":"instance \"i-0\" is in 12"}`},
		{`{"a": <state>, "b": "<state>!"}`, `{"a":"RUN\"NING\\","b":"RUN\"NING\\!"}`},
		{`{"n":<n>,"ok":<ok>,"no":<no>,"missing":<missing>,"in":"<missing>|<ok>|<no>"}`, `{"n":12,"ok":true,"no":null,"missing":"","in":"|true|null"}`},
		{`{"detail":<detail>,"in":"<detail>","tags":<tags>,"ks":<ks>}`, `{"detail":{"x/y":1},"in":"{\"x/y\":1}","tags":[{"k":"a"},{"k":"b"}],"ks":["a","b"]}`},
		{`"<detail> and <resources>"`, `"{x/y:1} and [arn:a,arn:b]"`},
		{`[<resource>, <slash>, <wild>]`, `["arn:a",1,[1]]`},
		{"\"first <id>\"\n\"second <n>\"", "\"first i-0\"\n\"second 12\""},
		{`<id>`, `"i-0"`},
		{`<n>`, `12`},
		{`{<id>: 1}`, `{"i-0":1}`},
		{`{"arn":<aws.events.rule-arn>,"name":"<aws.events.rule-name>","in":<aws.events.event.ingestion-time>}`,
			`{"arn":"arn:aws:events:us-east-1:123456789012:rule/r","name":"r","in":"2030-01-01T00:00:00Z"}`},
		{`{"event":<aws.events.event>}`, `{"event":{"version":"0","id":"7bf73129","detailType":"Scheduled Event","source":"aws.events","account":"123456789012",` +
			`"time":"2030-01-01T00:00:00Z","region":"us-east-1","resources":["arn:a","arn:b"]}}`},
		{`{"event":<aws.events.event.json>}`, `{"event":` + string(anEvent().text) + `}`},
		{`{"less":"1 < 2"}`, `{"less":"1 < 2"}`},
		{"{\"less\":\"1 <\",\n \"x\":\"> <id>\"}", `{"less":"1 <","x":"> i-0"}`},
		{`{"html":"\u003cid>"}`, `{"html":"\u003cid>"}`},
		{`"plain"`, `"plain"`},
	}
	for _, tt := range tests {
		x, err := newTransformer(paths, tt.template)
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		got, err := x.transform(anEvent())
		if err != nil || string(got) != tt.want {
			t.Errorf("%s\n got %s (%v)\nwant %s", tt.template, got, err, tt.want)
		}
	}
	if x, err := newTransformer(paths, `{<detail>: 1}`); err != nil {
		t.Error(err)
	} else if got, err := x.transform(anEvent()); !errors.Is(err, errTransformed) {
		t.Errorf("an object as a name gives %s, %v", got, err)
	}
	if x, err := newTransformer(map[string]string{"a": "$"}, `[`+strings.Repeat(`<a>,`, 2000)+`<a>]`); err != nil {
		t.Error(err)
	} else if _, err := x.transform(anEvent()); !errors.Is(err, errTransformed) {
		t.Errorf("a large one gives %v", err)
	}
}

// An invalid template is refused when it is put.
func TestTemplateRefused(t *testing.T) {
	paths := map[string]string{"a": "$.a"}
	for _, template := range []string{`{"a": <a>`, `{"a" <a>}`, `text`, `"open`, `"a" text`, ``, `{"a": "<a>}`, `{"a":<a>} trailing`} {
		if _, err := newTransformer(paths, template); !errors.Is(err, errTemplate) {
			t.Errorf("%s: %v", template, err)
		}
	}
	var placeholder *placeholderError
	if _, err := newTransformer(paths, `{"a": <b>}`); !errors.As(err, &placeholder) || placeholder.name != "b" {
		t.Errorf("an unknown placeholder: %v", err)
	}
	for _, path := range []string{"", "a", "a.b", "$.", "$..a", "$a", "$.a b", "$[", "$[a]", "$[-1]", "$[1", "$.a[99999999999]", "$['a']", "$.a."} {
		if _, err := newTransformer(map[string]string{"a": path}, `"x"`); !errors.Is(err, errPath) {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

// Every valid template makes JSON from an event, or an error.
func FuzzTransform(f *testing.F) {
	f.Add(`{"time": <a>}`, "$.time")
	f.Add(`"x <a> \" <aws.events.event.json>"`, "$.detail.tags[*].k")
	f.Add(`[<a>,"<a>",<aws.events.event>]`, "$.detail")
	f.Add("\"a\"\n<a>", "$")
	f.Add(`{"\\":"<a>\\\"<"}`, "$.resources[1]")
	f.Fuzz(func(t *testing.T, template, path string) {
		x, err := newTransformer(map[string]string{"a": path}, template)
		if err != nil {
			return
		}
		got, err := x.transform(anEvent())
		if err != nil {
			return
		}
		if x.structured && !json.Valid(got) || !x.structured && !isTexts(got) {
			t.Errorf("%q makes %q", template, got)
		}
		if len(got) > inputMax {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// Each attempt's number is inserted where the input names it; the rest of the input stays
// unchanged.
func FuzzContext(f *testing.F) {
	f.Add(`{"a":"<aws.scheduler.attempt-number>"}`)
	f.Add(`\u003caws.scheduler.scheduled-time\u003e<aws.scheduler.`)
	f.Fuzz(func(t *testing.T, input string) {
		c := contextValues{arn: "arn:x", at: begin, id: strings.Repeat("0", 32)}
		got := c.replace(input)
		if !strings.Contains(input, contextPrefix) && got != input {
			t.Errorf("%q became %q", input, got)
		}
		if json.Valid([]byte(input)) && !json.Valid([]byte(got)) {
			t.Errorf("%q is JSON, and %q is not", input, got)
		}
		if again := c.replace(got); again != got && !strings.Contains(got, contextPrefix) {
			t.Errorf("%q became %q", got, again)
		}
	})
}
