package program

import (
	"context"
	"fmt"
	"io"

	"github.com/mayflydb/mayfly/internal/front/keyfile"
)

// policyCommand explains what the keys of a server may do.
type policyCommand struct {
	Check policyCheckCommand `cmd:"" help:"Explain whether a key, or a policy, allows a request."`
	Show  policyShowCommand  `cmd:"" help:"Print a ready policy as JSON, to start one of your own from."`
}

func (policyCommand) Help() string {
	return `Examples:

    mayfly policy show table:orders
    mayfly policy check --keys keys.yaml --key ORDERS1 --action GetItem --resource orders

Policies say what the keys in the file of mayfly serve --keys may do. They are IAM's, in JSON: docs/security.md.`
}

type policyShowCommand struct {
	Name string `arg:"" help:"read-only, backup, table:NAME for everything on a table, or guard:NAME for mayfly guard run with the stream strategy."`
}

func (policyShowCommand) Help() string {
	return `Examples:

    mayfly policy show read-only
    mayfly policy show table:orders >orders.json
    mayfly policy show guard:orders`
}

// Run prints the policy.
func (c policyShowCommand) Run(_ context.Context, s streams) error {
	text, err := keyfile.Ready(c.Name, guardKeyPolicy)
	if err != nil {
		return misused(err, "mayfly policy show --help")
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("print the policy: %w", err)
	}
	return nil
}
