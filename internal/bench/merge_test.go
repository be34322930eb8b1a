package bench

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// Merging replaces the own server's experiments, with their origin; all else stays.
func TestMerge(t *testing.T) {
	whole, calls := someReport(), len(someReport().Calls)
	part := func(command string, change func(*Report)) *Report {
		r := &Report{Date: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Command: command, Machine: whole.Machine, Settings: Settings{Durability: "sync", Rounds: 5}}
		change(r)
		return r
	}
	both := part("first", func(r *Report) {
		r.Schedules, r.Delivered = &Schedules{Pending: 5, Firings: []Firings{{}}}, []Delivered{{About: "records", To: toNATS, PerS: 8000}}
	})
	again := part("second", func(r *Report) { r.Schedules = &Schedules{Pending: 6, Firings: []Firings{{}}} })
	for _, r := range []*Report{both, again} {
		if err := whole.Merge(r); err != nil {
			t.Fatal(err)
		}
	}
	if whole.Schedules.Pending != 6 || whole.Delivered[0].To != toNATS || len(whole.Calls) != calls || whole.Start == nil || whole.Command != "mayfly bench" {
		t.Errorf("%+v", whole)
	}
	var parts []string
	for _, p := range whole.Parts {
		parts = append(parts, p.Command+": "+strings.Join(p.Of, " "))
	}
	if want := []string{"first: triggers", "second: schedules"}; !slices.Equal(parts, want) {
		t.Errorf("%v, want %v", parts, want)
	}
	var page bytes.Buffer
	if err := whole.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first   # triggers, 3 January 2026", "second   # schedules, 3 January 2026", "Schedules are of another run: 2026-01-03", "median of 5"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
}

// A report that would mix measurements, or has wrong answers, is not merged, and nothing changes.
func TestMergeRefuses(t *testing.T) {
	whole := someReport()
	for says, change := range map[string]func(*Report){
		"compared":        func(r *Report) { r.Calls = whole.Calls },
		"nothing":         func(r *Report) { r.Schedules = nil },
		"wrong answers":   func(r *Report) { r.Errors = 1 },
		"another machine": func(r *Report) { r.Machine.CPUs = 64 },
	} {
		r := &Report{Machine: whole.Machine, Schedules: &Schedules{Pending: 7}}
		change(r)
		if err := whole.Merge(r); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if len(whole.Parts) > 0 || whole.Schedules.Pending == 7 {
		t.Errorf("something was merged: %+v", whole)
	}
	for _, only := range [][]string{nil, {"schedules", "put"}} {
		if err := CheckMerge(only); err == nil {
			t.Errorf("%v may be merged", only)
		}
	}
	if err := CheckMerge([]string{"schedules", "triggers", "start"}); err != nil {
		t.Error(err)
	}
}
