package conformance

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

var updateScheduleChecks = []check{
	{"ReplacesAll", updateScheduleReplacesAll},
	{"Missing", updateScheduleMissing},
	{"Refused", updateScheduleRefused},
}

// update returns the request that gives a schedule the settings of a CreateSchedule request.
func update(in *scheduler.CreateScheduleInput) *scheduler.UpdateScheduleInput {
	return &scheduler.UpdateScheduleInput{
		Name: in.Name, GroupName: in.GroupName, ScheduleExpression: in.ScheduleExpression, ScheduleExpressionTimezone: in.ScheduleExpressionTimezone,
		FlexibleTimeWindow: in.FlexibleTimeWindow, Target: in.Target, Description: in.Description, StartDate: in.StartDate, EndDate: in.EndDate,
		State: in.State, ActionAfterCompletion: in.ActionAfterCompletion, KmsKeyArn: in.KmsKeyArn,
	}
}

// An update resets omitted members.
func updateScheduleReplacesAll(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	arn := g.create(t, g.usual("a", func(in *scheduler.CreateScheduleInput) {
		in.Description, in.State, in.ActionAfterCompletion = aws.String("first"), types.ScheduleStateDisabled, types.ActionAfterCompletionDelete
		in.ScheduleExpression, in.ScheduleExpressionTimezone = aws.String("rate(1 days)"), aws.String("Asia/Tokyo")
		in.StartDate, in.EndDate = aws.Time(g.now().Add(time.Hour)), aws.Time(g.now().AddDate(1, 0, 0))
		in.Target.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(1)}
	}))
	created := g.get(t, "a").CreationDate
	out, err := e.Scheduler.UpdateSchedule(t.Context(), update(g.usual("a")))
	if err != nil || *out.ScheduleArn != arn {
		t.Fatalf("update: %v, %v", out, err)
	}
	s := g.get(t, "a")
	same(t, "state, action, zone", []any{s.State, s.ActionAfterCompletion, *s.ScheduleExpressionTimezone}, []any{"ENABLED", "NONE", "UTC"})
	if s.Description != nil || s.StartDate != nil || s.EndDate != nil || *s.Target.RetryPolicy.MaximumRetryAttempts != 185 {
		t.Errorf("something was kept: %+v, %+v", s, s.Target.RetryPolicy)
	}
	if !s.CreationDate.Equal(*created) || s.LastModificationDate.Before(*created) {
		t.Errorf("created %v, then %v; modified %v", created, s.CreationDate, s.LastModificationDate)
	}
}

func updateScheduleMissing(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	_, err := e.Scheduler.UpdateSchedule(t.Context(), update(g.usual("a")))
	wantError(t, err, notFound, "Schedule a does not exist.")
}

// An update that is refused changes nothing.
func updateScheduleRefused(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	g.create(t, g.usual("a", func(in *scheduler.CreateScheduleInput) { in.Description = aws.String("first") }))
	in := update(g.usual("a"))
	in.ScheduleExpression = aws.String("rate(0 minutes)")
	_, err := e.Scheduler.UpdateSchedule(t.Context(), in)
	wantError(t, err, validation, "Invalid Schedule Expression rate(0 minutes).")
	same(t, "description", *g.get(t, "a").Description, "first")
}
