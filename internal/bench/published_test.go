package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// WritePublished writes the report as JSON for docs/report.json, with one line per figure. It keeps
// the figures that WriteMarkdown and WriteSVG show: medians, and the bounds of calls per second,
// removals per second, start times and the server's ratios over itself.
func (r *Report) WritePublished(out io.Writer) error {
	text, err := json.MarshalIndent(r.published(), "", "\t")
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, joinLines(string(text)))
	return err
}

// published returns a copy without bounds and process ids that no page shows.
func (r *Report) published() *Report {
	text, err := json.Marshal(r)
	p := new(Report)
	if err != nil || json.Unmarshal(text, p) != nil {
		panic("bench: a report does not survive its own JSON") // TestReportJSON shows that it does
	}
	for i := range p.Endpoints {
		p.Endpoints[i].PID = 0
	}
	for i := range p.Calls {
		p.Calls[i].keepMedians()
	}
	if p.Schedules != nil {
		p.Schedules.Create.keepMedians()
	}
	for i := range p.Ratios {
		if x := &p.Ratios[i]; x.Scenario == x.OverScenario && x.Over != overBoth {
			x.Value = x.Value.median()
		}
	}
	for i := range p.Drain {
		p.Drain[i].CPUUS = p.Drain[i].CPUUS.median()
	}
	return p
}

// keepMedians removes all bounds but for calls per second.
func (f *Figure) keepMedians() {
	for _, s := range []*Spread{&f.ItemsPerS, &f.MBPerS, &f.P50MS, &f.P99MS, f.ServerCPUUS, f.ClientCPUUS} {
		if s != nil {
			*s = s.median()
		}
	}
}

// median returns the spread without its bounds.
func (s Spread) median() Spread { return Spread{Median: s.Median} }

// lineDepth is the depth of the deepest brackets whose contents have lines of their own.
const lineDepth = 2

// joinLines joins the lines of indented JSON that are deeper than lineDepth, so that a figure is one
// line.
func joinLines(indented string) string {
	var b strings.Builder
	for line := range strings.Lines(indented) {
		text := strings.TrimSuffix(strings.TrimLeft(line, "\t"), "\n")
		depth := len(line) - len(strings.TrimLeft(line, "\t"))
		switch {
		case depth < lineDepth || depth == lineDepth && !strings.ContainsAny(text[:1], "]}"):
			b.WriteString("\n" + strings.Repeat("\t", depth))
		case strings.HasSuffix(b.String()[max(b.Len()-1, 0):], ","):
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
	return strings.TrimPrefix(b.String(), "\n") + "\n"
}

var update = flag.Bool("update", false, "write docs/report.* anew")

// docs/report.md and docs/report.svg show the measurement of docs/report.json, which has the medians
// of the report that .ci/measure makes. After a new measurement or a change of a report's look:
// go test ./internal/bench -run TestPublishedFigures -update
func TestPublishedFigures(t *testing.T) {
	const begin, end = "<!-- made of docs/report.json -->\n", "<!-- end -->\n"
	stored := readDoc(t, "docs/report.json")
	var report Report
	if err := json.Unmarshal([]byte(stored), &report); err != nil {
		t.Fatal(err)
	}
	if report.Errors > 0 || report.Command == "" || report.Settings.Rounds < 3 {
		t.Errorf("not a report to publish: %d wrong answers, %d rounds, by %q", report.Errors, report.Settings.Rounds, report.Command)
	}
	for _, p := range report.Parts {
		if p.Command == "" || p.Settings.Rounds < 3 || p.Settings.Durability != report.Settings.Durability {
			t.Errorf("not to publish: %v of %d rounds with durability %s, by %q", p.Of, p.Settings.Rounds, p.Settings.Durability, p.Command)
		}
	}
	var kept, figures, charts bytes.Buffer
	if err := report.WritePublished(&kept); err != nil {
		t.Fatal(err)
	}
	holdDoc(t, "docs/report.json", kept.String())
	if err := report.WriteMarkdown(&figures); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteSVG(&charts); err != nil {
		t.Fatal(err)
	}
	holdDoc(t, "docs/report.svg", charts.String())
	before, rest, ok := strings.Cut(readDoc(t, "docs/report.md"), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("docs/report.md has no place for figures: %s…%s", begin, end)
	}
	holdDoc(t, "docs/report.md", withExactRows(before, report.exactRows())+begin+figures.String()+end+after)
}

// exactRows returns the page's rows about mayfly in the table of how exact servers are: the figures
// of whole seconds.
func (r *Report) exactRows() (rows []string) {
	add := func(who string, l *Lateness, until, scenario string) {
		rows = append(rows, fmt.Sprintf("| **%s at each whole second | p50 %s ms, p99 %s ms, at most %s ms after its deadline | %s | `mayfly bench --only %s` |\n",
			who, short(l.P50), short(l.P99), short(l.Max), until, scenario))
	}
	for _, x := range r.Expiry {
		if x.Experiment == experimentExpiry && x.Target == ownName && x.AtOnce > 0 && x.Stream != nil {
			add("mayfly**, "+Count(x.AtOnce)+" items", x.Stream, "hidden from every read", experimentExpiry)
		}
	}
	if r.Guard != nil {
		for _, x := range r.Guard.Removals {
			if x.Experiment == guardWhole && x.LateMS != nil {
				add("mayfly guard** beside a server that removes nothing, "+Count(wholePerS), x.LateMS,
					"visible, unless read through `mayfly guard proxy` or its middleware", experimentGuard)
			}
		}
	}
	return rows
}

// withExactRows replaces a page's rows about mayfly. It keeps them if there are no others.
func withExactRows(page string, rows []string) string {
	const ours = "| **mayfly"
	var b strings.Builder
	for line := range strings.Lines(page) {
		switch {
		case len(rows) == 0 || !strings.HasPrefix(line, ours):
			b.WriteString(line)
		case !strings.Contains(b.String(), ours):
			b.WriteString(strings.Join(rows, ""))
		}
	}
	return b.String()
}

// Rows from a report replace those of an earlier one, in their place.
func TestExactRows(t *testing.T) {
	rows := someReport().exactRows()
	page := withExactRows("a\n| **mayfly** | old |\n| **mayfly guard** | old |\n| Amazon |\n", rows)
	if want := "a\n| **mayfly**, 3,333 items at each whole second | p50 1.00 ms, p99 12.5 ms, at most 20.0 ms after its deadline | hidden from every read | `mayfly bench --only expiry` |\n" +
		"| **mayfly guard** beside a server that removes nothing, 1,000 at each whole second | p50 1.00 ms, "; !strings.HasPrefix(page, want) || !strings.HasSuffix(page, "|\n| Amazon |\n") || strings.Contains(page, "old") {
		t.Errorf("got\n%s", page)
	}
	if again := withExactRows(page, rows); again != page || withExactRows(page, nil) != page {
		t.Errorf("rewriting changes it to\n%s", again)
	}
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// holdDoc compares a page with the expected text, or writes it.
func holdDoc(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", filepath.FromSlash(name)), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if readDoc(t, name) != want {
		t.Errorf("%s is not written from docs/report.json: run this test with -update", name)
	}
}
