package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/lifecycle"
)

// All faults of a file are reported at once, with their places.
func TestFaults(t *testing.T) {
	known := func(handler string) error {
		if handler != "mail" {
			return errors.New("nobody has it")
		}
		return nil
	}
	for _, c := range []struct{ name, file, want string }{
		{"unreachable", "lifecycle: a\nstates:\n- name: x\n- name: y\n  next: [{to: x, after: 1d}]", `line 4, column 3: states[1]: state "y" is unreachable: no transition leads to it from "x"`},
		{"cycle", "lifecycle: a\nstates:\n- name: x\n  next: [{to: y, after: 0s}]\n- name: y\n  next:\n  - {to: x, after: 0h}", `line 7, column 5: states[1].next[0]: the cycle x → y → x has no delay: give one of its transitions an after above 0, or an at without from`},
		{"cycle of one", "lifecycle: a\nattributes: {t: N}\nstates:\n- name: x\n  next: [{to: x, from: t, after: 3d}]", `line 5, column 10: states[0].next[0]: the cycle x → x has no delay: give one of its transitions an after above 0, or an at without from`},
		{"handler", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, handler: fax}]", `line 4, column 38: states[0].next[0].handler: handler "fax" is unknown: nobody has it`},
		{"attribute", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: $wait}]", `line 4, column 25: states[0].next[0].after: attribute "wait" is not declared in attributes`},
		{"attribute's type", "lifecycle: a\nattributes: {w: BOOL}\nstates:\n- name: x\n  next: [{to: x, from: w}]", `line 5, column 24: states[0].next[0].from: attribute "w" is declared BOOL, but a time must be S or N`},
		{"zone", "lifecycle: a\nzone: Mars/Olympus\nstates: [{name: x}]", `line 2, column 7: zone: time zone "Mars/Olympus": not in the IANA time zone database`},
		{"calendar's zone", "lifecycle: a\ncalendars:\n  c: {zone: berlin}\nstates: [{name: x}]", `line 3, column 13: calendars.c.zone: time zone "berlin": not a name`},
		{"duration", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: soon}]", `line 4, column 25: states[0].next[0].after: invalid length of time "soon"`},
		{"business", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 3 business days}]", `states[0].next[0].after: business time needs a calendar`},
		{"business weeks", "lifecycle: a\ncalendars: {c: {}}\nstates:\n- name: x\n  next: [{to: x, after: 3 business weeks, calendar: c}]", `invalid length of time "3 business weeks"`},
		{"before nothing", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: -3d}]", `a negative time needs from, to count back from`},
		{"time of day", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, at: '25:00'}]", `states[0].next[0].at: invalid time of day "25:00"`},
		{"never at", "lifecycle: a\ncalendars: {c: {}}\nstates:\n- name: x\n  next: [{to: x, at: 'sun 09:00', calendar: c}]", `calendar "c" has none of these weekdays`},
		{"no business", "lifecycle: a\ncalendars: {c: {weekdays: []}}\nstates: [{name: x}]", `calendars.c.weekdays: business is never open`},
		{"hours", "lifecycle: a\ncalendars: {c: {hours: ['17:00-09:00']}}\nstates: [{name: x}]", `line 2, column 25: calendars.c.hours[0]: hours "17:00-09:00" end before they begin`},
		{"holiday", "lifecycle: a\ncalendars: {c: {holidays: [easter]}}\nstates: [{name: x}]", `calendars.c.holidays[0]: invalid day "easter"`},
		{"calendar", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, calendar: c}]", `states[0].next[0].calendar: unknown calendar "c"`},
		{"to", "lifecycle: a\nstates:\n- name: x\n  next: [{to: y, after: 1d}]", `line 4, column 15: states[0].next[0].to: unknown state "y"`},
		{"condition", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, when: a =}]", `states[0].next[0].when: Invalid ConditionExpression: Syntax error`},
		{"value", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, when: 'a = :b'}]", `states[0].next[0].when: :b is not in values`},
		{"own attribute", "lifecycle: a\nnames: {s: _state}\nstates:\n- name: x\n  next: [{to: x, after: 1d, when: 'attribute_exists(#s)'}]", `attribute "_state" is reserved`},
		{"member", "lifecycle: a\nstates:\n- name: x\n  nexd: []", `line 4, column 3: unknown setting nexd`},
		{"none", "lifecycle: a", `line 1, column 1: states: missing`},
		{"twice", "lifecycle: a\nstates:\n- name: x\n- name: x", `line 4, column 9: states[1].name: duplicate state "x"`},
		{"no YAML", "lifecycle: [", `did not find expected node content`},
		{"a question mark in braces", "lifecycle: a\nattributes: {name: S, species: S?}\nstates: [{name: x}]", `line 2, column 33: it is neither YAML nor JSON: did not find expected ',' or '}'`},
		{"a list that is not closed", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d}\n- name: y", `line 4, column 9: it is neither YAML nor JSON: did not find expected ',' or ']'; what begins here is not closed`},
		{"several members", "lifecycle: a\nhistory: {}\nstates:\n- name: x\n  next: [{to: x, afer: 1d, form: t}]\n  remove: perhaps",
			"line 2, column 10: history: an object is not a text\nline 5, column 18: unknown setting afer\nline 5, column 28: unknown setting form\nline 6, column 11: remove: \"perhaps\" is not true or false"},
		{"no object", "- a", `line 1, column 1: must be an object`},
		{"two", "lifecycle: a\nstates: [{name: x}]\n---\nlifecycle: b", `line 3, column 1: a second document begins here; the file must have only one`},
		{"late", "lifecycle: a\nlate: never\nstates: [{name: x}]", `line 2, column 7: late: "never" is not one of all, last, skip`},
		{"history", "lifecycle: a\nhistory: 1h\nstates: [{name: x}]", `history: "1h" is not between 2d and 3660d`},
		{"remove", "lifecycle: a\nstates:\n- name: x\n  next: [{to: y}]\n- name: y\n  remove: true\n  next: [{to: x}]", `line 6, column 11: states[1].remove: this state removes the item, so no transition can follow`},
		{"start", "lifecycle: a\nstart: z\nstates: [{name: x}]", `line 2, column 8: start: unknown state "z"`},
		{"input", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, handler: mail, input: Dear <mayfly.name>}]", `line 4, column 51: states[0].next[0].input: unknown variable <mayfly.name>; use one of <mayfly.id>, <mayfly.lifecycle>, <mayfly.entity>`},
		{"member of an input", "lifecycle: a\nstates:\n- name: x\n  next:\n  - to: x\n    after: 1d\n    handler: mail\n    input:\n      list:\n      - {a.b: ok, c: '<$.x..y>'}", `line 10, column 22: states[0].next[0].input.list[0].c: invalid path "x..y"; use the form a.b[0]["c.d"]`},
		{"input that is no JSON", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, handler: mail, input: '{\"a\": <$.b>'}]", `line 4, column 51: states[0].next[0].input: it begins like JSON but is not valid JSON`},
		{"input of a number", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, handler: mail, input: {n: .inf}}]", `states[0].next[0].input: not valid JSON`},
		{"input of numbers", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, handler: mail, input: {5: a}}]", `states[0].next[0].input: not valid JSON`},
		{"input for nobody", "lifecycle: a\nstates:\n- name: x\n  next: [{to: x, after: 1d, input: a}]", `line 4, column 36: states[0].next[0].input: needs a handler`},
		{"renamed, and there", "lifecycle: a\nrenamed: {x: y}\nstates:\n- name: x\n  next: [{to: y}]\n- name: y", `line 2, column 14: renamed.x: state "x" still exists`},
		{"renamed to nothing", "lifecycle: a\nrenamed: {y: z}\nstates: [{name: x}]", `line 2, column 14: renamed.y: unknown state "z"`},
		{"bomb", "lifecycle: a\nx: &a [b, b, b, b, b, b, b, b, b, b]\ny: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nz: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nu: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\nv: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]", `the file has more than 100000 values`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := lifecycle.Read(strings.NewReader(c.file), known)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if lifecycle.FaultsOf(err) == nil {
				t.Errorf("%T is not Faults", err)
			}
		})
	}
	_, err := lifecycle.Read(strings.NewReader("lifecycle: a b\nzone: x\nstates: [{name: x, next: [{to: y, after: 1}]}]"), known)
	if got := len(lifecycle.FaultsOf(err)); got != 4 {
		t.Errorf("%d of four faults are reported: %v", got, err)
	}
}

// A cycle with a delay is no fault.
func TestPauses(t *testing.T) {
	for _, next := range []string{"after: 1s", "after: $w", "at: '09:00'", "", "after: 1 business hour, calendar: c"} {
		read(t, "lifecycle: a\nattributes: {w: S}\ncalendars: {c: {}}\nstates: [{name: x, next: [{to: x, "+next+"}]}]")
	}
}

// Any file is read or refused. A definition that was read can be drawn and read again.
func FuzzRead(f *testing.F) {
	f.Add(butterfly)
	f.Add(trial)
	f.Add("lifecycle: a\nattributes: {w: S}\ncalendars: {c: {weekdays: [sat-sun], hours: ['22:00-24:00'], zone: Asia/Kolkata}}\nstates: [{name: x, next: [{to: x, from: w, after: -3 months, at: 'mon,tue 02:30', calendar: c}]}]")
	f.Fuzz(func(t *testing.T, file string) {
		d, err := lifecycle.Read(strings.NewReader(file), nil)
		if err != nil {
			return
		}
		_, _ = d.Text(), d.SVG()
	})
}
