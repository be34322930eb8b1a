package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/work/cron"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
)

// schedule is a schedule with its next firing.
type schedule struct {
	*scheduler.GetScheduleOutput
	next time.Time // zero: none, or unknown
	err  error
}

const schedulesPage = 50

// showSchedules lists the schedules with their next firings.
func showSchedules(ctx context.Context, v *visit) (*page, error) {
	f := form{v.r.Form}
	in := &scheduler.ListSchedulesInput{MaxResults: aws.Int32(schedulesPage), NamePrefix: pointer(f.get("q")), GroupName: pointer(f.get("group")), NextToken: pointer(f.get("from"))}
	p := &page{title: "Schedules", area: below + "schedules"}
	client := v.Scheduler()
	out, err := client.ListSchedules(ctx, in)
	if err != nil {
		if asksForKey(err) {
			return nil, err
		}
		p.body = []node{missing("This endpoint has no schedules of EventBridge Scheduler.", err)}
		return p, nil
	}
	clock := v.clock(ctx)
	all := make([]schedule, len(out.Schedules))
	parallel(len(all), func(i int) {
		one := out.Schedules[i]
		all[i].GetScheduleOutput, all[i].err = client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: one.Name, GroupName: one.GroupName})
	})
	v.addNext(ctx, all, clock)
	var rows []node
	var firings []firing
	for i, one := range all {
		if one.err != nil {
			continue // deleted meanwhile
		}
		if !one.next.IsZero() {
			firings = append(firings, firing{one.next, aws.ToString(one.Name)})
		}
		rows = append(rows, all[i].row(v, clock))
	}
	p.body = []node{
		el("form", has("class", "filter"), has("method", "get"),
			el("label", words("Name begins with "), el("input", has("type", "search"), has("name", "q"), has("value", f.get("q")), has("data-search"))),
			f.text("group", "Group", ""), el("button", words("Filter")),
		),
		firingsChart(firings, clock.now),
		stacked([]string{"Group", "Name", "State", "Expression", "Next firing", "At", "Target", ""}, rows, "There are no schedules yet."),
	}
	if out.NextToken != nil {
		p.body = append(p.body, more(v.r.URL, url.Values{"from": {*out.NextToken}}))
	}
	return p, nil
}

// addNext adds the next firings: from mayfly's tables, or computed from the expressions.
func (v *visit) addNext(ctx context.Context, all []schedule, clock reading) {
	names := map[string][]string{}
	for _, one := range all {
		if one.err == nil {
			group := aws.ToString(one.GroupName)
			names[group] = append(names[group], aws.ToString(one.Name))
		}
	}
	states := map[string]schedules.State{}
	if clock.ours {
		for group, members := range names {
			read, err := schedules.ReadStates(ctx, v.DynamoDB(), group, members...)
			if err != nil {
				continue // the key may not read the table: compute them from the expressions
			}
			for name, s := range read {
				states[group+"/"+name] = s
			}
		}
	}
	for i := range all {
		one := &all[i]
		if one.err != nil || one.State == types.ScheduleStateDisabled {
			continue
		}
		if s, ok := states[aws.ToString(one.GroupName)+"/"+aws.ToString(one.Name)]; ok {
			one.next = s.Due
			continue
		}
		one.next = one.computed(clock.now)
	}
}

// computed returns the next firing by the expression; zero if it has none or cannot be read.
func (s *schedule) computed(now time.Time) time.Time {
	zone, err := cron.Zone(aws.ToString(s.ScheduleExpressionTimezone))
	if err != nil {
		return time.Time{}
	}
	x, err := cron.Parse(aws.ToString(s.ScheduleExpression), zone)
	if err != nil {
		return time.Time{}
	}
	anchor := aws.ToTime(s.CreationDate)
	if s.StartDate != nil {
		anchor = *s.StartDate
	}
	at, ok := x.Next(anchor, now)
	if !ok || s.EndDate != nil && at.After(*s.EndDate) {
		return time.Time{}
	}
	return at
}

// row returns the row of a schedule, with the buttons that pause it and run it.
func (s *schedule) row(v *visit, clock reading) node {
	left, at := node(words("–")), node(words(""))
	if !s.next.IsZero() {
		left, at = until(s.next, clock.now), instant(s.next)
	}
	arn := ""
	if s.Target != nil {
		arn = aws.ToString(s.Target.Arn)
	}
	return el("tr",
		el("td", words(aws.ToString(s.GroupName))), el("td", el("a", has("href", schedulePath(aws.ToString(s.GroupName), aws.ToString(s.Name))), words(aws.ToString(s.Name)))), el("td", state(string(s.State))),
		el("td", el("code", words(aws.ToString(s.ScheduleExpression)))), el("td", left), el("td", at), el("td", el("code", words(clip(arn, cellMost)))),
		el("td", s.buttons(v, "")),
	)
}

// buttons returns the buttons that pause a schedule, run it and delete it. back names the page to
// come back to: "schedule", or the list.
func (s *schedule) buttons(v *visit, back string) node {
	do, pause := doPause, "Pause"
	if s.State == types.ScheduleStateDisabled {
		do, pause = doResume, "Resume"
	}
	button := func(do, name string) node { return el("button", has("name", "do"), has("value", do), words(name)) }
	hidden := func(name, value string) node {
		return el("input", has("type", "hidden"), has("name", name), has("value", value))
	}
	return el("form", has("class", "inline"), has("method", "post"), has("action", below+"schedules"), v.tokenField(),
		hidden("group", aws.ToString(s.GroupName)), hidden("name", aws.ToString(s.Name)), hidden("back", back),
		button(do, pause), button("run", "Run now"),
		el("button", has("name", "do"), has("value", "delete"), has("class", "danger"), has("data-confirm", "Delete the schedule "+aws.ToString(s.Name)+"?"), words("Delete")),
	)
}

// The buttons name the state that the visitor wants, so that a form that is sent twice, or by two
// visitors, does not undo itself.
const (
	doPause  = "pause"
	doResume = "resume"
)

// changeSchedule pauses, resumes, runs or deletes a schedule.
func changeSchedule(ctx context.Context, v *visit) (string, *page, error) {
	f, client := form{v.r.PostForm}, v.Scheduler()
	name, group := aws.String(f.get("name")), aws.String(f.get("group"))
	if f.get("do") == "delete" {
		_, err := client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: name, GroupName: group})
		return below + "schedules", nil, err
	}
	s, err := client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: name, GroupName: group})
	if err != nil {
		return "", nil, err
	}
	switch f.get("do") {
	case doPause:
		err = v.setState(ctx, s, types.ScheduleStateDisabled)
	case doResume:
		err = v.setState(ctx, s, types.ScheduleStateEnabled)
	case "run":
		err = v.runOnce(ctx, s)
	default:
		err = errChange
	}
	if f.get("back") != "" {
		return schedulePath(*group, *name), nil, err
	}
	return below + "schedules", nil, err
}

// setState writes a schedule, as it was read, with another state. UpdateSchedule replaces all of a
// schedule, without a condition or a version: a change by others between the read and this write is
// lost. So a schedule that has the state already is not written. The update also sends the catch-up
// mode of a schedule at mayfly, which it would otherwise reset.
func (v *visit) setState(ctx context.Context, s *scheduler.GetScheduleOutput, state types.ScheduleState) error {
	if s.State == state {
		return nil
	}
	var catchUp schedules.CatchUp
	if !v.IsAWS() { // the clock, which would show whether it is mayfly, may be closed to the visitor
		group, name := aws.ToString(s.GroupName), aws.ToString(s.Name)
		states, err := schedules.ReadStates(ctx, v.DynamoDB(), group, name)
		if err != nil {
			return err
		}
		catchUp = states[name].CatchUp
	}
	_, err := v.Scheduler().UpdateSchedule(ctx, &scheduler.UpdateScheduleInput{
		Name: s.Name, GroupName: s.GroupName, State: state, ActionAfterCompletion: s.ActionAfterCompletion, Description: s.Description, EndDate: s.EndDate, StartDate: s.StartDate,
		FlexibleTimeWindow: s.FlexibleTimeWindow, KmsKeyArn: s.KmsKeyArn, ScheduleExpression: s.ScheduleExpression, ScheduleExpressionTimezone: s.ScheduleExpressionTimezone, Target: s.Target,
	}, func(o *scheduler.Options) {
		if catchUp != schedules.CatchUpGroup {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(headerCatchUp, string(catchUp)))
		}
	})
	return err
}

// headerCatchUp is mayfly's addition to UpdateSchedule: which missed occurrences fire.
const headerCatchUp = "X-Mayfly-Catch-Up"

// nameMost is the length of the longest name of a schedule.
const nameMost = 64

// The name of the copy that runs a schedule once is the schedule's with an ending: so many random
// digits follow it.
const (
	runEnding = "-run-"
	runDigits = 8
)

// runOnce fires a schedule now, through a copy that is deleted afterwards. Elsewhere than at mayfly
// it is the second whole second from now, since endpoints may not fire a past one.
func (v *visit) runOnce(ctx context.Context, s *scheduler.GetScheduleOutput) error {
	suffix := make([]byte, runDigits/2)
	_, _ = rand.Read(suffix) // never fails
	ending := runEnding + hex.EncodeToString(suffix)
	name := aws.ToString(s.Name)
	clock := v.clock(ctx)
	expression := "at(" + clock.now.Add(2*time.Second).UTC().Format("2006-01-02T15:04:05") + ")"
	if clock.ours {
		expression = "instant(" + clock.now.UTC().Format("2006-01-02T15:04:05.000") + ")"
	}
	_, err := v.Scheduler().CreateSchedule(ctx, &scheduler.CreateScheduleInput{
		Name: aws.String(name[:min(len(name), nameMost-len(ending))] + ending), GroupName: s.GroupName, Description: aws.String("One firing of " + name),
		ScheduleExpression: &expression, ActionAfterCompletion: types.ActionAfterCompletionDelete,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}, KmsKeyArn: s.KmsKeyArn, Target: s.Target,
	})
	return err
}
