package lifecycle_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const trial = `
lifecycle: trial
zone: Europe/Berlin
attributes: {email: S, paid: "BOOL?"}
calendars:
  office: {hours: ["09:00-17:00"], holidays: [01-01, 2030-04-22]}
values: {yes: true}
late: last
states:
  - name: trial
    next:
      - {to: reminded, after: 11d, handler: mail, input: {text: Three days are left.}}
      - {to: active}
  - name: reminded
    next:
      - {to: active, after: 3d, when: "paid = :yes"}
      - {to: suspended, after: 3d, at: "09:00", calendar: office, handler: mail, input: {text: Your trial is over.}}
      - {to: active}
  - name: suspended
    next:
      - {to: deleted, after: 30d, handler: mail}
      - {to: active, when: "paid = :yes"}
  - name: active
    keep: 30d
  - name: deleted
    remove: true
`

// A definition is drawn as text.
func TestText(t *testing.T) {
	d := read(t, trial)
	const want = `trial, in Europe/Berlin

● trial
├─ after 11d ──────────────────────▶ reminded  calls mail with {"text":"Three days are left."}
└─ by hand ────────────────────────▶ active

○ reminded
├─ after 3d ───────────────────────▶ active  if paid = :yes
├─ after 3d at 09:00 (office) ─────▶ suspended  calls mail with {"text":"Your trial is over."}
└─ by hand ────────────────────────▶ active

◉ active  kept for 30d

○ suspended
├─ after 30d ──────────────────────▶ deleted  calls mail
└─ by hand ────────────────────────▶ active  if paid = :yes

◉ deleted  removed
`
	strip := func(s string) string { return strings.ReplaceAll(s, "─", "") }
	if got := d.Text(); strip(got) != strip(want) {
		t.Errorf("got\n%s", got)
	}
}

// A definition is drawn as well-formed SVG with every state and transition. Any name is text.
func TestSVG(t *testing.T) {
	d := read(t, strings.ReplaceAll(trial, "office", `"a<b>&"`))
	svg := d.SVG()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for text, n := range map[string]int{`class="state`: 5, "marker-end": 7, "calls mail": 3, ">suspended</text>": 1, "(a&lt;b&gt;&amp;)": 1} {
		if got := strings.Count(svg, text); got != n {
			t.Errorf("%q is there %d times, not %d", text, got, n)
		}
	}
}
