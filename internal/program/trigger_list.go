package program

import (
	"context"
	"net/url"
	"strings"
)

type triggerListCommand struct {
	Function string `help:"Only those that call this function." placeholder:"ARN"`
	Stream   string `help:"Only those that read this stream." placeholder:"ARN"`
	JSON     bool   `name:"json" help:"Print JSON lines with all fields."`
	endpointFlags
}

func (triggerListCommand) Help() string {
	return `Examples:

    mayfly trigger list
    mayfly trigger list --function on-expiry --json`
}

// Run lists triggers.
func (c triggerListCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceLambda)
	if err != nil {
		return err
	}
	query := url.Values{}
	if c.Function != "" {
		query.Set("FunctionName", c.Function)
	}
	if c.Stream != "" {
		query.Set("EventSourceArn", c.Stream)
	}
	shown := listing{table: table{heading: []string{"UUID", "State", "Source", "Function", "Last result"}}, plural: "triggers", json: c.JSON}
	client := e.lambda()
	for more := true; more; more = query.Get("Marker") != "" {
		page, err := client.list(ctx, query)
		if err != nil {
			return e.advise(err)
		}
		query.Set("Marker", page.NextMarker)
		for _, m := range page.EventSourceMappings {
			if err := shown.show(s, m.members(), m.UUID, m.State, sourceText(m.EventSourceArn), m.FunctionArn, m.LastProcessingResult); err != nil {
				return err
			}
		}
	}
	return shown.end(s)
}

// sourceText returns the table of a stream, or the ARN of another source.
func sourceText(arn string) string {
	if _, tail, ok := strings.Cut(arn, ":table/"); ok {
		table, _, _ := strings.Cut(tail, "/")
		return table
	}
	return arn
}
