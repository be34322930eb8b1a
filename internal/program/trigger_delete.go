package program

import (
	"context"
	"fmt"
)

type triggerDeleteCommand struct {
	UUIDs []string `arg:"" name:"uuid" help:"UUIDs of triggers."`
	JSON  bool     `name:"json" help:"Print the UUIDs of deleted triggers as JSON lines."`
	endpointFlags
}

func (triggerDeleteCommand) Help() string {
	return `Example:

    mayfly trigger delete 14e0db71-5d35-4eb5-b481-8945cf9d10c2`
}

// Run deletes triggers.
func (c triggerDeleteCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceLambda)
	if err != nil {
		return err
	}
	client := e.lambda()
	for _, uuid := range c.UUIDs {
		if err := client.delete(ctx, uuid); err != nil {
			return e.adviseTrigger(err, uuid)
		}
		if c.JSON {
			err = writeJSON(s.out, map[string]string{"deleted": uuid})
		} else {
			_, err = fmt.Fprintf(s.out, "deleted %s\n", uuid)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
