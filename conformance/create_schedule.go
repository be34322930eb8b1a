package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

var createScheduleChecks = []check{
	{"Defaults", scheduleDefaults},
	{"EveryMember", scheduleEveryMember},
	{"Names", scheduleNames},
	{"DefaultGroup", scheduleDefaultGroup},
	{"Conflicts", scheduleConflicts},
	{"ClientToken", scheduleClientToken},
	{"Expressions", scheduleExpressions},
	{"Shape", scheduleShape},
	{"Refused", scheduleRefused},
	{"Targets", scheduleTargets},
	{"UnknownGroup", scheduleUnknownGroup},
}

var getScheduleChecks = []check{
	{"Missing", getScheduleMissing},
}

var deleteScheduleChecks = []check{
	{"Gone", deleteScheduleGone},
	{"Missing", deleteScheduleMissing},
}

// Omitted members have defaults, and GetSchedule returns them.
func scheduleDefaults(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	before := g.now().Add(-time.Second)
	arn := g.create(t, g.usual("a"))
	if !strings.HasPrefix(arn, "arn:aws:scheduler:") || !strings.HasSuffix(arn, ":schedule/"+g.name+"/a") {
		t.Errorf("ARN %s", arn)
	}
	s := g.get(t, "a")
	same(t, "ARN, name, group", []string{*s.Arn, *s.Name, *s.GroupName}, []string{arn, "a", g.name})
	same(t, "state, action, zone", []any{s.State, s.ActionAfterCompletion, *s.ScheduleExpressionTimezone}, []any{"ENABLED", "NONE", "UTC"})
	same(t, "mode", s.FlexibleTimeWindow.Mode, types.FlexibleTimeWindowModeOff)
	if p := s.Target.RetryPolicy; p == nil || aws.ToInt32(p.MaximumRetryAttempts) != 185 || aws.ToInt32(p.MaximumEventAgeInSeconds) != 86_400 {
		t.Errorf("retry policy %+v", p)
	}
	if s.Description != nil || s.StartDate != nil || s.EndDate != nil || s.KmsKeyArn != nil || s.Target.DeadLetterConfig != nil {
		t.Errorf("what was not set is shown: %+v", s)
	}
	if s.CreationDate == nil || s.CreationDate.Before(before) || s.CreationDate.After(g.now().Add(time.Second)) || s.LastModificationDate == nil {
		t.Errorf("created %v, modified %v", s.CreationDate, s.LastModificationDate)
	}
}

// GetSchedule returns every member unchanged.
func scheduleEveryMember(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	start := g.now().Add(time.Hour).Truncate(time.Second)
	in := g.usual("a", func(in *scheduler.CreateScheduleInput) {
		in.Description = aws.String("über <alles> & \"mehr\"")
		in.ScheduleExpression = aws.String("cron(15 10 ? * 6L 2030-2031)")
		in.ScheduleExpressionTimezone = aws.String("Europe/Vienna")
		in.StartDate, in.EndDate = aws.Time(start), aws.Time(start.AddDate(20, 0, 0))
		in.State = types.ScheduleStateDisabled
		in.ActionAfterCompletion = types.ActionAfterCompletionDelete
		in.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeFlexible, MaximumWindowInMinutes: aws.Int32(15)}
		in.KmsKeyArn = aws.String("arn:aws:kms:us-east-1:000000000000:key/a-b")
		in.Target.Input = aws.String(`{"TableName":"T","Item":{"pk":{"S":"<aws.scheduler.scheduled-time>"}}}`)
		in.Target.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(0), MaximumEventAgeInSeconds: aws.Int32(60)}
	})
	g.create(t, in)
	s := g.get(t, "a")
	same(t, "description", *s.Description, *in.Description)
	same(t, "expression, zone", []string{*s.ScheduleExpression, *s.ScheduleExpressionTimezone}, []string{*in.ScheduleExpression, *in.ScheduleExpressionTimezone})
	same(t, "dates", []int64{s.StartDate.Unix(), s.EndDate.Unix()}, []int64{in.StartDate.Unix(), in.EndDate.Unix()})
	same(t, "state, action", []any{s.State, s.ActionAfterCompletion}, []any{in.State, in.ActionAfterCompletion})
	same(t, "window", []any{s.FlexibleTimeWindow.Mode, *s.FlexibleTimeWindow.MaximumWindowInMinutes}, []any{"FLEXIBLE", 15})
	same(t, "key", *s.KmsKeyArn, *in.KmsKeyArn)
	same(t, "target", []string{*s.Target.Arn, *s.Target.RoleArn, *s.Target.Input}, []string{putItemARN, roleARN, *in.Target.Input})
	same(t, "retry policy", []int32{*s.Target.RetryPolicy.MaximumRetryAttempts, *s.Target.RetryPolicy.MaximumEventAgeInSeconds}, []int32{0, 60})
}

// A name such as "..." is not taken for a relative part of the URL's path.
func scheduleNames(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	for _, name := range []string{"a.b", "...", "-", "_", "0", strings.Repeat("N", 64)} {
		g.create(t, g.usual(name))
		if s := g.get(t, name); s == nil || *s.Name != name {
			t.Errorf("%s: got %+v", name, s)
		}
		g.delete(t, name)
		if g.get(t, name) != nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// A schedule without a group belongs to the group "default", which always exists. Two groups may
// have schedules of one name.
func scheduleDefaultGroup(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	name := scheduleName(t)
	in := g.usual(name)
	g.create(t, in)
	in.GroupName, in.ClientToken = nil, nil
	g.create(t, in)
	inDefault := scheduleGroup{Endpoint: e, name: "default"}
	t.Cleanup(func() { inDefault.delete(t, name) })
	out, err := e.Scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: &name})
	if err != nil || *out.GroupName != "default" || !strings.HasSuffix(*out.Arn, ":schedule/default/"+name) {
		t.Errorf("got %+v, %v", out, err)
	}
	g.delete(t, name)
	if inDefault.get(t, name) == nil {
		t.Error("the schedule of another group went with it")
	}
}

func scheduleConflicts(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	g.create(t, g.usual("a"))
	_, err := e.Scheduler.CreateSchedule(t.Context(), g.usual("a"))
	wantError(t, err, conflict, "Schedule a already exists.")
}

// The same token with the same request is answered as before, and does nothing; with another
// request it is a conflict.
func scheduleClientToken(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	in := g.usual("a", func(in *scheduler.CreateScheduleInput) { in.ClientToken = aws.String("token-1") })
	first := g.create(t, in)
	same(t, "ARN", g.create(t, in), first)
	in.Description = aws.String("another")
	_, err := e.Scheduler.CreateSchedule(t.Context(), in)
	wantError(t, err, conflict, "")
	if s := g.get(t, "a"); s.Description != nil {
		t.Errorf("the schedule was changed: %s", *s.Description)
	}
	remove := &scheduler.DeleteScheduleInput{Name: aws.String("a"), GroupName: &g.name, ClientToken: aws.String("token-2")}
	for range 2 {
		if _, err := e.Scheduler.DeleteSchedule(t.Context(), remove); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
}

func scheduleExpressions(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	for _, expression := range []string{
		"at(2040-02-29T23:59:59)", "rate(1 minutes)", "rate(1 minute)", "rate(36 hours)", "rate(7 days)", "cron(0 10 * * ? *)", "cron(0/5 8-17 ? * MON-FRI *)",
		"cron(15 10 ? * 6L 2030-2035)", "cron(0 9 ? * 2#1 *)", "cron(0 9 3W * ? *)", "cron(0 18 L * ? *)", "cron(0 18 LW * ? *)",
	} {
		in := g.usual("a", func(in *scheduler.CreateScheduleInput) { in.ScheduleExpression = &expression })
		if _, err := e.Scheduler.CreateSchedule(t.Context(), in); err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		same(t, "expression", *g.get(t, "a").ScheduleExpression, expression)
		g.delete(t, "a")
	}
	for _, expression := range []string{
		"at(2040-02-30T00:00:00)", "at(2040-01-01T00:00:00Z)", "at(2040-01-01T00:00:00.5)", "at(2040-01-01)", "rate(0 minutes)", "rate(-1 minutes)", "rate(1.5 hours)",
		"rate(1 seconds)", "rate(1 week)", "rate (1 minutes)", "Rate(1 minutes)", "rate(1 minutes", "cron(0 10 * * * *)", "cron(0 10 ? * ? *)", "cron(60 10 * * ? *)",
		"cron(0 10 * * ? 1969)", "cron(0 10 ? * 8 *)", "cron(0 10 ? * 2#6 *)", "cron()", "every day", " ",
	} {
		in := g.usual("a", func(in *scheduler.CreateScheduleInput) { in.ScheduleExpression = &expression })
		_, err := e.Scheduler.CreateSchedule(t.Context(), in)
		if problem := errorProblem(err, validation, "Invalid Schedule Expression "+expression+"."); problem != "" {
			t.Errorf("%s:\n%s", expression, problem)
		}
	}
}

// Violations of the API's model have the model's words. All members are checked against it before
// any is interpreted.
func scheduleShape(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	long := func(n int) *string { return aws.String(strings.Repeat("x", n)) }
	for _, test := range []struct {
		what    string
		change  func(*scheduler.CreateScheduleInput)
		message string
	}{
		{"name", func(in *scheduler.CreateScheduleInput) { in.Name = aws.String("a b") },
			`1 validation error detected: Value 'a b' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: …`},
		{"long name", func(in *scheduler.CreateScheduleInput) { in.Name = long(65) },
			`1 validation error detected: Value '` + *long(65) + `' at 'name' failed to satisfy constraint: Member must have length less than or equal to 64`},
		{"group", func(in *scheduler.CreateScheduleInput) { in.GroupName = aws.String("a/b") },
			`1 validation error detected: Value 'a/b' at 'groupName' failed to satisfy constraint: Member must satisfy regular expression pattern: …`},
		{"expression", func(in *scheduler.CreateScheduleInput) { in.ScheduleExpression = long(257) },
			`1 validation error detected: Value '…' at 'scheduleExpression' failed to satisfy constraint: Member must have length less than or equal to 256`},
		{"description", func(in *scheduler.CreateScheduleInput) { in.Description = long(513) },
			`1 validation error detected: Value '…' at 'description' failed to satisfy constraint: Member must have length less than or equal to 512`},
		{"state", func(in *scheduler.CreateScheduleInput) { in.State = "PAUSED" },
			`1 validation error detected: Value 'PAUSED' at 'state' failed to satisfy constraint: Member must satisfy enum value set: […]`},
		{"window", func(in *scheduler.CreateScheduleInput) {
			in.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeFlexible, MaximumWindowInMinutes: aws.Int32(1441)}
		}, `1 validation error detected: Value '1441' at 'flexibleTimeWindow.maximumWindowInMinutes' failed to satisfy constraint: Member must have value less than or equal to 1440`},
		{"role", func(in *scheduler.CreateScheduleInput) { in.Target.RoleArn = aws.String("me") },
			`1 validation error detected: Value 'me' at 'target.roleArn' failed to satisfy constraint: Member must satisfy regular expression pattern: …`},
		{"retries", func(in *scheduler.CreateScheduleInput) {
			in.Target.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(186)}
		}, `1 validation error detected: Value '186' at 'target.retryPolicy.maximumRetryAttempts' failed to satisfy constraint: Member must have value less than or equal to 185`},
		{"two", func(in *scheduler.CreateScheduleInput) { in.State, in.ActionAfterCompletion = "A", "B" }, `2 validation errors detected: …`},
		{"token", func(in *scheduler.CreateScheduleInput) { in.ClientToken = aws.String("a.b") },
			`1 validation error detected: Value 'a.b' at 'clientToken' failed to satisfy constraint: Member must satisfy regular expression pattern: …`},
	} {
		in := g.usual("a", test.change)
		_, err := e.Scheduler.CreateSchedule(t.Context(), in)
		if problem := errorProblem(err, validation, test.message); problem != "" {
			t.Errorf("%s:\n%s", test.what, problem)
		}
	}
	same(t, "schedules", g.names(t), []string(nil))
}

func scheduleRefused(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	rate := func(in *scheduler.CreateScheduleInput) { in.ScheduleExpression = aws.String("rate(1 hours)") }
	for _, test := range []struct {
		what    string
		change  func(*scheduler.CreateScheduleInput)
		message string
	}{
		{"a start long past", func(in *scheduler.CreateScheduleInput) {
			rate(in)
			in.StartDate = aws.Time(g.now().Add(-6 * time.Minute))
		}, "The StartDate you specify cannot be earlier than 5 minutes ago."},
		{"a start behind the end", func(in *scheduler.CreateScheduleInput) {
			rate(in)
			in.StartDate, in.EndDate = aws.Time(g.now().Add(2*time.Hour)), aws.Time(g.now().Add(time.Hour))
		}, "The StartDate you specify must come before the EndDate."},
		{"OFF with minutes", func(in *scheduler.CreateScheduleInput) { in.FlexibleTimeWindow.MaximumWindowInMinutes = aws.Int32(5) },
			"MaximumWindowInMinutes must not be provided when FlexibleTimeWindowMode is set to OFF."},
		{"FLEXIBLE without", func(in *scheduler.CreateScheduleInput) {
			in.FlexibleTimeWindow.Mode = types.FlexibleTimeWindowModeFlexible
		}, ""},
		{"zone", func(in *scheduler.CreateScheduleInput) { in.ScheduleExpressionTimezone = aws.String("Mars/Olympus") }, ""},
	} {
		_, err := e.Scheduler.CreateSchedule(t.Context(), g.usual("a", test.change))
		if problem := errorProblem(err, validation, test.message); problem != "" {
			t.Errorf("%s:\n%s", test.what, problem)
		}
	}
}

func scheduleTargets(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	for _, test := range []struct {
		arn, input, message string
	}{
		{"arn:aws:scheduler:us-east-1:000000000000:aws-sdk:dynamodb:putItem", "{}", "scheduler is not a supported service for a target"},
		{putItemARN, "", "You must provide an input to set this target for your schedule"},
		{"arn:aws:scheduler:::aws-sdk:dynamodb:getItem", "{}", "getItem API is not supported"},
		{"arn:aws:scheduler:::aws-sdk:dynamodb:batchGetItem", "{}", "batchGetItem API is not supported"},
		{"arn:aws:scheduler:::aws-sdk:dynamodb:query", "{}", "query API is not supported"},
		{"arn:aws:s3:::bucket", "{}", "s3 is not a supported service for a target"},
		{"nonsense", "{}", ""},
	} {
		_, err := e.Scheduler.CreateSchedule(t.Context(), g.usual("a", func(in *scheduler.CreateScheduleInput) {
			in.Target.Arn, in.Target.Input = aws.String(test.arn), nil
			if test.input != "" {
				in.Target.Input = aws.String(test.input)
			}
		}))
		if problem := errorProblem(err, validation, test.message); problem != "" {
			t.Errorf("%s:\n%s", test.arn, problem)
		}
	}
}

func scheduleUnknownGroup(t *testing.T, e *Endpoint) {
	unknown := scheduleGroup{Endpoint: e, name: scheduleName(t)}
	_, err := e.Scheduler.CreateSchedule(t.Context(), unknown.usual("a"))
	wantError(t, err, notFound, "Schedule group "+unknown.name+" does not exist.")
}

func getScheduleMissing(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	_, err := e.Scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: aws.String("a"), GroupName: &g.name})
	wantError(t, err, notFound, "Schedule a does not exist.")
	_, err = e.Scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: aws.String("a b"), GroupName: &g.name})
	wantError(t, err, validation, "1 validation error detected: Value 'a b' at 'name' failed to satisfy constraint: …")
}

// A schedule that was deleted is gone, and its name is free.
func deleteScheduleGone(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	g.create(t, g.usual("a"))
	g.create(t, g.usual("b"))
	g.delete(t, "a")
	same(t, "schedules", g.names(t), []string{"b"})
	g.create(t, g.usual("a", func(in *scheduler.CreateScheduleInput) { in.Description = aws.String("new") }))
	same(t, "description", *g.get(t, "a").Description, "new")
}

func deleteScheduleMissing(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	_, err := e.Scheduler.DeleteSchedule(t.Context(), &scheduler.DeleteScheduleInput{Name: aws.String("a"), GroupName: &g.name})
	wantError(t, err, notFound, "Schedule a does not exist.")
}
