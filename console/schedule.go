package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
)

const (
	firingsAhead = 10
	runsShown    = 50
)

// schedulePath returns the path of a schedule's page.
func schedulePath(group, name string) string {
	return below + "schedule?" + url.Values{"group": {group}, "name": {name}}.Encode()
}

// errNoHistory is why other endpoints show no history.
var errNoHistory = &pageError{http.StatusNotFound, "EventBridge Scheduler's API returns none; Amazon counts its firings in CloudWatch."}

// showSchedule shows a schedule: its settings, its next firings and its past ones.
func showSchedule(ctx context.Context, v *visit) (*page, error) {
	f := form{v.r.Form}
	groupName, name := f.get("group"), f.get("name")
	out, err := v.Scheduler().GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &name, GroupName: &groupName})
	if err != nil {
		return nil, err
	}
	all := []schedule{{GetScheduleOutput: out}}
	clock := v.clock(ctx)
	v.addNext(ctx, all, clock)
	s := &all[0]
	facts := []node{
		fact("Group", words(groupName)), fact("State", state(string(s.State))), fact("Expression", el("code", words(aws.ToString(s.ScheduleExpression)+" "+aws.ToString(s.ScheduleExpressionTimezone)))),
		fact("Target", el("code", words(aws.ToString(s.Target.Arn)))), fact("After its last firing", words(strings.ToLower(string(s.ActionAfterCompletion)))),
	}
	if d := aws.ToString(s.Description); d != "" {
		facts = append(facts, fact("Description", words(d)))
	}
	if input := aws.ToString(s.Target.Input); input != "" {
		facts = append(facts, fact("Input", payload([]byte(input))))
	}
	if r := s.Target.RetryPolicy; r != nil {
		facts = append(facts, fact("Retries", words(strconv.Itoa(int(aws.ToInt32(r.MaximumRetryAttempts)))+", for "+when.Text(time.Duration(aws.ToInt32(r.MaximumEventAgeInSeconds))*time.Second))))
	}
	ahead := s.ahead(clock.now)
	firings := make([]firing, len(ahead))
	rows := make([]node, len(ahead))
	for i, at := range ahead {
		firings[i] = firing{at, name}
		rows[i] = el("tr", el("td", until(at, clock.now)), el("td", instant(at)))
	}
	none := "No firing is to come."
	if s.State == types.ScheduleStateDisabled {
		none = "It is paused, so no firing is to come."
	}
	return &page{title: name, area: below + "schedules", body: []node{
		el("p", el("a", has("href", below+"schedules"), words("All schedules"))),
		s.buttons(v, "schedule"),
		el("dl", has("class", "facts"), group(facts)),
		el("h2", words("Next firings")), firingsChart(firings, clock.now), list([]string{"In", "At"}, rows, none),
		el("h2", words("Past firings")), v.history(ctx, s),
	}}, nil
}

// ahead returns the next firings of a schedule.
func (s *schedule) ahead(now time.Time) (all []time.Time) {
	if s.next.IsZero() {
		return nil
	}
	all = append(all, s.next)
	for after := s.next; len(all) < firingsAhead; {
		at := s.computed(after)
		if at.IsZero() || !at.After(after) {
			break
		}
		all, after = append(all, at), at
	}
	return all
}

// history shows the past firings of a schedule, also those by hand.
func (v *visit) history(ctx context.Context, s *schedule) node {
	if !v.clock(ctx).ours {
		return missing("The past firings of a schedule are shown at mayfly.", errNoHistory)
	}
	name := aws.ToString(s.Name)
	byHand := regexp.MustCompile(`^` + regexp.QuoteMeta(name[:min(len(name), nameMost-len(runEnding)-runDigits)]+runEnding) + `[0-9a-f]{8}$`)
	arn := strings.TrimSuffix(aws.ToString(s.Arn), name)
	h, err := schedules.ReadHistory(ctx, v.DynamoDB(), v.Streams(), aws.ToString(s.GroupName), arn, func(other string) bool { return other == name || byHand.MatchString(other) }, runsShown)
	if err != nil {
		return missing("The past firings cannot be read.", err)
	}
	rows := make([]node, len(h.Runs))
	for i, run := range h.Runs {
		number := grouped(run.Number)
		if run.Name != name {
			number = "by hand"
		}
		rows[i] = el("tr",
			el("td", words(number)), el("td", instant(run.Occurrence)), el("td", instant(run.At)), el("td", outcome(run)),
			el("td", el("code", words(run.ID))),
		)
	}
	text := "Firings are read from the stream of the group's table, which keeps them for a day. “delivered” means that neither a retry nor a dead letter of the firing is kept; an attempt may be under way again."
	if h.Part {
		text = "The group has more records than are read for this page, so firings may be missing. " + text
	}
	return group{
		stacked([]string{"Firing", "Occurrence", "Fired", "Outcome", "Delivery"}, rows, "It has not fired in the past day."),
		el("p", el("small", words(text))),
	}
}

// outcome says what became of a firing.
func outcome(run schedules.Run) node {
	switch fate := run.Fate; {
	case fate != nil && fate.Dead:
		return el("span", el("span", has("class", "left over"), words("failed for good")), words(" after "+counted(fate.Attempts, "attempt")+": "+clip(fate.Last.Code+" "+fate.Last.Message, cellMost)+" "),
			el("a", has("href", below+"deadletters"), words("dead letters")))
	case fate != nil:
		return el("span", el("span", has("class", "warning"), words("failed")), words(" "+counted(fate.Attempts, "attempt")+", the next one "), instant(fate.Next), words(": "+clip(fate.Last.Code+" "+fate.Last.Message, cellMost)))
	case run.Under:
		return words("under way")
	case run.Missed:
		return el("span", has("class", "warning"), words("missed by "+when.Text(run.At.Sub(run.Due))+": the schedule's catch-up decided whether it ran"))
	}
	return el("span", has("class", "state usual"), words("delivered"))
}
