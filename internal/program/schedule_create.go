package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

type scheduleCreateCommand struct {
	Name string `arg:"" help:"Name of the schedule: 1 to 64 letters, digits, -, _ and dots."`

	whenFlags
	Target      string `help:"ARN of the target to call." required:"" placeholder:"ARN"`
	Role        string `help:"ARN of the role that Amazon's service assumes. Not needed with mayfly." placeholder:"ARN"`
	Input       string `help:"Body for the target: a text, @FILE, or @- for standard input. Variables such as <aws.scheduler.scheduled-time> are replaced." placeholder:"TEXT"`
	Window      span   `help:"Fire at a random time within this window after each occurrence, in whole minutes." placeholder:"TIME"`
	DeleteAfter *bool  `help:"Delete the schedule after its last firing. Default: on with --at." negatable:""`
	Disabled    bool   `help:"Create it disabled: it does not fire."`
	Retries     *int32 `help:"Attempts after the first, 0 to 185. Default: 185." placeholder:"N"`
	MaxAge      span   `help:"Give up after this time, 1m to 1d. Default: 1d." placeholder:"TIME"`
	DeadLetter  string `help:"ARN of the dead-letter queue." placeholder:"ARN"`
	CatchUp     string `help:"Which occurrences missed during downtime fire: last, all or skip. An extension of mayfly. Default: last." enum:"last,all,skip," default:"" placeholder:"WHICH"`
	Description string `help:"Description, up to 512 characters." placeholder:"TEXT"`

	MessageGroup string `help:"For a FIFO queue: the message group." placeholder:"ID"`
	PartitionKey string `help:"For a Kinesis stream: the partition key." placeholder:"KEY"`
	DetailType   string `help:"For an event bus: the event's detail-type." placeholder:"TEXT"`
	Source       string `help:"For an event bus: the event's source." placeholder:"TEXT"`

	Replace bool `help:"Replace an existing schedule of this name."`
	JSON    bool `name:"json" help:"Print the schedule as JSON."`
	scheduleFlags
}

func (scheduleCreateCommand) Help() string {
	return `Examples:

    mayfly schedule create tea --at "in 5m" --target arn:aws:sns:us-east-1:000000000000:tea --input 'ready'
    mayfly schedule create launch --at 2030-01-01T12:00:00.250 --zone Europe/Berlin --no-delete-after --target ARN
    mayfly schedule create report --cron '0 9 ? * MON-FRI *' --zone America/New_York --target ARN --input @report.json
    mayfly schedule create pulse --every 250ms --target ARN --catch-up skip

--at, --every and --cron become at(…), rate(…) and cron(…) of the API if those are exact enough, else mayfly's own
instant(…) and every(…), which allow milliseconds.`
}

// roleAnywhere is the role of a schedule on endpoints that assume none.
const roleAnywhere = "arn:aws:iam::000000000000:role/mayfly"

// Run creates the schedule.
func (c scheduleCreateCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	document, err := c.document(ctx, e)
	if err != nil {
		return err
	}
	done, err := c.put(ctx, e, document)
	if err != nil {
		return err
	}
	now := e.now(ctx)
	document.NextFiring = wireTimeOf(document.first(now))
	if c.JSON {
		return writeJSON(s.out, document)
	}
	fmt.Fprintf(s.out, "%s %s/%s: %s in %s\n", done, document.GroupName, document.Name, document.ScheduleExpression, *document.ScheduleExpressionTimezone)
	printNext(s.out, document, now)
	return nil
}

// put creates or replaces the schedule.
func (c scheduleCreateCommand) put(ctx context.Context, e *endpoint, document *scheduleDocument) (done string, err error) {
	client := e.Scheduler()
	created, err := client.CreateSchedule(ctx, document.createInput(), withCatchUp(c.CatchUp))
	if err == nil {
		document.Arn = aws.ToString(created.ScheduleArn)
		return "created", nil
	}
	if !answered(err, "ConflictException") {
		return "", e.adviseSchedule(err, c.GroupName)
	}
	if !c.Replace {
		return "", advise(e.advise(err), "choose another name, or add --replace to change the existing schedule")
	}
	updated, err := client.UpdateSchedule(ctx, document.updateInput(), withCatchUp(c.CatchUp))
	if err != nil {
		return "", e.adviseSchedule(err, c.GroupName)
	}
	document.Arn = aws.ToString(updated.ScheduleArn)
	return "replaced", nil
}

// first returns the first firing of a new schedule. It returns zero for one that fires at once: for
// a past time, or a rate without a start.
func (d *scheduleDocument) first(now time.Time) time.Time {
	t, err := d.timetable()
	switch {
	case err != nil || d.State == stateDisabled:
		return time.Time{}
	case t.expression.Kind() == cron.At:
		at, _ := t.expression.Next(time.Time{}, time.Time{})
		return at
	case t.expression.Kind() == cron.Rate && t.start.IsZero():
		return now
	}
	return d.next(now)
}

func printNext(w io.Writer, d *scheduleDocument, now time.Time) {
	switch next := d.NextFiring.time(); {
	case d.State == stateDisabled:
		fmt.Fprintln(w, "disabled: it does not fire")
	case next.IsZero():
		fmt.Fprintln(w, "no further firing")
	default:
		fmt.Fprintln(w, "next firing: "+whenText(next, now))
	}
}

// whenText returns a time as text: "2030-01-01 12:00:00Z, in 5m", or "now".
func whenText(at, now time.Time) string {
	if in := when.Until(at.Sub(now)); in != "now" {
		return when.UTC(at) + ", in " + in
	}
	return "now"
}

// document returns the schedule of the flags.
func (c scheduleCreateCommand) document(ctx context.Context, e *endpoint) (*scheduleDocument, error) {
	if c.CatchUp != "" && e.IsAWS() {
		return nil, advise(errors.New("--catch-up is an extension of mayfly; Amazon's service does not have it"), "drop it; Amazon's service always fires the last missed occurrence")
	}
	target, err := c.target(e)
	if err != nil {
		return nil, err
	}
	exact := c.At != "" && e.isMayfly(ctx) // only --at depends on it
	w, err := c.read(func() time.Time { return e.now(ctx) }, !e.IsAWS(), exact)
	if err != nil {
		return nil, err
	}
	d := &scheduleDocument{
		Name: c.Name, GroupName: c.GroupName, ScheduleExpression: w.expression, ScheduleExpressionTimezone: &w.zone, StartDate: wireTimeOf(w.start),
		EndDate: wireTimeOf(w.end), State: stateEnabled, ActionAfterCompletion: string(types.ActionAfterCompletionNone), CatchUp: c.CatchUp, Target: target,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
	}
	if c.Description != "" {
		d.Description = &c.Description
	}
	if c.Disabled {
		d.State = stateDisabled
	}
	if c.DeleteAfter != nil && *c.DeleteAfter || c.DeleteAfter == nil && c.At != "" {
		d.ActionAfterCompletion = string(types.ActionAfterCompletionDelete)
	}
	if c.Window != 0 {
		minutes := time.Duration(c.Window) / time.Minute
		if time.Duration(c.Window)%time.Minute != 0 || minutes > 1440 {
			return nil, misused(fmt.Errorf("--window %s is not 1 to 1440 whole minutes", c.Window), "for example --window 15m")
		}
		d.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeFlexible, MaximumWindowInMinutes: aws.Int32(int32(minutes))}
	}
	return d, nil
}

// target returns the target of the flags.
func (c scheduleCreateCommand) target(e *endpoint) (*types.Target, error) {
	t := &types.Target{Arn: &c.Target, RoleArn: &c.Role}
	if c.Role == "" {
		if e.IsAWS() {
			return nil, misused(errors.New("a role is missing: Amazon assumes it to call the target"), "set --role")
		}
		t.RoleArn = aws.String(roleAnywhere)
	}
	if c.Input != "" {
		input, err := readArgument(c.Input, inputMax)
		if err != nil {
			return nil, misused(fmt.Errorf("--input: %w", err), "")
		}
		t.Input = &input
	}
	if c.Retries != nil || c.MaxAge != 0 {
		t.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: c.Retries}
		if c.MaxAge != 0 {
			if c.MaxAge > span(24*time.Hour) || time.Duration(c.MaxAge)%time.Second != 0 {
				return nil, misused(fmt.Errorf("--max-age %s is not 1m to 1d in whole seconds", c.MaxAge), "for example --max-age 1h")
			}
			t.RetryPolicy.MaximumEventAgeInSeconds = aws.Int32(int32(time.Duration(c.MaxAge) / time.Second))
		}
	}
	if c.DeadLetter != "" {
		t.DeadLetterConfig = &types.DeadLetterConfig{Arn: &c.DeadLetter}
	}
	if c.MessageGroup != "" {
		t.SqsParameters = &types.SqsParameters{MessageGroupId: &c.MessageGroup}
	}
	if c.PartitionKey != "" {
		t.KinesisParameters = &types.KinesisParameters{PartitionKey: &c.PartitionKey}
	}
	if c.DetailType != "" || c.Source != "" {
		t.EventBridgeParameters = &types.EventBridgeParameters{DetailType: &c.DetailType, Source: &c.Source}
	}
	return t, nil
}

const inputMax = 256 << 10 // the API's limit for a schedule's input, in bytes

// readArgument returns a flag's text, or the contents of @FILE, or standard input for @-.
func readArgument(text string, most int64) (string, error) {
	name, named := strings.CutPrefix(text, "@")
	if !named {
		return text, nil
	}
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return "", err
		}
		defer file.Close()
	}
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return string(content), err
}
