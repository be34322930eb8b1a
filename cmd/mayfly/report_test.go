package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/bench"
)

var update = flag.Bool("update", false, "write what the tests compare with anew")

// docs/report.md and docs/report.svg show the measurement of docs/report.json, which has the medians
// of the report that .ci/measure makes. After a new measurement or a change of a report's look:
// go test ./cmd/mayfly -run TestPublishedFigures -update
func TestPublishedFigures(t *testing.T) {
	const begin, end = "<!-- made of docs/report.json -->\n", "<!-- end -->\n"
	stored := readDoc(t, "docs/report.json")
	var report bench.Report
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
	holdDoc(t, "docs/report.md", before+begin+figures.String()+end+after)
}

func docPath(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(docPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// holdDoc compares a page with the expected text, or writes it.
func holdDoc(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(docPath(name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if readDoc(t, name) != want {
		t.Errorf("%s is not written from docs/report.json: run this test with -update", name)
	}
}
