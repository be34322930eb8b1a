package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/guard"
)

// limitFlags bound what guard may remove.
type limitFlags struct {
	AcceptOverdue string        `help:"Accept that so many items, or any number, are overdue when guard begins. Without it, guard asks, or ends with code 7, if more than 1,000 items or 10% are overdue by more than a day, or if any are and the table's own TTL does not use the attribute." placeholder:"N|any"`
	MaxRemovals   int64         `help:"End with code 7 after so many removals by this worker, from all tables together. Default: no limit." placeholder:"N"`
	MaxRate       float64       `help:"Most removals a second by this worker from each table. Default: no limit." placeholder:"N"`
	StopAfter     time.Duration `help:"End after this time, with code 0. The time of a question does not count. Default: never." placeholder:"TIME"`
}

// anyNumber is the value of --accept-overdue that accepts any number.
const anyNumber = "any"

// check returns an error for a limit that is none.
func (f limitFlags) check() error {
	if f.StopAfter < 0 {
		return misused(fmt.Errorf("--stop-after %v is negative", f.StopAfter), "for example --stop-after 1h")
	}
	if n, err := strconv.ParseInt(f.AcceptOverdue, 10, 64); f.AcceptOverdue != "" && f.AcceptOverdue != anyNumber && (err != nil || n < 1) {
		return misused(fmt.Errorf("--accept-overdue: %q is neither a number of items nor any", f.AcceptOverdue), "for example --accept-overdue 5000")
	}
	return nil
}

// apply sets the options of these flags.
func (f limitFlags) apply(o *guard.Options) {
	o.MaxRemovals, o.MaxRate = f.MaxRemovals, f.MaxRate
	if o.AcceptOverdue, _ = strconv.ParseInt(f.AcceptOverdue, 10, 64); f.AcceptOverdue == anyNumber {
		o.AcceptOverdue = -1
	}
}

// guardWork is the work of the process until a question.
type guardWork struct {
	begun   bool  // a table was guarded, so removals may have been attempted
	removed int64 // items, as far as the endpoint confirmed it
}

// add adds the work on tables whose guards have ended.
func (w *guardWork) add(tables []*guarded) {
	for _, t := range tables {
		_, strategy := t.Guarded()
		w.begun = w.begun || strategy != guard.Auto
		t.mu.Lock()
		w.removed += t.removed
		t.mu.Unlock()
	}
}

// declined is a problem about which the user was asked, and did not say yes. It keeps the problem's
// exit code and next step.
type declined struct {
	problem error
	work    guardWork
}

func (d *declined) Error() string {
	if !d.work.begun {
		return "cancelled: nothing was removed"
	}
	return fmt.Sprintf("cancelled: guard has ended, after %s", counted(int(d.work.removed), "confirmed removal"))
}

func (d *declined) Unwrap() error { return d.problem }

// guardAsking guards all tables for the time of --stop-after. If a table has many overdue items, it
// asks whether they are to be removed, and begins again. The time of the question does not count.
func (f limitFlags) guardAsking(ctx context.Context, guardAll func(context.Context, map[string]bool) ([]*guarded, error), ask func(error, guardWork) (string, error)) error {
	var done guardWork
	left := f.StopAfter
	for accepted := map[string]bool{}; ; {
		within, cancel := ctx, context.CancelFunc(func() {})
		if f.StopAfter > 0 {
			within, cancel = context.WithTimeout(ctx, left)
		}
		begun := time.Now()
		tables, err := guardAll(within, accepted)
		cancel()
		left -= time.Since(begun)
		done.add(tables)
		table, err := ask(err, done)
		if table == "" {
			return err
		}
		accepted[table] = true
	}
}

// askOverdue asks at a terminal whether overdue items are to be removed. Without a terminal, or if
// the error is about something else, it returns the error.
func askOverdue(s streams, err error, done guardWork) (table string, failed error) {
	var found *guard.Overdue
	if !errors.As(err, &found) || asTerminal(os.Stdin) == nil {
		return "", err
	}
	fmt.Fprintf(s.err, "%v\n", err)
	if confirm(s, false, fmt.Sprintf("Remove the overdue items of table %s", found.Table)) != nil {
		return "", &declined{err, done}
	}
	return found.Table, nil
}

// examplesOf returns a line for each example, to be shown below a message.
func examplesOf(o *guard.Overdue) string {
	var lines strings.Builder
	for _, one := range o.Examples {
		fmt.Fprintf(&lines, "\n  %s overdue since %s", one.Key, one.Deadline.Format(time.RFC3339))
	}
	return lines.String()
}
