package program

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
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
	in := &lambda.ListEventSourceMappingsInput{}
	if c.Function != "" {
		in.FunctionName = &c.Function
	}
	if c.Stream != "" {
		in.EventSourceArn = &c.Stream
	}
	shown := listing{table: table{heading: []string{"UUID", "State", "Source", "Function", "Last result"}}, plural: "triggers", json: c.JSON}
	client := e.lambda()
	// The SDK's paginator would convert the client to an interface, and the linker then includes
	// every operation of Lambda in the program.
	for more := true; more; more = aws.ToString(in.Marker) != "" {
		out, err := client.ListEventSourceMappings(ctx, in)
		if err != nil {
			return e.advise(err)
		}
		in.Marker = out.NextMarker
		for _, m := range out.EventSourceMappings {
			err := shown.show(s, membersOf(m), aws.ToString(m.UUID), aws.ToString(m.State), sourceText(aws.ToString(m.EventSourceArn)),
				aws.ToString(m.FunctionArn), aws.ToString(m.LastProcessingResult))
			if err != nil {
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
