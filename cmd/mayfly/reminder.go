package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/mayflydb/mayfly/internal/work/reminder"
)

// reminderCommand looks at reminders. Their rules are declared in a file, and the reminders are kept in a table, so it speaks the API of DynamoDB.
type reminderCommand struct {
	List reminderListCommand `cmd:"" help:"List the coming reminders."`
}

// Help is the part of --help behind the flags.
func (reminderCommand) Help() string {
	return `Examples:

    mayfly serve --reminders reminders.yaml --targets targets.yaml
    mayfly reminder list

A reminder calls a target at a time that an item names. docs/reminders.md describes the file of rules.`
}

type reminderListCommand struct {
	Rule  string `arg:"" optional:"" help:"Name of a rule. Default: all."`
	Limit int    `help:"Number of reminders to show, 1 to 10000." default:"100"`
	JSON  bool   `name:"json" help:"Print JSON lines with the bodies for the targets."`
	endpointFlags
}

// Help is the part of --help behind the flags.
func (reminderListCommand) Help() string {
	return `Examples:

    mayfly reminder list
    mayfly reminder list visit --json`
}

const remindersMax = 10_000

// Run lists reminders, those that are due first.
func (c reminderListCommand) Run(ctx context.Context, s streams) error {
	if c.Limit < 1 || c.Limit > remindersMax {
		return misused(fmt.Errorf("--limit %d is not between 1 and %d", c.Limit, remindersMax), "for example --limit 100")
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	var next []reminder.Reminder
	more := false
	trim := func() {
		sort.Slice(next, func(i, j int) bool {
			a, b := next[i], next[j]
			return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key)) < 0
		})
		if len(next) > c.Limit {
			next, more = slices.Clone(next[:c.Limit]), true
		}
	}
	err = reminder.Each(ctx, e.dynamodb(), c.Rule, func(r reminder.Reminder) error {
		if next = append(next, r); len(next) > 2*remindersMax {
			trim() // no more is kept than can be shown
		}
		return nil
	})
	if err != nil {
		return e.advise(err)
	}
	trim()
	if more {
		defer fmt.Fprintf(s.err, "there are more than %d; --limit shows more\n", c.Limit)
	}
	if c.JSON {
		return printRemindersJSON(s, next)
	}
	if len(next) == 0 {
		fmt.Fprintln(s.out, "no reminders")
		return nil
	}
	shown := table{heading: []string{"Rule", "Key", "Due (UTC)", "In"}}
	now := e.now(ctx)
	for _, r := range next {
		shown.add(r.Rule, r.Key, utcText(r.Due), inText(r.Due.Sub(now).Round(time.Millisecond)))
	}
	return shown.write(s.out)
}

func printRemindersJSON(s streams, all []reminder.Reminder) error {
	for _, r := range all {
		line := struct {
			Rule  string    `json:"rule"`
			Key   string    `json:"key"`
			Due   *wireTime `json:"due"`
			Input string    `json:"input"`
		}{r.Rule, r.Key, wireTimeOf(r.Due), string(r.Input)}
		if err := writeJSON(s.out, line); err != nil {
			return err
		}
	}
	return nil
}
