package program

import (
	"context"
	"fmt"

	"github.com/mayflydb/mayfly"
)

type salvageCommand struct {
	Dir  string `arg:"" help:"Directory of the damaged database. Stop the server that uses it first."`
	To   string `help:"Directory to copy to; it must be missing or empty." required:"" placeholder:"NEW"`
	JSON bool   `name:"json" help:"Print every loss as a JSON line, and a summary as the last one."`
}

func (salvageCommand) Help() string {
	return `Example:

    mayfly salvage ./data --to ./rescued

Exit codes: 0 everything was copied, 3 something is lost or may be outdated, 1 the copy failed, 2 the command line is
wrong. Nothing in the damaged directory is changed. Each loss is listed with its table and its range of keys. Items in
such a range may be missing, outdated, or items that had been deleted.`
}

// Run copies the readable part of a directory.
func (c salvageCommand) Run(ctx context.Context, s streams) error {
	losses := faultList{s: s, bar: newBar(s.err), json: c.JSON}
	tables, err := mayfly.Salvage(ctx, c.Dir, c.To, percent(losses.bar, "copying "+c.Dir), losses.add)
	losses.end()
	if err != nil {
		return adviseOffline(err, c.Dir)
	}
	copied := []map[string]any{}
	for _, t := range tables {
		copied = append(copied, map[string]any{"table": t.Table, "items": t.Items, "records": t.Records})
		if !c.JSON {
			fmt.Fprintf(s.out, "%s: copied %d items and %d stream records\n", t.Table, t.Items, t.Records)
		}
	}
	if c.JSON {
		if err := writeJSON(s.out, map[string]any{"directory": c.Dir, "to": c.To, "tables": copied, "losses": losses.n}); err != nil {
			return err
		}
	}
	if losses.n == 0 {
		if !c.JSON {
			fmt.Fprintf(s.out, "everything was copied to %s\n", c.To)
		}
		return nil
	}
	return &advised{
		error: fmt.Errorf("part of %s could not be copied: %s", c.Dir, counted(losses.n, "fault")), exit: exitDamaged,
		next: fmt.Sprintf("compare the ranges above with another source, then use --data %s", c.To),
	}
}
