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
	NoFilter    bool  `help:"Take all records again."`
	NoOnFailure bool  `help:"Tell nobody of records that were given up."`
	Enabled     *bool `help:"Let it run, or stop it; its place in the stream is kept." negatable:""`
	JSON        bool  `name:"json" help:"Print it as JSON."`
	endpointFlags
}

// Help is the part of --help behind the flags.
func (triggerUpdateCommand) Help() string {
	return `Examples:

    mayfly trigger update 14e0db71-5d35-4eb5-b481-8945cf9d10c2 --no-enabled
    mayfly trigger update 14e0db71-5d35-4eb5-b481-8945cf9d10c2 --batch 10 --retries 3 --no-filter

What is not said stays as it is.`
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
			return errors.New("--no-filter goes with neither --filter nor --expired")
		}
		said.filters = &types.FilterCriteria{Filters: []types.Filter{}}
	}
	if c.NoOnFailure {
		if said.destinations != nil {
			return errors.New("--no-on-failure does not go with --on-failure")
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
		return e.adviseTrigger(err)
	}
	return printMapping(s.out, c.JSON, "changed", out)
}
