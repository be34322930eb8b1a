package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

// report is the outcome of a run.
type report struct {
	Seed     uint64        `json:"seed"`
	Endpoint string        `json:"endpoint"`
	Began    time.Time     `json:"began"`
	For      string        `json:"for"`
	Workers  int           `json:"workers"`
	Rate     float64       `json:"rate"`
	Trials   []trialReport `json:"strategies"`
}

// trialReport is the outcome of one strategy.
type trialReport struct {
	Strategy guard.Strategy `json:"strategy"`
	counts
	Plain    lateness       `json:"lateness_without_faults_ms"`
	Faulty   lateness       `json:"lateness_with_faults_ms"`
	Restarts int            `json:"restarts"`
	Faults   map[string]int `json:"faults"`
	Events   map[string]int `json:"events,omitempty"`
	Findings []string       `json:"findings,omitempty"`
	Failure  string         `json:"last_failed_write,omitempty"`
}

// lateness summarizes the time from the deadline of an item to the answer to its removal, in ms.
type lateness struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
}

func summarize(all []int64) lateness {
	if len(all) == 0 {
		return lateness{}
	}
	all = slices.Sorted(slices.Values(all))
	rank := func(percent int) int64 { return all[(len(all)-1)*percent/100] }
	return lateness{len(all), rank(50), rank(99), rank(100)}
}

func (l lateness) String() string { return fmt.Sprintf("%d / %d / %d", l.P50, l.P99, l.Max) }

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// report returns the outcome of a trial that has ended.
func (t *trial) report() trialReport {
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r := trialReport{Strategy: t.strategy, counts: l.counts, Plain: summarize(l.plain), Faulty: summarize(l.faulty), Findings: l.findings}
	r.Faults, r.Events = t.plan.counted()
	if t.fleet != nil {
		r.Restarts = t.fleet.restarted()
	}
	if l.failure != nil {
		r.Failure = l.failure.Error()
	}
	return r
}

// broken reports whether guard has broken a promise.
func (r *report) broken() bool {
	return slices.ContainsFunc(r.Trials, func(t trialReport) bool { return t.Early+t.Wrong+t.Left+t.Died > 0 })
}

// names returns the sorted names in the counts of all strategies.
func (r *report) names(counts func(trialReport) map[string]int) []string {
	all := map[string]int{}
	for _, t := range r.Trials {
		maps.Copy(all, counts(t))
	}
	return slices.Sorted(maps.Keys(all))
}

// print writes the report as text, one column for each strategy, or as JSON.
func (r *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	fmt.Fprintf(out, "seed %d, %s, %s, %d workers and %v new items a second for each strategy\n\n", r.Seed, r.Endpoint, r.For, r.Workers, r.Rate)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name string, value func(trialReport) any) {
		fmt.Fprintf(w, "%s\t", name)
		for _, t := range r.Trials {
			fmt.Fprintf(w, "%v\t", value(t))
		}
		fmt.Fprintln(w)
	}
	row("", func(t trialReport) any { return t.Strategy })
	row("items", func(t trialReport) any { return t.Items })
	row("writes", func(t trialReport) any { return t.Writes })
	row("failed writes, not judged", func(t trialReport) any { return t.Failed })
	row("removals", func(t trialReport) any { return t.Removals })
	row("refused deletions", func(t trialReport) any { return t.Refused })
	row("verified in their last state", func(t trialReport) any { return t.Verified })
	row("early", func(t trialReport) any { return t.Early })
	row("most early, ms", func(t trialReport) any { return t.EarlyMaxMS })
	row("wrong", func(t trialReport) any { return t.Wrong })
	row("left over", func(t trialReport) any { return t.Left })
	row("died", func(t trialReport) any { return t.Died })
	row("lateness without faults, p50 / p99 / max ms", func(t trialReport) any { return t.Plain })
	row("lateness with faults, p50 / p99 / max ms", func(t trialReport) any { return t.Faulty })
	row("restarts", func(t trialReport) any { return t.Restarts })
	for _, name := range r.names(func(t trialReport) map[string]int { return t.Events }) {
		row(name, func(t trialReport) any { return t.Events[name] })
	}
	for _, name := range r.names(func(t trialReport) map[string]int { return t.Faults }) {
		row("fault "+name, func(t trialReport) any { return t.Faults[name] })
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, t := range r.Trials {
		if t.Failure != "" {
			fmt.Fprintf(out, "\n%s: the last failed write: %s\n", t.Strategy, t.Failure)
		}
		if len(t.Findings) > 0 {
			fmt.Fprintf(out, "\n%s:\n%s\n", t.Strategy, strings.Join(t.Findings, "\n"))
		}
	}
	return nil
}
