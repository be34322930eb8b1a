package main

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

type deadletterDeleteCommand struct {
	chosenFlags
	endpointFlags
}

// Help returns the text of --help below the flags.
func (deadletterDeleteCommand) Help() string {
	return `Examples:

    mayfly deadletter delete 0f3c6f6f7b1d4b6a8a3f1c2d3e4f5a6b
    mayfly deadletter delete --all --source 'arn:aws:scheduler:us-east-1:000000000000:schedule/staging/*' --yes`
}

// Run deletes the chosen dead letters.
func (c deadletterDeleteCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	db := e.dynamodb()
	return c.change(ctx, s, e, "delete", "deleted", func(ids ...string) (int, error) {
		return deliver.DeleteDeadLetters(ctx, db, ids...)
	})
}
