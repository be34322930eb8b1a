package program

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

type deadletterDeleteCommand struct{ chosenFlags }

func (deadletterDeleteCommand) Help() string {
	return `Examples:

    mayfly deadletter delete 0f3c6f6f7b1d4b6a8a3f1c2d3e4f5a6b
    mayfly deadletter delete --all --source 'arn:aws:scheduler:us-east-1:000000000000:schedule/staging/*' --yes`
}

// Run deletes the chosen dead letters.
func (c deadletterDeleteCommand) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, "delete", "deleted", deliver.DeleteDeadLetters)
}
