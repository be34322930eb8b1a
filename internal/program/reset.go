package program

import (
	"context"
	"fmt"
	"net/http"
)

type resetCommand struct {
	endpointFlags
	Yes  bool `help:"Do not ask before everything is deleted."`
	JSON bool `help:"Print the state of the clock as JSON."`
}

func (resetCommand) Help() string {
	return `Examples:

    mayfly reset --yes
    curl -X POST http://127.0.0.1:8000/_mayfly/reset

A server in memory allows it, and one with --data only with --clock-control: tables, backups, schedules and everything
else is deleted, and the clock starts again at --start, or now.`
}

// Run empties the server.
func (c resetCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connectServer(ctx)
	if err != nil {
		return err
	}
	if err := confirm(s, c.Yes, "delete everything in "+e.name()); err != nil {
		return err
	}
	text, answer, err := e.moveClock(ctx, http.MethodPost, "/_mayfly/reset", nil)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = s.out.Write(text)
		return err
	}
	_, err = fmt.Fprintf(s.out, "everything is deleted; the clock shows %s\n", answer.Now)
	return err
}
