package program

import (
	"bufio"
	"context"
	"fmt"
)

type scheduleExportCommand struct {
	GroupName string `name:"group" help:"Only this schedule group." placeholder:"NAME"`
	Prefix    string `help:"Only names that begin with this." placeholder:"TEXT"`
	Array     bool   `help:"Write one JSON array instead of JSON lines."`
	endpointFlags
}

func (scheduleExportCommand) Help() string {
	return `Examples:

    mayfly schedule export > schedules.jsonl
    mayfly schedule export --group billing --array > billing.json
    mayfly schedule export --endpoint aws | mayfly schedule import -

Each line is input for aws scheduler create-schedule --cli-input-json. (The field CatchUp is an extension of mayfly.)`
}

// Run exports schedules.
func (c scheduleExportCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(s.out)
	count, now := 0, e.now(ctx)
	err = e.eachPage(ctx, schedulesAsked{group: c.GroupName, prefix: c.Prefix}, func(page []scheduleName) error {
		for _, d := range e.describe(ctx, page, now) {
			if d.err != nil {
				return d.err
			}
			if d.document == nil {
				continue
			}
			if err := c.write(out, d.document, count == 0); err != nil {
				return err
			}
			count++
		}
		return nil
	})
	if err != nil && count == 0 {
		return err
	}
	if err != nil {
		return fmt.Errorf("after %s: %w", counted(count, "schedule"), err)
	}
	switch {
	case c.Array && count == 0:
		fmt.Fprintln(out, "[]")
	case c.Array:
		fmt.Fprintln(out, "\n]")
	}
	return out.Flush()
}

func (c scheduleExportCommand) write(out *bufio.Writer, d *scheduleDocument, first bool) error {
	d.Arn, d.CreationDate, d.LastModificationDate, d.NextFiring = "", nil, nil, nil
	text, err := marshalLine(d)
	if err != nil {
		return err
	}
	switch {
	case !c.Array:
		text = append(text, '\n')
	case first:
		fmt.Fprint(out, "[\n")
	default:
		fmt.Fprint(out, ",\n")
	}
	_, err = out.Write(text)
	return err
}
