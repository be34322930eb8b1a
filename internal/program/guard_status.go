package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/when"
)

type guardStatusCommand struct {
	Table     string `help:"Guarded table." required:"" placeholder:"NAME"`
	Attribute string `help:"TTL attribute. Default: the table's own TTL attribute." placeholder:"NAME"`
	Index     string `help:"Index of the index strategy. Default: found by its shape." placeholder:"NAME"`
	Shards    int    `help:"Shards of the index. Default: as noted by mayfly guard init." placeholder:"N"`
	Deadlines string `help:"Directory given to mayfly guard run --deadlines. Stop that worker first." placeholder:"DIR"`
	leasesFlag
	deadlinesTableFlag
	Minutes int  `help:"Minutes ahead for which deadlines are counted, up to 60." default:"10"`
	JSON    bool `name:"json" help:"Print JSON."`
	endpointClockFlag
	endpointFlags
}

func (guardStatusCommand) Help() string {
	return `Examples:

    mayfly guard status --endpoint aws --table orders
    mayfly guard status --endpoint http://127.0.0.1:8000 --table orders --minutes 60 --json

It shows the workers, their leases and progress, overdue items, and how many items expire in each of the next minutes.
It writes nothing. Workers report every 10 seconds.`
}

// Run prints the status of guarding.
func (c guardStatusCommand) Run(ctx context.Context, s streams) (err error) {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	o := guard.Options{DB: e.DynamoDB(), Table: c.Table, Attribute: c.Attribute, IndexName: c.Index, Shards: c.Shards, MaxSkew: time.Hour, LocalClock: c.localClock()}
	o.Tables = guard.Tables{Leases: c.LeasesTable, Deadlines: c.DeadlinesTable}
	if c.Minutes < 0 || c.Minutes > guard.LookMinutes {
		return misused(fmt.Errorf("--minutes %d is not between 0 and %d", c.Minutes, guard.LookMinutes), "for example --minutes 10")
	}
	if c.Deadlines != "" {
		if _, err := os.Stat(c.Deadlines); err != nil { // opening it would create it
			return misused(fmt.Errorf("no deadlines in %s: %w", c.Deadlines, err), "give the directory that mayfly guard run uses as --deadlines")
		}
		db, err := mayfly.Open(c.Deadlines, deadlinesOptions)
		if err != nil {
			return adviseOpen(err, c.Deadlines)
		}
		defer func() { err = joinClose(err, db) }()
		o.Deadlines = db.DynamoDB()
	}
	status, err := guard.Look(ctx, o, c.Minutes)
	if isOption(err) {
		return misusedOptions(err, optionFlag, "mayfly guard status --help")
	}
	if err != nil {
		return e.adviseGuard(err)
	}
	if c.JSON {
		return writeIndentedJSON(s.out, status)
	}
	return writeStatus(s.out, status)
}

func joinClose(err error, db *mayfly.DB) error {
	if closed := closeDB(db); err == nil {
		return closed
	}
	return err
}

// overdueAtWorkers returns what the workers reported about overdue items, for a strategy that keeps no deadlines at the endpoint.
func overdueAtWorkers(s *guard.Status) string {
	due, oldest := 0, int64(0)
	for _, w := range s.Workers {
		due, oldest = due+w.Due, max(oldest, w.Overdue)
	}
	switch {
	case len(s.Workers) == 0:
		return "unknown (no worker runs)"
	case due == 0:
		return "none reported by the workers"
	}
	return fmt.Sprintf("%d reported by the workers, the oldest %v late", due, (time.Duration(oldest) * time.Millisecond).Round(time.Millisecond))
}

// writeStatus prints the status as text.
func writeStatus(out io.Writer, s *guard.Status) error {
	created := ""
	if !s.Created.IsZero() {
		created = ", created " + when.UTC(s.Created)
	}
	fmt.Fprintf(out, "%s%s, TTL attribute %s, at %s\n", s.Table, created, s.Attribute, when.UTC(s.At))
	for _, part := range []func(io.Writer, *guard.Status) error{writeWorkers, writeShares, writeAhead} {
		fmt.Fprintln(out)
		if err := part(out, s); err != nil {
			return err
		}
	}
	return nil
}

func writeWorkers(out io.Writer, s *guard.Status) error {
	if len(s.Workers) == 0 {
		_, err := fmt.Fprintln(out, "no worker reports")
		return err
	}
	t := table{heading: []string{"Worker", "Strategy", "Seen", "Armed", "Until", "Due", "Oldest", "Removed", "Refused", "Late p50, p99, most", "A million cost"}}
	for _, w := range s.Workers {
		horizon, oldest, strategy := "", "", string(w.Strategy)
		if !w.Horizon.IsZero() {
			horizon = onDay(w.Horizon, s.At)
		}
		if w.Due > 0 {
			oldest = fmt.Sprintf("%v late", (time.Duration(w.Overdue) * time.Millisecond).Round(time.Millisecond))
		}
		if w.DryRun {
			strategy += ", dry run"
		}
		late, cost := "", ""
		if n := w.Counts[guard.Removed.String()]; n > 0 {
			late = fmt.Sprintf("%d, %d, %d ms", w.LateMS.P50, w.LateMS.P99, w.LateMS.Max)
			if w.Strategy != guard.Schedule { // the Scheduler's deletions consume units that guard does not see
				cost = fmt.Sprintf("$%.2f", (w.Read*guard.PriceRead+w.Write*guard.PriceWrite)/float64(n))
			}
		}
		t.add(w.Name, strategy, ago(s.At.Sub(w.At)), fmt.Sprint(w.Armed), horizon, fmt.Sprint(w.Due), oldest,
			fmt.Sprint(w.Counts[guard.Removed.String()]), fmt.Sprint(w.Counts[guard.Refused.String()]), late, cost)
	}
	return t.write(out)
}

// onDay returns an instant in UTC, without today's date.
func onDay(t, today time.Time) string {
	text, date := when.UTC(t), when.UTC(today)[:len("2006-01-02 ")]
	return strings.TrimPrefix(text, date)
}

// ago returns the time since a worker's last sign of life, as text.
func ago(d time.Duration) string {
	if d < 15*time.Second {
		return "now"
	}
	return d.Round(time.Second).String() + " ago"
}

// writeShares prints the workers' shares.
func writeShares(out io.Writer, s *guard.Status) error {
	if len(s.Shares) == 0 {
		_, err := fmt.Fprintln(out, "no leases")
		return err
	}
	t := table{heading: []string{"Leases of", "Owner", "Number", "Done up to"}}
	for _, share := range s.Shares {
		owners := map[string][]guard.LeaseStatus{}
		var names []string
		for _, l := range share.Leases {
			if owners[l.Owner] == nil {
				names = append(names, l.Owner)
			}
			owners[l.Owner] = append(owners[l.Owner], l)
		}
		slices.Sort(names)
		for _, name := range names {
			t.add(share.Of, cmp.Or(name, "-"), fmt.Sprint(len(owners[name])), lowest(owners[name]))
		}
	}
	return t.write(out)
}

// lowest returns the watermark that all leases have passed.
func lowest(leases []guard.LeaseStatus) string {
	var low time.Time
	for _, l := range leases {
		if !l.Watermark.IsZero() && (low.IsZero() || l.Watermark.Before(low)) {
			low = l.Watermark
		}
	}
	if low.IsZero() {
		return ""
	}
	return when.UTC(low)
}

func writeAhead(out io.Writer, s *guard.Status) error {
	switch b := s.Backlog; {
	case b == nil:
		fmt.Fprintf(out, "overdue: %s\n", overdueAtWorkers(s))
	case b.Items == 0:
		fmt.Fprintln(out, "overdue: none")
	default:
		fmt.Fprintf(out, "overdue: %d, the oldest since %s, %v ago\n", b.Items, when.UTC(b.Oldest), s.At.Sub(b.Oldest).Round(time.Millisecond))
	}
	if len(s.Upcoming) == 0 {
		return nil
	}
	var sum, most int64
	for _, n := range s.Upcoming {
		sum, most = sum+n, max(most, n)
	}
	fmt.Fprintf(out, "expiring in the next %d minutes: %d\n", len(s.Upcoming), sum)
	if sum == 0 {
		return nil
	}
	width := upcomingCells(terminalWidth(out), most)
	for i, n := range s.Upcoming {
		bar := strings.Repeat("▇", int((width*n+most-1)/most))
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %s  %s %d", s.At.Add(time.Duration(i)*time.Minute).Format("15:04:05Z"), bar, n), " "))
	}
	return nil
}

// upcomingCells returns the cells of the bar for the highest number of items beside a time, on a
// terminal of some columns: 40, or as many as fit, and none where fewer than 8 fit.
func upcomingCells(columns int, most int64) int64 {
	room := columns - len("  15:04:05Z   ") - len(strconv.FormatInt(most, 10))
	if room < barCellsMin {
		return 0
	}
	return int64(min(room, 40))
}
