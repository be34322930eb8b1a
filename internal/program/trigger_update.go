package program

import (
	"context"
	"errors"
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
	in, err := c.settings()
	if err != nil {
		return err
	}
	in.Enabled = c.Enabled
	if c.NoFilter {
		if in.FilterCriteria != nil {
			return misused(errors.New("--no-filter cannot be used with --filter or --expired"), "")
		}
		in.FilterCriteria = &mappingFilters{Filters: []mappingFilter{}}
	}
	if c.NoOnFailure {
		if in.DestinationConfig != nil {
			return misused(errors.New("--no-on-failure and --on-failure cannot be used together"), "")
		}
		in.DestinationConfig = &mappingOnFailure{&mappingTarget{}}
	}
	out, err := e.lambda().update(ctx, c.UUID, &in)
	if err != nil {
		return e.adviseTrigger(err, c.UUID)
	}
	return printMapping(s.out, c.JSON, "changed", out)
}
