package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/mayflydb/mayfly/internal/bench"
)

var update = flag.Bool("update", false, "write what the tests compare with anew")

// The published figures are those of the published measurement, docs/report.json: the page about it, and the charts.
// After a new measurement: go test ./cmd/mayfly -run TestPublishedFigures -update
//
// Schedules, triggers and guard are measured by themselves, and merged (docs/bench.md tells how to run the NATS server):
//
//	cd docs
//	mayfly bench --only schedules --pending 1000000 --burst 200000 --merge report.json
//	mayfly bench --only triggers --nats nats://127.0.0.1:4222 --merge report.json
//	mayfly bench --only guard --merge report.json
func TestPublishedFigures(t *testing.T) {
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
	var page, charts bytes.Buffer
	if err := report.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteSVG(&charts); err != nil {
		t.Fatal(err)
	}
	holdDoc(t, "docs/report.md", page.String())
	holdDoc(t, "docs/report.svg", charts.String())
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
