package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/work/cron"
)

// scheduleCommand is what is done with schedules, through the API of EventBridge Scheduler.
type scheduleCommand struct {
	Create scheduleCreateCommand `cmd:"" help:"Create a schedule."`
	List   scheduleListCommand   `cmd:"" help:"List schedules and their next firings."`
	Show   scheduleShowCommand   `cmd:"" help:"Show a schedule."`
	Next   scheduleNextCommand   `cmd:"" help:"Show the next firings of a schedule or an expression."`
	Run    scheduleRunCommand    `cmd:"" help:"Fire a schedule once, now."`
	Delete scheduleDeleteCommand `cmd:"" help:"Delete schedules."`
	Import scheduleImportCommand `cmd:"" help:"Create schedules from a file."`
	Export scheduleExportCommand `cmd:"" help:"Export schedules as JSON lines."`
	Group  scheduleGroupCommand  `cmd:"" help:"Create, list and delete schedule groups."`
}

// Help returns the text of --help below the flags.
func (scheduleCommand) Help() string {
	return `Examples:

    mayfly schedule create tea --at "in 5m" --target arn:aws:lambda:us-east-1:000000000000:function:tea
    mayfly schedule next 'cron(0 9 ? * MON-FRI *)' --zone Europe/Berlin
    mayfly schedule list --endpoint aws

These commands use the EventBridge Scheduler API, so they work with mayfly serve and with Amazon's service.`
}

const (
	serviceScheduler = "SCHEDULER" // in AWS_ENDPOINT_URL_…
	groupDefault     = "default"
	zoneDefault      = "UTC"
	headerCatchUp    = "X-Mayfly-Catch-Up"
	atOnce           = 16 // calls under way at one time, where there are many to make
)

// scheduleFlags say where the schedules are.
type scheduleFlags struct {
	endpointFlags
	GroupName string `name:"group" help:"Schedule group." default:"default" placeholder:"NAME"`
}

// withCatchUp is an option of CreateSchedule and UpdateSchedule, which mayfly knows.
func withCatchUp(rule string) func(*scheduler.Options) {
	return func(o *scheduler.Options) {
		if rule != "" {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(headerCatchUp, rule))
		}
	}
}

// adviseSchedule says what a failed call about a schedule or its group means.
func (e *endpoint) adviseSchedule(err error, group string) error {
	switch explained := e.advise(err); {
	case answered(err, "ResourceNotFoundException") && group != groupDefault && group != "":
		return advise(explained, "mayfly schedule group create %s creates it; mayfly schedule group list shows the others", group)
	case answered(err, "ResourceNotFoundException"):
		return advise(explained, "mayfly schedule list")
	default:
		return explained
	}
}

// getSchedule reads a schedule.
func (e *endpoint) getSchedule(ctx context.Context, client *scheduler.Client, group, name string) (*scheduleDocument, error) {
	out, err := client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &name, GroupName: &group})
	if err != nil {
		return nil, err
	}
	return documentOf(out), nil
}

// timetable is when a schedule has its occurrences.
type timetable struct {
	expression cron.Expression
	zone       *time.Location
	anchor     time.Time // what a rate counts from
	start, end time.Time // no occurrence lies before or after; zero: unbounded
}

// after gives the first occurrence strictly after an instant. ok is false where none follows.
func (t timetable) after(from time.Time) (occurrence time.Time, ok bool) {
	if t.expression.Kind() != cron.At && !t.start.IsZero() && from.Before(t.start) {
		from = t.start.Add(-1)
	}
	occurrence, ok = t.expression.Next(t.anchor, from)
	return occurrence, ok && (t.end.IsZero() || t.expression.Kind() == cron.At || !occurrence.After(t.end))
}

// timetable says when the schedule has its occurrences. What a rate counts from after an update only mayfly's tables tell.
func (d *scheduleDocument) timetable() (timetable, error) {
	zone, err := cron.Zone(orText(aws.ToString(d.ScheduleExpressionTimezone), zoneDefault))
	if err != nil {
		return timetable{}, err
	}
	expression, err := cron.Parse(d.ScheduleExpression, zone)
	if err != nil {
		return timetable{}, err
	}
	t := timetable{expression: expression, zone: zone, anchor: d.CreationDate.time(), start: d.StartDate.time(), end: d.EndDate.time()}
	switch {
	case d.kept != nil:
		t.anchor = d.kept.Anchor
	case !t.start.IsZero():
		t.anchor = t.start
	}
	return t, nil
}

// next gives when the schedule fires next: within its flexible window after the occurrence, where that is known, and at its beginning otherwise. It is zero where it does
// not fire again.
func (d *scheduleDocument) next(now time.Time) time.Time {
	if d.kept != nil {
		return d.kept.Due
	}
	t, err := d.timetable()
	if err != nil || d.State == stateDisabled {
		return time.Time{}
	}
	occurrence, ok := t.after(now)
	if !ok {
		return time.Time{}
	}
	return occurrence
}

var errNoExpression = errors.New("no time given")

// whenFlags say when something fires.
type whenFlags struct {
	At         string `help:"Once: 2030-01-01T12:00:00[.250] in --zone, 2030-01-01T12:00:00+01:00, \"in 5m\", +5m, now." xor:"when" placeholder:"TIME"`
	Every      *span  `help:"Repeatedly: 5m, 2h, 1d, 30s, 250ms." xor:"when" placeholder:"TIME"`
	Cron       string `help:"By the calendar, in six fields: minutes hours day-of-month month day-of-week year, such as \"0 9 ? * MON-FRI *\"." xor:"when" placeholder:"FIELDS"`
	Expression string `help:"As in the API: at(…), rate(…), cron(…), and mayfly's own instant(…) and every(…)." xor:"when" placeholder:"TEXT"`
	Zone       string `help:"Time zone, such as Europe/Berlin." placeholder:"NAME"`
	Start      string `help:"No firing before this time, from which a rate counts. Same form as --at." placeholder:"TIME"`
	End        string `help:"No firing after this time. Same form as --at." placeholder:"TIME"`
}

// when is what the flags say, as the API has it.
type when struct {
	expression, zone string
	start, end       time.Time // zero: not given
}

// given reports whether an expression is.
func (f whenFlags) given() bool {
	return f.At != "" || f.Every != nil || f.Cron != "" || f.Expression != ""
}

// read makes an expression of the flags: a plain one where that is exact enough, and one of mayfly's where it is not. extended says that the endpoint may know
// those; exact, that it certainly does.
func (f whenFlags) read(now func() time.Time, extended, exact bool) (when, error) {
	w := when{zone: orText(f.Zone, zoneDefault)}
	zone, err := cron.Zone(w.zone)
	if err != nil {
		return w, misused(err, "use a name such as Europe/Berlin, America/New_York or UTC")
	}
	if w.start, err = readBound("--start", f.Start, zone, now); err != nil {
		return w, err
	}
	if w.end, err = readBound("--end", f.End, zone, now); err != nil {
		return w, err
	}
	switch {
	case f.At != "":
		w.expression, err = f.atExpression(zone, now, extended, exact)
	case f.Every != nil:
		w.expression, err = rateExpression(time.Duration(*f.Every), extended)
	case f.Cron != "":
		w.expression = "cron(" + f.Cron + ")"
	default:
		w.expression = f.Expression
	}
	if err != nil {
		return w, err
	}
	return w, w.check(zone, extended)
}

// check reports what is wrong with the expression, in more words than the API's.
func (w when) check(zone *time.Location, extended bool) error {
	if w.expression == "" {
		return misused(errNoExpression, "set --at, --every, --cron or --expression")
	}
	_, err := cron.Parse(w.expression, zone)
	switch {
	case err != nil && strings.HasPrefix(w.expression, "cron("):
		return misused(err, "for example %s", exampleCron(strings.TrimSuffix(strings.TrimPrefix(w.expression, "cron("), ")")))
	case err != nil:
		return misused(err, "for example rate(5 minutes), at(2030-01-01T12:00:00) or cron(0 9 ? * MON-FRI *)")
	}
	if !extended && isExtended(w.expression) {
		return misused(fmt.Errorf("%s is an extension of mayfly; Amazon's service does not have it", w.expression), "use whole seconds with --at, and whole minutes with --every")
	}
	return nil
}

// exampleCron returns the expression with six fields for one with the five of Unix, or another example.
func exampleCron(fields string) string {
	f := strings.Fields(fields)
	if len(f) != 5 || strings.ContainsAny(f[4], "0123456789") { // days of the week are counted from 1 here, and from 0 there
		return "cron(0 9 ? * MON-FRI *)"
	}
	switch {
	case f[4] == "*":
		f[4] = "?"
	case f[2] == "*":
		f[2] = "?"
	}
	return "cron(" + strings.Join(f, " ") + " *)"
}

// readBound reads --start or --end.
func readBound(flag, text string, zone *time.Location, now func() time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	m, err := readMoment(text, zone, now)
	if err != nil {
		return time.Time{}, misused(fmt.Errorf("%s: %w", flag, err), "")
	}
	return m.at, nil
}

// atExpression is at(…) where whole seconds are exact enough, and instant(…) where they are not.
func (f whenFlags) atExpression(zone *time.Location, now func() time.Time, extended, exact bool) (string, error) {
	m, err := readMoment(f.At, zone, now)
	if err != nil {
		return "", misused(fmt.Errorf("--at: %w", err), "")
	}
	if m.relative && !exact {
		m.at = ceil(m.at, time.Second)
	}
	wall := m.wall
	if wall == "" {
		wall = wallText(m.at.In(zone))
	}
	keyword := "instant"
	if m.at.Nanosecond() == 0 {
		keyword = "at"
		wall, _, _ = strings.Cut(wall, ".")
	}
	text := keyword + "(" + wall + ")"
	expression, err := cron.Parse(text, zone)
	if err != nil {
		return "", err
	}
	if at, _ := expression.Next(time.Time{}, time.Time{}); !at.Equal(m.at) {
		return "", misused(fmt.Errorf("--at: the clocks of %s show %s twice; the second time cannot be expressed", zone, wall), "drop --zone, so that the time is sent in UTC")
	}
	return text, nil
}

// rateExpression is rate(…) for whole minutes, and every(…) for what is finer.
func rateExpression(interval time.Duration, extended bool) (string, error) {
	if interval == 0 {
		return "", misused(errors.New("--every 0s is not above 0"), "for example --every 5m")
	}
	units := []struct {
		keyword, name string
		is            time.Duration
	}{
		{"rate", "day", 24 * time.Hour}, {"rate", "hour", time.Hour}, {"rate", "minute", time.Minute},
		{"every", "second", time.Second}, {"every", "millisecond", time.Millisecond},
	}
	for _, u := range units {
		if interval%u.is != 0 {
			continue
		}
		if u.keyword == "every" && !extended {
			return "", misused(fmt.Errorf("--every %s: Amazon's service needs whole minutes", span(interval)), "use whole minutes, or a mayfly endpoint")
		}
		n, plural := interval/u.is, "s"
		if n == 1 {
			plural = ""
		}
		return fmt.Sprintf("%s(%d %s%s)", u.keyword, n, u.name, plural), nil
	}
	return "", misused(fmt.Errorf("--every %s is not a whole number of milliseconds", span(interval)), "for example --every 250ms")
}

// isExtended reports whether an expression is one of mayfly's own.
func isExtended(expression string) bool {
	return strings.HasPrefix(expression, "instant(") || strings.HasPrefix(expression, "every(")
}
