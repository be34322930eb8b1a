package program

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

type deadletterRedriveCommand struct{ chosenFlags }

func (deadletterRedriveCommand) Help() string {
	return `Examples:

    mayfly deadletter redrive 0f3c6f6f7b1d4b6a8a3f1c2d3e4f5a6b
    mayfly deadletter redrive --all --code ResourceNotFoundException --yes

A redriven dead letter is delivered at once, under the same ID. Its attempts are counted from zero again.`
}

// Run delivers the chosen dead letters again.
func (c deadletterRedriveCommand) Run(ctx context.Context, s streams) error {
	return c.change(ctx, s, "redrive", "redriven", deliver.RedriveDeadLetters)
}
