package program

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/mayflydb/mayfly/internal/when"
)

type triggerShowCommand struct {
	UUID string `arg:"" help:"UUID of the trigger."`
	JSON bool   `name:"json" help:"Print it as JSON."`
	endpointFlags
}

func (triggerShowCommand) Help() string {
	return `Example:

    mayfly trigger show 14e0db71-5d35-4eb5-b481-8945cf9d10c2`
}

// Run shows a trigger.
func (c triggerShowCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceLambda)
	if err != nil {
		return err
	}
	m, err := e.lambda().get(ctx, c.UUID)
	if err != nil {
		return e.adviseTrigger(err, c.UUID)
	}
	if c.JSON {
		return writeJSON(s.out, m.members())
	}
	return writeMapping(s.out, m)
}

// writeMapping prints a line for each setting of a trigger.
func writeMapping(w io.Writer, m *mapping) error {
	var lines list
	lines.add("UUID", m.UUID)
	lines.add("state", strings.TrimSpace(m.State+"  "+m.StateTransitionReason))
	lines.add("source", m.EventSourceArn)
	lines.add("begins", m.StartingPosition)
	lines.add("function", m.FunctionArn)
	if m.FilterCriteria != nil {
		for _, f := range m.FilterCriteria.Filters {
			lines.add("filter", f.Pattern)
		}
	}
	lines.add("batch", fmt.Sprintf("%d records, gathered for %s", aws.ToInt32(m.BatchSize), secondsText(m.MaximumBatchingWindowInSeconds)))
	lines.add("parallel", fmt.Sprint(aws.ToInt32(m.ParallelizationFactor)))
	lines.add("retries", limitText(m.MaximumRetryAttempts, func(n int32) string { return fmt.Sprint(n) }))
	lines.add("max age", limitText(m.MaximumRecordAgeInSeconds, func(n int32) string { return secondsText(&n) }))
	if aws.ToBool(m.BisectBatchOnFunctionError) {
		lines.add("bisect", "failed batches are split in two")
	}
	if len(m.FunctionResponseTypes) > 0 {
		lines.add("partial", "the answer may list the failed records")
	}
	if d := m.DestinationConfig; d != nil && d.OnFailure != nil {
		lines.add("on failure", d.OnFailure.Destination)
	}
	lines.add("last result", m.LastProcessingResult)
	if m.LastModified != nil {
		lines.add("changed", when.UTC(m.LastModified.time()))
	}
	return lines.write(w)
}

func secondsText(n *int32) string { return span(time.Duration(aws.ToInt32(n)) * time.Second).String() }

// limitText returns a limit of a trigger as text. -1 and nil are no limit.
func limitText(n *int32, text func(int32) string) string {
	if n == nil || *n < 0 {
		return "no limit"
	}
	return text(*n)
}
