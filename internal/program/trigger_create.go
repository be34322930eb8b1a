package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

type triggerCreateCommand struct {
	Table  string `help:"Table whose stream to read." xor:"source" required:"" placeholder:"NAME"`
	Stream string `help:"Stream to read." xor:"source" required:"" placeholder:"ARN"`
	From   string `help:"Where to begin: at the oldest record (trim-horizon), or with new records (latest)." enum:"trim-horizon,latest" default:"latest"`
	mappingFlags
	Disabled bool `help:"Create it disabled: it does not run."`
	JSON     bool `name:"json" help:"Print it as JSON."`
	endpointFlags
}

func (triggerCreateCommand) Help() string {
	return `Examples:

    mayfly trigger create --table orders --function arn:aws:lambda:us-east-1:000000000000:function:on-expiry --expired
    mayfly trigger create --table orders --function audit --filter '{"eventName":["INSERT","MODIFY"]}' --batch 500 --window 2s
    mayfly trigger create --stream ARN --function bill --from trim-horizon --bisect --retries 5 --on-failure ARN`
}

// Run creates the trigger.
func (c triggerCreateCommand) Run(ctx context.Context, s streams) error {
	if c.Function == "" {
		return misused(errors.New("missing flag: --function=ARN"), "set --function or MAYFLY_TRIGGER_CREATE_FUNCTION")
	}
	e, err := c.connect(ctx, serviceLambda)
	if err != nil {
		return err
	}
	in, err := c.settings()
	if err != nil {
		return err
	}
	if in.EventSourceArn = c.Stream; c.Stream == "" {
		if in.EventSourceArn, err = c.streamOf(ctx, c.Table); err != nil {
			return err
		}
	}
	in.StartingPosition, in.Enabled = strings.ToUpper(strings.ReplaceAll(c.From, "-", "_")), aws.Bool(!c.Disabled)
	out, err := e.lambda().create(ctx, &in)
	if err != nil {
		return e.advise(err)
	}
	return printMapping(s.out, c.JSON, "created", out)
}

// streamOf returns the stream of a table, from the DynamoDB API.
func (f endpointFlags) streamOf(ctx context.Context, table string) (string, error) {
	e, err := f.connect(ctx, serviceDynamoDB)
	if err != nil {
		return "", err
	}
	out, err := e.DynamoDB().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if answered(err, "ResourceNotFoundException") {
		return "", advise(fmt.Errorf("table %s not found at %s", table, e.name()), "check the name, and --endpoint and --region; aws dynamodb list-tables shows the tables")
	}
	if err != nil {
		return "", e.advise(err)
	}
	if spec := out.Table.StreamSpecification; spec == nil || !aws.ToBool(spec.StreamEnabled) || out.Table.LatestStreamArn == nil {
		return "", advise(fmt.Errorf("table %s has no stream", table),
			"aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES", table)
	}
	return *out.Table.LatestStreamArn, nil
}

// printMapping prints the action, or the API's answer as JSON.
func printMapping(w io.Writer, asJSON bool, done string, m *mapping) error {
	if asJSON {
		return writeJSON(w, m.members())
	}
	_, err := fmt.Fprintf(w, "%s %s\n", done, m.UUID)
	return err
}
