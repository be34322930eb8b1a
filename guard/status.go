package guard

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// Status is the state of guarding a table, from the tables of its workers.
type Status struct {
	Table     string    `json:"table"`
	Attribute string    `json:"attribute"`
	Created   time.Time `json:"created,omitzero"` // when the table was made; zero if the endpoint does not say
	At        time.Time `json:"at"`               // by the endpoint's clock, within a second
	Workers   []Worker  `json:"workers"`
	Shares    []Share   `json:"shares"`

	// Backlog counts the due items in the deadline table or the index; nil if only the workers know
	// them.
	Backlog *Backlog `json:"backlog,omitempty"`
	// Upcoming has the deadlines per minute from At on: all of them if Backlog is not nil, else
	// those that the workers have armed.
	Upcoming []int64 `json:"upcoming"`
}

// Backlog counts the items that are past their deadlines and not yet removed.
type Backlog struct {
	Items  int64     `json:"items"`
	Oldest time.Time `json:"oldest,omitzero"` // deadline; zero if there is none
}

// Share is a set of leases that workers divide among each other.
type Share struct {
	Of     string        `json:"of"` // "stream", "partitions", "index", …
	Leases []LeaseStatus `json:"leases"`
}

// LeaseStatus is one lease of a Share.
type LeaseStatus struct {
	Name  string `json:"name"`
	Owner string `json:"owner,omitempty"` // "": free at present
	Term  int64  `json:"term"`
	// all deadlines before it are finished; zero if the checkpoint is not a time
	Watermark  time.Time `json:"watermark,omitzero"`
	Checkpoint string    `json:"checkpoint,omitempty"` // the text, if it is not a watermark
}

// Worker is a worker's report about itself, written every 10 seconds.
type Worker struct {
	Name     string    `json:"name"`
	Strategy Strategy  `json:"strategy"`
	DryRun   bool      `json:"dry_run,omitempty"`
	Local    bool      `json:"local,omitempty"` // it keeps the deadlines in a store of its own
	Since    time.Time `json:"since"`           // by the endpoint's clock
	At       time.Time `json:"at"`              // time of the report
	Armed    int       `json:"armed"`
	Due      int       `json:"due"`
	Overdue  int64     `json:"overdue_ms"`         // age of the oldest due deadline
	GivenUp  int       `json:"given_up,omitempty"` // items whose last removal was rejected
	// all deadlines before it that this worker has to remove are armed
	Horizon time.Time `json:"horizon,omitzero"`
	// events since it began, by the names of What
	Counts   map[string]int64 `json:"counts"`
	LateMS   LateMS           `json:"late_ms"`
	Read     float64          `json:"read_units"`
	Write    float64          `json:"write_units"`
	Upcoming []int64          `json:"upcoming"` // armed deadlines per minute from At on
}

// LateMS is the lateness of removals in milliseconds: bounds of histogram buckets, and the maximum.
type LateMS struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

const (
	reportEvery  = 10 * time.Second
	reportLimit  = 5 * time.Second
	reportForget = time.Hour // after so long, a silent worker is not shown, and its row is deleted
)

// Report publishes this worker's state for Look every 10 seconds, in a row of its own in the table
// of leases, which it deletes at the end. It begins when Ready is closed, and blocks until ctx
// is done. It logs the first failed write; guarding does not depend on it.
func (g *Guard) Report(ctx context.Context) {
	select {
	case <-g.Ready():
	case <-ctx.Done():
		return
	}
	ctx = optional(ctx)
	leases := lease.New(g.db, g.statusName(), lease.Options{Owner: g.o.Owner, Duration: time.Hour, Table: g.leasesTable()})
	g.forgetSilent(ctx, leases)
	since := g.shownNow()
	var row *lease.Lease
	for logged := false; ctx.Err() == nil; clock.Pause(reportEvery, ctx.Done()) {
		text, err := json.Marshal(g.worker(since))
		if err == nil {
			row, err = writeStatus(ctx, leases, row, string(text))
		}
		if err != nil && ctx.Err() == nil && !logged {
			logged = true
			g.log.Warn("mayfly guard status will not show this worker", "table", g.o.Table, "error", err)
		}
	}
	if row != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportLimit)
		defer cancel()
		// else the worker is shown as silent, and forgotten after an hour
		_ = leases.Forget(last, row.Row())
	}
}

func (g *Guard) statusName() string { return statusPrefix + g.table.Label() + statusSuffix }

const (
	statusPrefix = "guard/"
	statusSuffix = "/status"
)

// writeStatus writes the worker's row, which is there from the first time on.
func writeStatus(ctx context.Context, leases *lease.Leases, row *lease.Lease, text string) (*lease.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	var err error
	if row != nil {
		if err = row.Save(ctx, text); !errors.Is(err, lease.ErrLost) {
			return row, err
		}
	}
	if row, err = leases.Take(ctx, lease.Row{Shard: leases.Owner()}); err != nil {
		return nil, err
	}
	return row, row.Save(ctx, text)
}

// forgetSilent deletes the rows of workers that have not reported for reportForget, and unreadable
// rows.
func (g *Guard) forgetSilent(ctx context.Context, leases *lease.Leases) {
	rows, err := leases.Rows(ctx)
	if err != nil {
		return
	}
	for _, r := range rows {
		if w, ok := readWorker(r.Checkpoint); !ok || g.shownNow().Sub(w.At) > reportForget {
			_ = leases.Forget(ctx, r)
		}
	}
}

// shownNow returns a lower bound of the endpoint's time, for reports.
func (g *Guard) shownNow() time.Time { return time.UnixMilli(g.now()).UTC() }

// worker returns this worker's report.
func (g *Guard) worker(since time.Time) Worker {
	s := g.Stats()
	w := Worker{
		Name: g.o.Owner, Strategy: s.Strategy, DryRun: g.o.DryRun, Local: g.o.Deadlines != g.o.DB, Since: since, At: g.shownNow(), Armed: s.Armed, Due: s.Due,
		Overdue: s.Overdue.Milliseconds(), GivenUp: s.GivenUp, Counts: map[string]int64{}, Read: s.Read, Write: s.Write,
		LateMS: LateMS{s.Lateness.Quantile(0.5).Milliseconds(), s.Lateness.Quantile(0.99).Milliseconds(), s.Lateness.Max.Milliseconds()},
	}
	for what, n := range s.Counts {
		if n > 0 && What(what) != Consumed {
			w.Counts[What(what).String()] = n
		}
	}
	last := len(s.Upcoming)
	for last > 0 && s.Upcoming[last-1] == 0 {
		last--
	}
	w.Upcoming = s.Upcoming[:last]
	if h, ok := g.readiness.runs.(horizoner); ok {
		if at := h.HorizonAt(); at > 0 {
			w.Horizon = time.UnixMilli(at).UTC()
		}
	}
	return w
}

func readWorker(text string) (w Worker, ok bool) {
	return w, json.Unmarshal([]byte(text), &w) == nil && w.Name != "" && !w.At.IsZero()
}

// whatNames are the names of What in metrics.
var whatNames = [whatCount]string{
	Armed: "armed", Disarmed: "disarmed", Removed: "removed", Refused: "refused", Spared: "spared", Throttled: "throttled", Failed: "failed", BadValue: "bad_value",
	Consumed: "consumed", Archived: "archived", Retried: "retried", Missed: "missed",
}

// String is a name in lower case: "bad_value".
func (w What) String() string {
	if w < 0 || int(w) >= len(whatNames) {
		return strconv.Itoa(int(w))
	}
	return whatNames[w]
}
