package main

import (
	"context"
	"fmt"
	"io"
	"sort"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

type deadletterListCommand struct {
	letterFlags
	Limit int  `help:"Most rows to show; 0 shows all." default:"100"`
	JSON  bool `name:"json" help:"Print JSON lines with all fields."`
	endpointFlags
}

// Help is the part of --help behind the flags.
func (deadletterListCommand) Help() string {
	return `Examples:

    mayfly deadletter list
    mayfly deadletter list --target 'arn:aws:sqs:*' --code ThrottlingException
    mayfly deadletter list --limit 0 --json`
}

// Run lists dead letters.
func (c deadletterListCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	var letters []deliver.DeadLetter
	more := false
	err = e.eachLetter(ctx, c.filter(), func(page []deliver.DeadLetter) error {
		if c.Limit > 0 && len(letters)+len(page) > c.Limit {
			page, more = page[:c.Limit-len(letters)], true
		}
		if c.JSON {
			for _, l := range page {
				if err := writeJSON(s.out, letterJSON(l)); err != nil {
					return err
				}
			}
		}
		for _, l := range page {
			l.Body, l.Attributes = nil, nil // what the table does not show need not be kept
			letters = append(letters, l)
		}
		if more {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return err
	}
	if more {
		defer fmt.Fprintf(s.err, "there are more than %d; --limit 0 shows all\n", c.Limit)
	}
	switch {
	case c.JSON:
		return nil
	case len(letters) == 0:
		fmt.Fprintln(s.out, "no dead letters")
		return nil
	}
	return writeLetters(s.out, letters)
}

// writeLetters shows dead letters, the oldest first.
func writeLetters(w io.Writer, letters []deliver.DeadLetter) error {
	sort.SliceStable(letters, func(a, b int) bool { return letters[a].When.Before(letters[b].When) })
	shown := table{heading: []string{"ID", "When (UTC)", "Target", "Attempts", "Code", "Message"}}
	for _, l := range letters {
		shown.add(l.ID, utcText(l.When), l.Target, fmt.Sprint(l.Attempts), l.Code, shortened(l.Message, 60))
	}
	return shown.write(w)
}

func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
