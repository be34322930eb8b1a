package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// course records latenesses over time. The ledger guards it.
type course struct {
	first   int64     // ms: the beginning of the first second
	late    [][]int64 // ms, by the second of the deadline
	removed []int     // by the second of the removal
}

// add records the removal of an item that was due.
func (c *course) add(due, late int64) {
	secondOf := func(at int64) int { return int(max(at-c.first, 0) / 1000) }
	s, at := secondOf(due), secondOf(due+late)
	c.late = append(c.late, make([][]int64, max(s+1-len(c.late), 0))...)
	c.removed = append(c.removed, make([]int, max(at+1-len(c.removed), 0))...)
	c.late[s] = append(c.late[s], late)
	c.removed[at]++
}

// second is the outcome of a second of a run.
type second struct {
	Removed int      `json:"removed"` // in this second
	Late    lateness `json:"late_ms"` // of the items that were due in this second
}

func (c *course) seconds() []second {
	all := make([]second, max(len(c.late), len(c.removed)))
	for i := range all {
		if i < len(c.late) {
			all[i].Late = summarize(c.late[i])
		}
		if i < len(c.removed) {
			all[i].Removed = c.removed[i]
		}
	}
	return all
}

// fleetReport is the outcome of a run of a fleet.
type fleetReport struct {
	Command string    `json:"command"`
	Began   time.Time `json:"began"`
	Pending int       `json:"pending"`
	Rate    int       `json:"rate"`
	fleetTimes
	counts
	Behind   int64    `json:"writes_behind_ms"` // the most that the load was behind its plan
	Late     lateness `json:"lateness_ms"`
	Within1  float64  `json:"within_1s"` // share of the removals
	Events   []event  `json:"events"`
	Findings []string `json:"findings,omitempty"`
	Failure  string   `json:"last_failed_write,omitempty"`
	Seconds  []second `json:"seconds"` // from the first deadline on
}

// comparePending judges the number of pending items that the table holds at the end. The removals
// of pending items that the witness saw are findings already.
func (l *ledger) comparePending(found, written int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if missing := written - found - l.strange; missing != 0 {
		l.Wrong += max(missing, -missing) - 1
		l.findLocked(&l.Wrong, "wrong: the table holds %d pending items, %d were written, and the witness saw %d removals of items that do not expire", found, written, l.strange)
	}
}

func (f *fleetRun) report(began time.Time) *fleetReport {
	l := f.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &fleetReport{
		Command: f.line(), Began: began, Pending: f.Pending, Rate: f.Rate, fleetTimes: f.took, counts: l.counts, Behind: f.wave.behind.Load(),
		Late: summarize(l.plain), Events: f.events, Findings: l.findings, Seconds: l.course.seconds(),
	}
	late := 0
	for _, ms := range l.plain {
		if ms > 1000 {
			late++
		}
	}
	r.Within1 = 1 - float64(late)/float64(max(len(l.plain), 1))
	if l.failure != nil {
		r.Failure = l.failure.Error()
	}
	return r
}

// broken reports whether guard has broken a promise.
func (r *fleetReport) broken() bool { return r.Early+r.Wrong+r.Left+r.Died > 0 }

// print writes the report as text or JSON.
func (r *fleetReport) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	fmt.Fprintf(out, "%s\n\n", r.Command)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	row("pending items", fmt.Sprintf("%d, written in %.0f s, scanned by the workers in %.0f s", r.Pending, r.Fill, r.Scan))
	row("items that expire", fmt.Sprintf("%d, %d a second", r.Items, r.Rate))
	row("writes", fmt.Sprintf("%d, at most %d ms behind the plan", r.Writes, r.Behind))
	row("failed writes, not judged", r.Failed)
	row("removals", r.Removals)
	row("of these in transactions", r.Batched)
	row("deleted by the load", r.Deleted)
	row("refused deletions", r.Refused)
	row("verified in their last state", r.Verified)
	row("early", r.Early)
	row("wrong", r.Wrong)
	row("left over", r.Left)
	row("died", r.Died)
	row("lateness, p50 / p99 / max ms", r.Late)
	row("within 1 s", fmt.Sprintf("%.3f %%", 100*r.Within1))
	ends := []float64{float64(len(r.Seconds))}
	for _, e := range slices.Backward(r.Events) {
		ends = append(ends, e.Second)
	}
	ends = append(ends, 0)
	slices.Reverse(ends)
	for i := range len(ends) - 1 {
		name := "from the beginning"
		if i > 0 {
			name = "after a worker was " + r.Events[i-1].What
		}
		row(name, r.between(int(ends[i]), int(ends[i+1])))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Failure != "" {
		fmt.Fprintf(out, "\nthe last failed write: %s\n", r.Failure)
	}
	if len(r.Findings) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(r.Findings, "\n"))
	}
	return nil
}

// between describes the seconds from one to another: the median second's p50 and p99, and the most.
func (r *fleetReport) between(from, to int) string {
	var p50, p99 []int64
	most := int64(0)
	for _, s := range r.Seconds[min(from, len(r.Seconds)):min(to, len(r.Seconds))] {
		if s.Late.Count > 0 {
			p50, p99, most = append(p50, s.Late.P50), append(p99, s.Late.P99), max(most, s.Late.Max)
		}
	}
	return fmt.Sprintf("second %d to %d: median p50 %d ms, median p99 %d ms, max %d ms", from, to, summarize(p50).P50, summarize(p99).P50, most)
}
