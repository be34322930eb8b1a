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

// The published figures are those of the published measurement, docs/report.json: the page about it, and the README's tables.
// After a new measurement: go test ./cmd/mayfly -run TestPublishedFigures -update
func TestPublishedFigures(t *testing.T) {
	const begin, end = "<!-- figures of docs/report.json -->\n", "<!-- end of figures -->\n"
	stored := readDoc(t, "docs/report.json")
	var report bench.Report
	if err := json.Unmarshal([]byte(stored), &report); err != nil {
		t.Fatal(err)
	}
	if report.Errors > 0 || report.Command == "" || report.Settings.Rounds < 3 {
		t.Errorf("not a report to publish: %d wrong answers, %d rounds, by %q", report.Errors, report.Settings.Rounds, report.Command)
	}
	var page, summary bytes.Buffer
	if err := report.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteSummary(&summary); err != nil {
		t.Fatal(err)
	}
	holdDoc(t, "docs/report.md", page.String())

	readme := readDoc(t, "README.md")
	before, rest, ok := strings.Cut(readme, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the README has no place for figures: %s…%s", begin, end)
	}
	holdDoc(t, "README.md", before+begin+summary.String()+end+after)
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

// holdDoc compares a page with what it should be, or makes it so.
func holdDoc(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(docPath(name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if readDoc(t, name) != want {
		t.Errorf("%s does not show the figures of docs/report.json: run this test with -update", name)
	}
}
