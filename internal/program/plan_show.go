package program

import (
	"bytes"
	"context"
	"fmt"
)

type planShowCommand struct {
	workloadFlags
	Page string `help:"Also write the report as an HTML page with charts." placeholder:"FILE"`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (planShowCommand) Help() string {
	return `Examples:

    mayfly plan show --config orders.yaml --json
    mayfly plan --writes 500 --retention 7d --renewals 3 --stream-readers 1

It only computes and calls no endpoint. docs/plan.md explains the figures.`
}

// Run prints the plan.
func (c planShowCommand) Run(_ context.Context, s streams) error {
	report, err := c.plan()
	if err != nil {
		return err
	}
	if c.Page != "" {
		var page bytes.Buffer
		if err := report.WritePage(&page); err != nil {
			return err
		}
		if err := writeNew(c.Page, page.Bytes()); err != nil {
			return adviseFile("--page", err)
		}
		fmt.Fprintf(s.err, "wrote %s\n", c.Page)
	}
	if c.JSON {
		return writeIndentedJSON(s.out, report)
	}
	return report.WriteText(s.out)
}
