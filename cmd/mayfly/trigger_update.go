package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

type triggerUpdateCommand struct {
	UUID string `arg:"" help:"UUID of the trigger."`
	mappingFlags
	NoFilter    bool  `help:"Remove the filter."`
	NoOnFailure bool  `help:"Remove the target for records that were given up."`
	Enabled     *bool `help:"Enable or disable it. Its position in the stream is kept." negatable:""`
	JSON        bool  `name:"json" help:"Print it as JSON."`
	endpointFlags
}

// Help returns the text of --help below the flags.
func (triggerUpdateCommand) Help() string {
	return `Examples:

    mayfly trigger update 14e0db71-5d35-4eb5-b481-8945cf9d10c2 --no-enabled
    mayfly trigger update 14e0db71-5d35-4eb5-b481-8945cf9d10c2 --batch 10 --retries 3 --no-filter

Settings that are not given stay as they are.`
}

// Run changes a trigger.
func (c triggerUpdateCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceLambda)
	if err != nil {
		return err
	}
	said, err := c.settings()
	if err != nil {
		return err
	}
	if c.NoFilter {
		if said.filters != nil {
			return misused(errors.New("--no-filter cannot be used with --filter or --expired"), "")
		}
		said.filters = &types.FilterCriteria{Filters: []types.Filter{}}
	}
	if c.NoOnFailure {
		if said.destinations != nil {
			return misused(errors.New("--no-on-failure and --on-failure cannot be used together"), "")
		}
		said.destinations = &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String("")}}
	}
	out, err := e.lambda().UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{
		UUID: &c.UUID, Enabled: c.Enabled,
		FunctionName: said.function, FilterCriteria: said.filters, BatchSize: c.Batch, MaximumBatchingWindowInSeconds: said.window, ParallelizationFactor: c.Parallel,
		BisectBatchOnFunctionError: c.Bisect, FunctionResponseTypes: said.responses, MaximumRetryAttempts: c.Retries, MaximumRecordAgeInSeconds: said.age,
		DestinationConfig: said.destinations,
	})
	if err != nil {
		return e.adviseTrigger(err, c.UUID)
	}
	return printMapping(s.out, c.JSON, "changed", out)
}
