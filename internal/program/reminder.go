package program

import (
	"cmp"
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/reminder"
)

// reminderCommand lists reminders. They are items of a table, so it uses the DynamoDB API.
type reminderCommand struct {
	List reminderListCommand `cmd:"" help:"List the coming reminders."`
}

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

func (reminderListCommand) Help() string {
	return `Examples:

    mayfly reminder list
    mayfly reminder list visit --json`
}

// Run lists reminders in the order of their times.
func (c reminderListCommand) Run(ctx context.Context, s streams) error {
	if err := checkLimit(c.Limit); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	next := firstRows[reminder.Reminder]{limit: c.Limit, before: func(a, b *reminder.Reminder) bool {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key)) < 0
	}}
	err = reminder.Each(ctx, e.DynamoDB(), c.Rule, func(r reminder.Reminder) error {
		next.add(r)
		return nil
	})
	if err != nil {
		return e.advise(err)
	}
	rows, now := next.sorted(), e.now(ctx)
	shown := listing{
		table: table{heading: []string{"Rule", "Key", "Due (UTC)", "In"}}, plural: "reminders",
		json: c.JSON, limit: c.Limit, hint: "--limit shows more", more: next.more,
	}
	for _, r := range rows {
		if err := shown.show(s, reminderJSON(r), r.Rule, r.Key, when.UTC(r.Due), when.Until(r.Due.Sub(now).Round(time.Millisecond))); err != nil {
			return err
		}
	}
	return shown.end(s)
}

// reminderJSON returns the line of --json.
func reminderJSON(r reminder.Reminder) any {
	return struct {
		Rule  string    `json:"rule"`
		Key   string    `json:"key"`
		Due   *wireTime `json:"due"`
		Input string    `json:"input"`
	}{r.Rule, r.Key, wireTimeOf(r.Due), string(r.Input)}
}
