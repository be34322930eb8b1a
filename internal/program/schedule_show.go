package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
)

type scheduleShowCommand struct {
	Name string `arg:"" help:"Name of the schedule."`
	JSON bool   `name:"json" help:"Print it as JSON."`
	scheduleFlags
}

func (scheduleShowCommand) Help() string {
	return `Examples:

    mayfly schedule show tea
    mayfly schedule show invoice-7 --group billing --json`
}

// Run shows a schedule.
func (c scheduleShowCommand) Run(ctx context.Context, s streams) error {
	e, d, err := c.find(ctx, c.Name)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(s.out, d)
	}
	return writeSchedule(s.out, d, e.now(ctx))
}

// find returns a schedule with its next firing, and its endpoint.
func (f scheduleFlags) find(ctx context.Context, name string) (*endpoint, *scheduleDocument, error) {
	e, err := f.connect(ctx, serviceScheduler)
	if err != nil {
		return nil, nil, err
	}
	found := e.describe(ctx, []scheduleName{{f.GroupName, name}}, e.now(ctx))[0]
	switch {
	case found.err != nil:
		return nil, nil, found.err
	case found.document == nil:
		return nil, nil, advise(fmt.Errorf("schedule %s not found in group %s", name, f.GroupName), "mayfly schedule list")
	}
	return e, found.document, nil
}

// writeSchedule prints a line for each setting of a schedule.
func writeSchedule(w io.Writer, d *scheduleDocument, now time.Time) error {
	var lines list
	lines.add("name", d.GroupName+"/"+d.Name)
	lines.add("ARN", d.Arn)
	lines.add("description", aws.ToString(d.Description))
	lines.add("state", d.State)
	lines.add("expression", d.ScheduleExpression+" in "+cmp.Or(aws.ToString(d.ScheduleExpressionTimezone), zoneDefault))
	lines.time("start", d.StartDate)
	lines.time("end", d.EndDate)
	if window := d.FlexibleTimeWindow; window != nil && window.Mode == types.FlexibleTimeWindowModeFlexible {
		lines.add("window", fmt.Sprintf("%d minutes", aws.ToInt32(window.MaximumWindowInMinutes)))
	}
	lines.add("catch-up", d.CatchUp)
	if d.ActionAfterCompletion == string(types.ActionAfterCompletionDelete) {
		lines.add("after the last", "deleted")
	}
	next := "none"
	if at := d.NextFiring.time(); !at.IsZero() {
		next = whenText(at, now)
		if d.kept != nil && !d.kept.Occurrence.Equal(at) {
			next += ", for " + when.UTC(d.kept.Occurrence)
		}
	}
	lines.add("next firing", next)
	lines.target(d.Target)
	lines.time("created", d.CreationDate)
	lines.time("changed", d.LastModificationDate)
	return lines.write(w)
}

// list has names and values for lines.
type list struct{ rows [][2]string }

// add adds a line, unless the value is empty.
func (l *list) add(name, value string) {
	if value != "" {
		l.rows = append(l.rows, [2]string{name, value})
	}
}

func (l *list) time(name string, t *wireTime) {
	if t != nil {
		l.add(name, when.UTC(t.time()))
	}
}

func (l *list) target(t *types.Target) {
	if t == nil {
		return
	}
	l.add("target", aws.ToString(t.Arn))
	l.add("role", aws.ToString(t.RoleArn))
	l.add("input", aws.ToString(t.Input))
	if p := t.RetryPolicy; p != nil {
		l.add("attempts", fmt.Sprintf("%d after the first, within %s", aws.ToInt32(p.MaximumRetryAttempts),
			span(time.Duration(aws.ToInt32(p.MaximumEventAgeInSeconds))*time.Second)))
	}
	if t.DeadLetterConfig != nil {
		l.add("dead letters", aws.ToString(t.DeadLetterConfig.Arn))
	}
	members := membersOf(t)
	for _, name := range []string{"SqsParameters", "KinesisParameters", "EventBridgeParameters", "EcsParameters", "SageMakerPipelineParameters"} {
		if parameters, ok := members[name]; ok {
			text, _ := json.Marshal(parameters) // maps and texts
			l.add(name, string(text))
		}
	}
}

func (l *list) write(w io.Writer) error {
	width := 0
	for _, row := range l.rows {
		width = max(width, len(row[0]))
	}
	var b bytes.Buffer
	shade, plain := "", ""
	if colours(w) {
		shade, plain = "\x1b["+dim+"m", "\x1b[0m"
	}
	for _, row := range l.rows {
		fmt.Fprintf(&b, "%s%-*s%s  %s\n", shade, width, row[0], plain, oneLine(row[1]))
	}
	_, err := w.Write(b.Bytes())
	return err
}
