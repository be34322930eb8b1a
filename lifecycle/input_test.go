package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/lifecycle"
	"github.com/mayflydb/mayfly/target"
)

// inbox is a target that stores its deliveries.
type inbox struct {
	mu  sync.Mutex
	got []target.Delivery
}

func (in *inbox) Deliver(_ context.Context, all []target.Delivery) []error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, all...)
	return make([]error, len(all))
}

// bodies returns the deliveries by entity and state.
func (in *inbox) bodies() (all []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range in.got {
		all = append(all, d.Subject+" "+d.ContentType+" "+string(d.Body))
	}
	return all
}

const shaped = `
lifecycle: shaped
states:
  - name: a
    next:
      - {to: b, after: 1h, handler: mail, input: {to: <$.email>, text: "Dear <$.names[0]>, <mayfly.entity> goes from <mayfly.from> to <mayfly.to> at <mayfly.due>.", n: 5, "<$.email>": [null, <mayfly.generation>]}}
  - name: b
    next: [{to: c, after: 1h, handler: mail, input: 'Dear <$.names[1]>, bye.'}]
  - name: c
    next: [{to: d, after: 1h, handler: mail, input: '{"seats": <$.seats>, "none": <$.none>, "all": <mayfly.attributes>, "same": <mayfly.lifecycle>}'}]
  - name: d
    next: [{to: e, after: 1h, handler: mail}]
  - name: e
    next: [{to: f, after: 1h, handler: note, input: {to: <$.email>}}]
  - name: f
    next: [{to: g, after: 1h, handler: note, input: '<$.names[0]> "&"'}]
  - name: g
`

// A target receives the filled-in input, and a Go function receives it with the call. Without an
// input a target receives the call.
func TestInput(t *testing.T) {
	w := &world{DB: open(t, ""), t: t}
	in := &inbox{}
	o := w.options()
	o.Targets = []target.Mapping{{ARN: "arn:aws:lambda:*:*:function:mail", Name: "mail", Target: in}}
	w.run(o)
	w.apply(shaped)
	w.create("shaped", "ada", "email", `ada "A" <ada@example.com>`, "seats", 5)
	names, err := lifecycle.Value([]any{"Ada", "Lady Lovelace"})
	must(t, err)
	_, err = w.Set(bg, "shaped", "ada", lifecycle.Item{"names": names})
	must(t, err)
	ahead, err := w.Ahead(bg, "shaped", "ada", 2)
	must(t, err)
	if len(ahead) != 2 || ahead[0].Handler != "mail" || !strings.Contains(ahead[0].Input, `"to":"ada \"A\" <ada@example.com>"`) || ahead[1].Input != "Dear Lady Lovelace, bye." {
		t.Errorf("ahead are %+v", ahead)
	}
	w.advance(6 * time.Hour)
	got := in.bodies()
	if len(got) != 4 {
		t.Fatalf("%q", got)
	}
	w.want(got[:3],
		`ada application/json {"ada \"A\" <ada@example.com>":[null,"3"],"n":5,"text":"Dear Ada, ada goes from a to b at 2030-01-01T01:00:00Z.","to":"ada \"A\" <ada@example.com>"}`,
		`ada text/plain Dear Lady Lovelace, bye.`,
		`ada application/json {"seats":5,"none":null,"all":{"email":"ada \"A\" <ada@example.com>","names":["Ada","Lady Lovelace"],"seats":5},"same":"shaped"}`)
	var c lifecycle.Call
	must(t, json.Unmarshal([]byte(strings.TrimPrefix(got[3], "ada application/json ")), &c))
	if c.To != "e" || c.Input != nil || c.Attributes["seats"] != 5.0 {
		t.Errorf("%+v", c)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.calls) != 2 || string(w.mu.calls[0].Input) != `{"to":"ada \"A\" <ada@example.com>"}` || string(w.mu.calls[1].Input) != `"Ada \"&\""` || w.mu.calls[1].Attributes["seats"] != 5.0 {
		t.Errorf("%+v", w.mu.calls)
	}
}

// A filled-in input can be too large for every target. Then the transition is made, and the call
// becomes a dead letter. A Move is refused.
func TestInputTooLarge(t *testing.T) {
	w := &world{DB: open(t, ""), t: t}
	in, letters := &inbox{}, &inbox{}
	o := w.options()
	o.Targets = []target.Mapping{{ARN: "arn:aws:lambda:*:*:function:mail", Name: "mail", Target: in}, {ARN: "arn:aws:sqs:*:*:letters", Name: "letters", Target: letters}}
	w.run(o)
	w.apply(`
lifecycle: large
onFailure: letters
states:
  - name: a
    next: [{to: b, after: 1h, handler: mail, input: <$.text> <$.text>}]
  - name: b
    next: [{to: c, after: 1h, handler: mail, input: '<$.text>'}]
  - name: c
    next: [{to: d, after: 1h, handler: mail}]
  - name: d
`)
	w.create("large", "e", "text", strings.Repeat("x", 200<<10))
	if _, err := w.Move(bg, "large", "e", "b"); err == nil || !strings.Contains(err.Error(), "; the limit is 262144") {
		t.Errorf("moved: %v", err)
	}
	w.create("large", "huge", "text", strings.Repeat("x", 300<<10))
	w.advance(3 * time.Hour)
	for id, want := range map[string][]string{"e": {"failed", "delivered", "delivered"}, "huge": {"failed", "failed", "delivered"}} {
		events, err := w.History(bg, "large", id)
		must(t, err)
		for i, outcome := range want {
			if e := events[i+1]; !strings.HasPrefix(e.Outcome, outcome) || outcome == "failed" && !strings.HasPrefix(e.Outcome, "failed: InputTooLarge the call with its input has at least ") {
				t.Errorf("%s: %+v", id, e)
			}
		}
	}
	if n, letters := len(in.bodies()), len(letters.bodies()); n != 3 || letters != 3 {
		t.Errorf("%d calls were made, and %d are dead letters", n, letters)
	}
}

// A process without the handlers can apply a definition. The workers report unknown handlers, and
// the calls become dead letters.
func TestUnknownHandler(t *testing.T) {
	w := &world{DB: open(t, ""), t: t}
	var log lockedBuffer
	o := w.options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.run(o)
	o = w.options()
	o.Streams, o.Handlers, o.Unmapped = nil, nil, true
	other, err := lifecycle.New(o)
	must(t, err)
	_, err = other.Apply(bg, read(t, strings.Replace(twoSteps, "note", "nobody", 1)), lifecycle.ApplyOptions{})
	must(t, err)
	w.create("two", "e")
	w.advance(3 * time.Hour)
	var events []lifecycle.Event
	// the worker may find the lifecycle only now
	await(t, "the calls have ended", func() bool {
		events, err = w.History(bg, "two", "e")
		must(t, err)
		return len(events) == 3 && events[1].Outcome != "" && events[2].Outcome != ""
	})
	if !strings.HasPrefix(events[1].Outcome, "failed: ") || events[2].Outcome != "delivered" {
		t.Errorf("%+v", events)
	}
	if want := `states[0].next[0].handler: handler \"nobody\" is unknown`; !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "lifecycle=two version=1") {
		t.Errorf("the log has no %s: %s", want, log.String())
	}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// An input is any Go value with a JSON form, and is stored in that form.
func TestInputOfGo(t *testing.T) {
	w := newWorld(t)
	for i, input := range []any{json.RawMessage(`{"a":[1,"<$.x>"],"n":12345678901234567890}`), struct {
		A string `json:"a"`
	}{"<$.x>"}, map[string]int{"a": 1}, "<$.x>", 5, true, []string{"\x00\x7f\u0080\u0085\u2028\ufeff\ufffe\uffff"}, map[string]string{"a": `<$.["a.b"]>`}} {
		name := fmt.Sprint("go", i)
		d := lifecycle.Definition{Name: name, States: []lifecycle.State{{Name: "a", Next: []lifecycle.Transition{{To: "b", After: "1h", Handler: "note", Input: input}}}, {Name: "b"}}}
		_, err := w.Apply(bg, d, lifecycle.ApplyOptions{})
		must(t, err)
		w.create(name, "e", "x", "y", "a.b", "z")
	}
	w.advance(time.Hour)
	w.mu.Lock()
	defer w.mu.Unlock()
	got := map[string]string{}
	for _, c := range w.mu.calls {
		got[c.Lifecycle] = string(c.Input)
	}
	for name, want := range map[string]string{"go0": `{"a":[1,"y"],"n":12345678901234567890}`, "go1": `{"a":"y"}`, "go2": `{"a":1}`, "go3": `"y"`, "go4": "5", "go5": "true",
		"go6": "[\"\\u0000\x7f\u0080\u0085\\u2028\ufeff\ufffe\uffff\"]", "go7": `{"a":"z"}`} {
		if got[name] != want {
			t.Errorf("%s: got %s, want %s", name, got[name], want)
		}
	}
}
