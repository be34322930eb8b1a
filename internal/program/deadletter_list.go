package program

import (
	"context"
	"fmt"
	"sort"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

type deadletterListCommand struct {
	letterFlags
	Limit int  `help:"Most rows to show; 0 shows all." default:"100"`
	JSON  bool `name:"json" help:"Print JSON lines with all fields."`
	endpointFlags
}

func (deadletterListCommand) Help() string {
	return `Examples:

    mayfly deadletter list
    mayfly deadletter list --target 'arn:aws:sqs:*' --code ThrottlingException
    mayfly deadletter list --limit 0 --json`
}

// Run lists dead letters. The table begins with the oldest; JSON lines are printed as they are
// read.
func (c deadletterListCommand) Run(ctx context.Context, s streams) error {
	if c.Limit < 0 {
		return misused(fmt.Errorf("--limit %d is negative", c.Limit), "use 0 to show all")
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	shown := listing{
		table: table{heading: []string{"ID", "When (UTC)", "Target", "Attempts", "Code", "Message"}}, plural: "dead letters",
		json: c.JSON, limit: c.Limit, hint: "--limit 0 shows all",
	}
	var letters []deliver.DeadLetter
	err = e.eachLetter(ctx, c.filter(), func(page []deliver.DeadLetter) error {
		for _, l := range page[:shown.fit(len(page))] {
			if c.JSON {
				if err := writeJSON(s.out, letterJSON(l)); err != nil {
					return err
				}
				continue
			}
			l.Body, l.Attributes = nil, nil // the table does not show them
			letters = append(letters, l)
		}
		if shown.more {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return err
	}
	sort.SliceStable(letters, func(a, b int) bool { return letters[a].When.Before(letters[b].When) })
	for _, l := range letters {
		shown.add(l.ID, when.UTC(l.When), l.Target, fmt.Sprint(l.Attempts), l.Code, shortened(l.Message, 60))
	}
	return shown.end(s)
}

func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
