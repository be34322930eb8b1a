package program

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
)

type scheduleRunCommand struct {
	Name string `arg:"" help:"Name of the schedule."`
	JSON bool   `name:"json" help:"Print the created schedule as JSON."`
	scheduleFlags
}

func (scheduleRunCommand) Help() string {
	return `Example:

    mayfly schedule run report

It creates a copy of the schedule that fires once, now, and is then deleted, and prints its name. The delivery has
attempts and dead letters like any other, and its source is the copy. The schedule itself is unchanged.`
}

// Run fires the schedule through a copy of it.
func (c scheduleRunCommand) Run(ctx context.Context, s streams) error {
	e, d, err := c.find(ctx, c.Name)
	if err != nil {
		return err
	}
	suffix := make([]byte, 4)
	_, _ = rand.Read(suffix)
	once := &scheduleDocument{
		Name: c.Name[:min(len(c.Name), 64-len("-run-")-8)] + "-run-" + hex.EncodeToString(suffix), GroupName: d.GroupName,
		Description: aws.String("One firing of " + d.Name), ScheduleExpression: e.expressionNow(ctx), ScheduleExpressionTimezone: aws.String(zoneDefault),
		State: stateEnabled, ActionAfterCompletion: string(types.ActionAfterCompletionDelete), KmsKeyArn: d.KmsKeyArn, Target: d.Target,
	}
	out, err := e.Scheduler().CreateSchedule(ctx, once.createInput())
	if err != nil {
		return e.adviseSchedule(err, c.GroupName)
	}
	once.Arn = aws.ToString(out.ScheduleArn)
	if c.JSON {
		return writeJSON(s.out, once)
	}
	fmt.Fprintf(s.out, "fires once: %s/%s\n", once.GroupName, once.Name)
	return nil
}

// expressionNow returns an expression that fires at once. With mayfly it is the present instant.
// Elsewhere it is the second whole second from now, as endpoints may not fire a past one.
func (e *endpoint) expressionNow(ctx context.Context) string {
	now := e.now(ctx)
	if e.isMayfly(ctx) {
		return "instant(" + now.Format(when.WallLayout) + ")"
	}
	return "at(" + when.Wall(when.Ceil(now, time.Second).Add(time.Second)) + ")"
}
