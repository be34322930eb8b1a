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

	"github.com/mayflydb/mayfly/internal/cron"
)

// scheduleCommand is what is done with schedules, through the API of EventBridge Scheduler.
type scheduleCommand struct {
	Create scheduleCreateCommand `cmd:"" help:"Create a schedule."`
	List   scheduleListCommand   `cmd:"" help:"List schedules and their next firings."`
	Show   scheduleShowCommand   `cmd:"" help:"Show all there is of a schedule."`
	Next   scheduleNextCommand   `cmd:"" help:"Show when a schedule, or an expression, fires next."`
	Run    scheduleRunCommand    `cmd:"" help:"Fire a schedule now, besides its own times."`
	Delete scheduleDeleteCommand `cmd:"" help:"Delete schedules."`
	Import scheduleImportCommand `cmd:"" help:"Create schedules from a file."`
	Export scheduleExportCommand `cmd:"" help:"Write schedules for import."`
	Group  scheduleGroupCommand  `cmd:"" help:"Create, list and delete schedule groups."`
}

// Help is the part of --help behind the flags.
func (scheduleCommand) Help() string {
	return `Examples:

    mayfly schedule create tea --at "in 5m" --target arn:aws:lambda:us-east-1:000000000000:function:tea
    mayfly schedule next 'cron(0 9 ? * MON-FRI *)' --zone Europe/Berlin
    mayfly schedule list --endpoint aws

They speak the API of EventBridge Scheduler, so they work with mayfly serve and with Amazon's service.`
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
		return advise(explained, "mayfly schedule group list shows the groups, and mayfly schedule group create %s makes this one", group)
	case answered(err, "ResourceNotFoundException"):
		return advise(explained, "mayfly schedule list shows what there is")
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

var errNoExpression = errors.New("it is not said when")

// whenFlags say when something fires.
type whenFlags struct {
	At         string `help:"Once: 2030-01-01T12:00:00[.250] in --zone, 2030-01-01T12:00:00+01:00, \"in 5m\", +5m, now." xor:"when" placeholder:"TIME"`
	Every      span   `help:"Again and again: 5m, 2h, 1d, 30s, 250ms." xor:"when" placeholder:"TIME"`
	Cron       string `help:"By the calendar: minutes hours day-of-month month day-of-week year, such as \"0 9 ? * MON-FRI *\"." xor:"when" placeholder:"FIELDS"`
	Expression string `help:"As the API has it: at(…), rate(…), cron(…), and mayfly's instant(…) and every(…)." xor:"when" placeholder:"TEXT"`
	Zone       string `help:"Time zone of the clocks that are meant, such as Europe/Berlin." placeholder:"NAME"`
	Start      string `help:"No firing before; a rate counts from here. As --at." placeholder:"TIME"`
	End        string `help:"No firing after. As --at." placeholder:"TIME"`
}

// when is what the flags say, as the API has it.
type when struct {
	expression, zone string
	start, end       time.Time // zero: not given
}

// given reports whether an expression is.
func (f whenFlags) given() bool {
	return f.At != "" || f.Every != 0 || f.Cron != "" || f.Expression != ""
}

// read makes an expression of the flags: a plain one where that is exact enough, and one of mayfly's where it is not. extended says that the endpoint may know
// those; exact, that it certainly does.
func (f whenFlags) read(now func() time.Time, extended, exact bool) (when, error) {
	w := when{zone: orText(f.Zone, zoneDefault)}
	zone, err := cron.Zone(w.zone)
	if err != nil {
		return w, advise(err, "give a name such as Europe/Berlin, America/New_York or UTC")
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
	case f.Every != 0:
		w.expression, err = rateExpression(time.Duration(f.Every), extended)
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
		return advise(errNoExpression, "give --at, --every, --cron or --expression")
	}
	_, err := cron.Parse(w.expression, zone)
	if err != nil {
		return advise(err, `see mayfly schedule create --help; a cron has six fields, such as "0 9 ? * MON-FRI *"`)
	}
	if !extended && isExtended(w.expression) {
		return advise(fmt.Errorf("%s is an extension of mayfly, which Amazon's service does not know", w.expression), "use whole seconds with --at, and whole minutes with --every")
	}
	return nil
}

// readBound reads --start or --end.
func readBound(flag, text string, zone *time.Location, now func() time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	m, err := readMoment(text, zone, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", flag, err)
	}
	return m.at, nil
}

// atExpression is at(…) where whole seconds are exact enough, and instant(…) where they are not.
func (f whenFlags) atExpression(zone *time.Location, now func() time.Time, extended, exact bool) (string, error) {
	m, err := readMoment(f.At, zone, now)
	if err != nil {
		return "", fmt.Errorf("--at: %w", err)
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
		return "", advise(fmt.Errorf("--at: the clocks of %s show %s twice, and the second time is meant", zone, wall), "leave --zone out: then it is said in UTC")
	}
	return text, nil
}

// rateExpression is rate(…) for whole minutes, and every(…) for what is finer.
func rateExpression(interval time.Duration, extended bool) (string, error) {
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
			return "", advise(fmt.Errorf("--every %s: Amazon's service counts in whole minutes", span(interval)), "give whole minutes, or use mayfly's own endpoint")
		}
		n, plural := interval/u.is, "s"
		if n == 1 {
			plural = ""
		}
		return fmt.Sprintf("%s(%d %s%s)", u.keyword, n, u.name, plural), nil
	}
	return "", fmt.Errorf("--every %s is not whole milliseconds", span(interval))
}

// isExtended reports whether an expression is one of mayfly's own.
func isExtended(expression string) bool {
	return strings.HasPrefix(expression, "instant(") || strings.HasPrefix(expression, "every(")
}
