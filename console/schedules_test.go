package console

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
)

// TestPauseTwice: forms of two visitors who pause a schedule, or one that is sent twice, pause it.
// All else of the schedule stays.
func TestPauseTwice(t *testing.T) {
	s := open(t, mayfly.Options{})
	api, key := s.db.Scheduler(), &scheduler.GetScheduleInput{Name: aws.String("daily"), GroupName: aws.String("default")}
	_, err := api.CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
		Name: key.Name, Description: aws.String("the report"), ScheduleExpression: aws.String("cron(0 3 * * ? *)"), ScheduleExpressionTimezone: aws.String("Europe/Vienna"),
		StartDate: aws.Time(begin.Add(time.Hour)), EndDate: aws.Time(begin.Add(1000 * time.Hour)), ActionAfterCompletion: types.ActionAfterCompletionDelete,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeFlexible, MaximumWindowInMinutes: aws.Int32(5)},
		Target: &types.Target{
			Arn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:f"), RoleArn: aws.String("arn:aws:iam::000000000000:role/r"), Input: aws.String(`{"a":1}`),
			RetryPolicy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(3), MaximumEventAgeInSeconds: aws.Int32(600)},
		},
	}, func(o *scheduler.Options) {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(headerCatchUp, "all"))
	})
	must(t, err)
	read := func() (types.ScheduleState, string) {
		t.Helper()
		out, err := api.GetSchedule(t.Context(), key)
		must(t, err)
		state := out.State
		out.State, out.LastModificationDate, out.ResultMetadata = "", nil, middleware.Metadata{}
		more, err := schedules.ReadStates(t.Context(), s.db.DynamoDB(), *key.GroupName, *key.Name)
		must(t, err)
		return state, string(jsonOf(out)) + string(more[*key.Name].CatchUp) + more[*key.Name].Anchor.String()
	}
	_, before := read()
	for _, want := range []types.ScheduleState{types.ScheduleStateDisabled, types.ScheduleStateEnabled} {
		form := url.Values{"group": {*key.GroupName}, "name": {*key.Name}}
		for _, one := range s.page("schedules", nil).all("button") {
			if one.values["name"] == "do" && one.values["value"] != "run" && one.values["value"] != "delete" {
				form.Set("do", one.values["value"])
			}
		}
		for range 2 {
			if a := s.post("schedules", form); a.status != http.StatusSeeOther {
				t.Fatalf("%v has the status %d: %.300s", form, a.status, a.body)
			}
			state, after := read()
			if state != want {
				t.Errorf("%v leaves the schedule %s; want %s", form, state, want)
			}
			if after != before {
				t.Errorf("%v changes\n%s to\n%s", form, before, after)
			}
		}
	}
}
