package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// deadletterCommand lists, shows, redrives and deletes dead letters. They are items of a table, so
// the commands use the DynamoDB API.
type deadletterCommand struct {
	List    deadletterListCommand    `cmd:"" help:"List dead letters."`
	Show    deadletterShowCommand    `cmd:"" help:"Show a dead letter: its target, error and body."`
	Redrive deadletterRedriveCommand `cmd:"" help:"Deliver dead letters again."`
	Delete  deadletterDeleteCommand  `cmd:"" help:"Delete dead letters."`
}

func (deadletterCommand) Help() string {
	return `Examples:

    mayfly deadletter list
    mayfly deadletter redrive --all --target 'arn:aws:lambda:*'

A dead letter is a delivery that failed for good. It is kept for 14 days, even if a dead-letter queue received it too.`
}

const serviceDynamoDB = "DYNAMODB" // as in AWS_ENDPOINT_URL_DYNAMODB

// letterFlags select dead letters.
type letterFlags struct {
	Target string `help:"Only those for this target: an ARN, or its beginning and *." placeholder:"ARN"`
	Source string `help:"Only those from this schedule, rule or trigger: an ARN, or its beginning and *." placeholder:"ARN"`
	Code   string `help:"Only those that failed with this code, such as ResourceNotFoundException." placeholder:"CODE"`
}

func (f letterFlags) filter() deliver.DeadLetterFilter {
	return deliver.DeadLetterFilter{Target: f.Target, Source: f.Source, Code: f.Code}
}

// String describes the selected dead letters, for a question.
func (f letterFlags) String() string {
	var parts []string
	for _, p := range [][2]string{{" for ", f.Target}, {" from ", f.Source}, {" with the code ", f.Code}} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(parts, "")
}

// chosenFlags select dead letters for redrive or delete.
type chosenFlags struct {
	IDs []string `arg:"" optional:"" name:"id" help:"IDs of dead letters."`
	All bool     `help:"All dead letters, or those that --target, --source and --code select."`
	letterFlags
	Yes  bool `help:"With --all: do not ask for confirmation."`
	JSON bool `name:"json" help:"Print the number of dead letters as JSON."`
	endpointFlags
}

func (f chosenFlags) check() error {
	switch {
	case f.All && len(f.IDs) > 0:
		return misused(errors.New("give IDs or --all, not both"), "")
	case !f.All && len(f.IDs) == 0:
		return misused(errors.New("which dead letters? give IDs, or --all with or without --target, --source and --code"), "mayfly deadletter list")
	case !f.All && f.letterFlags != letterFlags{}:
		return misused(errors.New("--target, --source and --code select among all dead letters and need --all"), "add --all")
	}
	return nil
}

const letterPage = 100 // dead letters read or changed in one step

// eachLetter calls do with pages of dead letters until do returns errEnough.
func (e *endpoint) eachLetter(ctx context.Context, f deliver.DeadLetterFilter, do func([]deliver.DeadLetter) error) error {
	db := e.DynamoDB()
	for from := ""; ; {
		page, next, err := deliver.ListDeadLetters(ctx, db, f, letterPage, from)
		if err != nil {
			return e.advise(err)
		}
		if err := do(page); err == errEnough {
			return nil
		} else if err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		from = next
	}
}

// change calls do for the chosen dead letters and prints their number. verb stands in the question,
// done in the result.
func (f chosenFlags) change(
	ctx context.Context, s streams, verb, done string, do func(context.Context, *dynamodb.Client, ...string) (int, error),
) error {
	if err := f.check(); err != nil {
		return err
	}
	e, err := f.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	db := e.DynamoDB()
	if !f.All {
		n, err := do(ctx, db, f.IDs...)
		if err != nil {
			return e.advise(err)
		}
		missing := len(f.IDs) - n
		if missing == 1 && len(f.IDs) == 1 {
			return advise(fmt.Errorf("dead letter %s not found", f.IDs[0]), "mayfly deadletter list")
		}
		if n > 0 {
			if err := f.print(s, done, n); err != nil {
				return err
			}
		}
		if missing > 0 {
			return advise(fmt.Errorf("%d of %s not found", missing, counted(len(f.IDs), "dead letter")), "mayfly deadletter list")
		}
		return nil
	}
	if err := confirm(s, f.Yes, verb+" all dead letters"+f.letterFlags.String()); err != nil {
		return err
	}
	total := 0
	line := newBar(s.err)
	err = e.eachLetter(ctx, f.filter(), func(page []deliver.DeadLetter) error {
		ids := make([]string, len(page))
		for i, l := range page {
			ids[i] = l.ID
		}
		n, err := do(ctx, db, ids...)
		total += n
		line.draw(0, 1, done+" "+counted(total, "dead letter"))
		return e.advise(err)
	})
	line.clear()
	return cmp.Or(f.print(s, done, total), err)
}

// print prints how many dead letters were changed.
func (f chosenFlags) print(s streams, done string, n int) error {
	if f.JSON {
		return writeJSON(s.out, map[string]int{done: n})
	}
	_, err := fmt.Fprintf(s.out, "%s %s\n", done, counted(n, "dead letter"))
	return err
}
