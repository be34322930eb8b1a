package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// conflict is an error type of the scheduler's.
const conflict = "ConflictException"

// The target of schedules that do not fire during the suite. An endpoint that must know its targets
// knows DynamoDB's operations.
const (
	roleARN    = "arn:aws:iam::000000000000:role/conformance"
	putItemARN = "arn:aws:scheduler:::aws-sdk:dynamodb:putItem"
)

// scheduleGroup is a schedule group that a check made; it is deleted when the check ends.
type scheduleGroup struct {
	*Endpoint
	name string
	arn  string
}

// newScheduleGroup creates a group for one check, with tags of alternating keys and values.
func newScheduleGroup(t *testing.T, e *Endpoint, tags ...string) *scheduleGroup {
	t.Helper()
	in := &scheduler.CreateScheduleGroupInput{Name: aws.String(scheduleName(t))}
	for i := 0; i < len(tags); i += 2 {
		in.Tags = append(in.Tags, types.Tag{Key: &tags[i], Value: &tags[i+1]})
	}
	out, err := e.Scheduler.CreateScheduleGroup(t.Context(), in)
	if err != nil {
		t.Fatalf("create schedule group: %v", err)
	}
	g := &scheduleGroup{e, *in.Name, aws.ToString(out.ScheduleGroupArn)}
	t.Cleanup(func() {
		var missing *types.ResourceNotFoundException
		var going *types.ConflictException
		_, err := e.Scheduler.DeleteScheduleGroup(context.Background(), &scheduler.DeleteScheduleGroupInput{Name: &g.name})
		if err != nil && !errors.As(err, &missing) && !errors.As(err, &going) {
			t.Errorf("delete schedule group %s: %v", g.name, err)
		}
	})
	return g
}

// scheduleName is a name that no other check uses, in the characters and the length that schedules
// and groups may have.
func scheduleName(t *testing.T) string {
	parts := strings.Split(t.Name(), "/")
	return fmt.Sprintf("mf-%.30s.%s", parts[len(parts)-1], strings.ToLower(rand.Text()[:12]))
}

// usual returns the request for a schedule that fires in ten years, after each change to it. It
// does not create the schedule.
func (g *scheduleGroup) usual(name string, change ...func(*scheduler.CreateScheduleInput)) *scheduler.CreateScheduleInput {
	in := &scheduler.CreateScheduleInput{
		Name: &name, GroupName: &g.name, ScheduleExpression: aws.String("at(" + at(g.now().AddDate(10, 0, 0)) + ")"),
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target:             &types.Target{Arn: aws.String(putItemARN), RoleArn: aws.String(roleARN), Input: aws.String(`{"TableName":"none","Item":{}}`)},
	}
	for _, f := range change {
		f(in)
	}
	return in
}

// at returns an instant in the format of the expression at(), in UTC.
func at(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// create creates a schedule and returns its ARN.
func (g *scheduleGroup) create(t *testing.T, in *scheduler.CreateScheduleInput) (arn string) {
	t.Helper()
	out, err := g.Scheduler.CreateSchedule(t.Context(), in)
	if err != nil {
		t.Fatalf("create schedule %s: %v", *in.Name, err)
	}
	return aws.ToString(out.ScheduleArn)
}

// get returns a schedule, or nil.
func (g *scheduleGroup) get(t *testing.T, name string) *scheduler.GetScheduleOutput {
	t.Helper()
	out, err := g.Scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: &name, GroupName: &g.name})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return nil
	}
	if err != nil {
		t.Fatalf("get schedule %s: %v", name, err)
	}
	return out
}

// delete deletes a schedule.
func (g *scheduleGroup) delete(t *testing.T, name string) {
	t.Helper()
	if _, err := g.Scheduler.DeleteSchedule(context.Background(), &scheduler.DeleteScheduleInput{Name: &name, GroupName: &g.name}); err != nil {
		t.Fatalf("delete schedule %s: %v", name, err)
	}
}

// names returns the names of a group's schedules, read page by page.
func (g *scheduleGroup) names(t *testing.T, change ...func(*scheduler.ListSchedulesInput)) (names []string) {
	t.Helper()
	in := &scheduler.ListSchedulesInput{GroupName: &g.name}
	for _, f := range change {
		f(in)
	}
	for {
		out, err := g.Scheduler.ListSchedules(t.Context(), in)
		if err != nil {
			t.Fatalf("list schedules: %v", err)
		}
		for _, s := range out.Schedules {
			names = append(names, *s.Name)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			return names
		}
	}
}

// same compares two values by their printed form.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
