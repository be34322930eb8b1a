package program

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/front/admin"
)

// tally counts the events of a table since its last line.
type tally struct {
	mu      sync.Mutex
	counts  map[guard.What]int
	late    []time.Duration // of removals; at most lateMost
	spared  []string        // keys; at most sparedMost
	written float64         // total of write units
	read    float64
	removed int64 // total
}

const (
	lateMost   = 100_000
	sparedMost = 10_000

	guardLinesEvery = time.Second
)

// observer returns a function that counts guard's events.
func (t *tally) observer(metrics *admin.Guard, table string, dryRun bool) func(guard.Event) {
	return func(e guard.Event) {
		metrics.Count(table, e.What.String())
		switch e.What {
		case guard.Armed, guard.Disarmed:
			return
		case guard.Removed:
			metrics.Lateness(table, e.Late)
		case guard.Consumed:
			metrics.Consumed(table, e.Read, e.Write)
		}
		t.note(e, dryRun)
	}
}

func (t *tally) note(e guard.Event, dryRun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[guard.What]int{}
	}
	t.counts[e.What]++
	switch e.What {
	case guard.Removed:
		t.removed++
		if len(t.late) < lateMost {
			t.late = append(t.late, e.Late)
		}
	case guard.Spared:
		if dryRun && len(t.spared) < sparedMost {
			t.spared = append(t.spared, e.Key)
		}
	case guard.Consumed:
		t.read += e.Read
		t.written += e.Write
	}
}

// take returns the counts and resets them.
func (t *tally) take() (counts map[guard.What]int, late []time.Duration, spared []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts, late, spared = t.counts, t.late, t.spared
	t.counts, t.late, t.spared = nil, nil, nil
	return counts, late, spared
}

// eventsShown are the events that lines count.
var eventsShown = []guard.What{guard.Removed, guard.Spared, guard.Refused, guard.Throttled, guard.Failed, guard.BadValue, guard.Archived, guard.Missed}

// guardLines prints a line per second for each table with events.
type guardLines struct {
	mu     sync.Mutex
	out    io.Writer // guarded by mu
	json   bool
	tables []*guarded
}

// run prints until ctx is done.
func (l *guardLines) run(ctx context.Context) {
	tick := time.NewTicker(guardLinesEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.flush()
		case <-ctx.Done():
			return
		}
	}
}

// guardBegin is the first line about a table.
type guardBegin struct {
	At        time.Time `json:"at"`
	Table     string    `json:"table"`
	Guarding  bool      `json:"guarding"`
	Attribute string    `json:"attribute"`
	Strategy  string    `json:"strategy"`
	Reason    string    `json:"reason,omitempty"` // why auto has chosen scan
	Endpoint  string    `json:"endpoint"`
	DryRun    bool      `json:"dry_run,omitempty"`
}

func (l *guardLines) begin(t *guarded, attribute string, strategy guard.Strategy, endpoint string, dryRun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.json {
		l.encode(guardBegin{machineNow(), t.table, true, attribute, string(strategy), t.Stats().Reason, endpoint, dryRun})
		return
	}
	what := "guarding"
	if dryRun {
		what = "watching (dry run)"
	}
	chosen := string(strategy)
	if reason := t.Stats().Reason; reason != "" {
		chosen += " (" + reason + ")"
	}
	fmt.Fprintf(l.out, "%s %s at %s: TTL attribute %s, strategy %s\n", what, t.table, endpoint, attribute, chosen)
}

// guardLine counts the events of a table in about a second.
type guardLine struct {
	At        time.Time `json:"at"`
	Table     string    `json:"table"`
	Removed   int       `json:"removed"`
	Spared    int       `json:"spared,omitempty"` // only in a dry run
	Refused   int       `json:"refused"`
	Throttled int       `json:"throttled"`
	Failed    int       `json:"failed"`
	BadValues int       `json:"bad_values"`
	Archived  int       `json:"archived,omitempty"`
	Missed    int       `json:"missed,omitempty"` // found by the audit, unknown to the strategy
	Armed     int       `json:"armed"`
	Late      *lateness `json:"late_ms,omitempty"`
	Keys      []string  `json:"keys,omitempty"` // of items that a dry run would remove
}

// lateness is in milliseconds.
type lateness struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func latenessOf(late []time.Duration) *lateness {
	if len(late) == 0 {
		return nil
	}
	slices.Sort(late)
	at := func(share float64) int64 { return late[int(share*float64(len(late)-1))].Milliseconds() }
	return &lateness{at(0.5), at(0.99), at(1)}
}

func (l *guardLines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tables {
		counts, late, spared := t.take()
		if !slices.ContainsFunc(eventsShown, func(w guard.What) bool { return counts[w] > 0 }) {
			continue
		}
		line := guardLine{
			At: machineNow(), Table: t.table, Removed: counts[guard.Removed], Spared: counts[guard.Spared], Refused: counts[guard.Refused], Throttled: counts[guard.Throttled],
			Failed: counts[guard.Failed], BadValues: counts[guard.BadValue], Archived: counts[guard.Archived], Missed: counts[guard.Missed], Armed: t.Stats().Armed, Late: latenessOf(late), Keys: spared,
		}
		if l.json {
			l.encode(line)
			continue
		}
		fmt.Fprintln(l.out, line.text())
	}
}

func (l *guardLines) encode(v any) {
	encoder := json.NewEncoder(l.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
}

// text returns the line as text.
func (g guardLine) text() string {
	var parts []string
	add := func(n int, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(g.Removed, "%d removed")
	if g.Late != nil {
		parts[0] += fmt.Sprintf(", late %d ms (p50), %d (p99), %d (most)", g.Late.P50, g.Late.P99, g.Late.Max)
	}
	add(g.Spared, "%d would be removed")
	add(g.Refused, "%d refused")
	add(g.Throttled, "%d throttled")
	add(g.Failed, "%d given up")
	add(g.BadValues, "%d not epoch seconds")
	add(g.Archived, "%d archived")
	add(g.Missed, "%d missed by the strategy")
	add(g.Armed, "%d armed")
	text := fmt.Sprintf("%s %s: %s", g.At.Format("15:04:05Z"), g.Table, strings.Join(parts, "; "))
	for _, key := range g.Keys {
		text += "\n  would remove " + oneLine(key)
	}
	if more := g.Spared - len(g.Keys); more > 0 && g.Spared > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return text
}

// machineNow returns the time of a line.
func machineNow() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// worker returns this process's name for leases. No other process has the same, nor an earlier run.
func (c guardRunCommand) worker() string {
	name := c.Worker
	if name == "" {
		name, _ = os.Hostname()
	}
	return cmp.Or(name, "worker") + "-" + strings.ToLower(rand.Text()[:8])
}

// tableMetrics returns the data of the tables for metrics.
func tableMetrics(tables []*guarded) (all []admin.GuardTable) {
	for _, t := range tables {
		s := t.Stats()
		g := admin.GuardTable{Table: t.table, Armed: s.Armed, Due: s.Due, GivenUp: s.GivenUp, OldestOverdue: s.Overdue}
		g.Problems = map[string]bool{string(guard.Skew): false, string(guard.NoStream): false, string(guard.NoJournal): false}
		for _, p := range t.Problems() {
			g.Problems[string(p.Code)] = true
		}
		if cost := s.CostPerMillion(); !math.IsNaN(cost) {
			g.USDPerMillion = cost
		}
		all = append(all, g)
	}
	return all
}
