package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

// scheduleCommand manages schedules through the EventBridge Scheduler API.
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

func (scheduleCommand) Help() string {
	return `Examples:

    mayfly schedule create tea --at "in 5m" --target arn:aws:lambda:us-east-1:000000000000:function:tea
    mayfly schedule next 'cron(0 9 ? * MON-FRI *)' --zone Europe/Berlin
    mayfly schedule list --endpoint aws

These commands use the EventBridge Scheduler API, so they work with mayfly serve and with Amazon's service.`
}

const (
	serviceScheduler = "SCHEDULER" // as in AWS_ENDPOINT_URL_SCHEDULER
	groupDefault     = "default"
	zoneDefault      = "UTC"
	headerCatchUp    = "X-Mayfly-Catch-Up"
	parallelMax      = 16 // number of parallel calls
)

// scheduleFlags select the endpoint and the group of schedules.
type scheduleFlags struct {
	endpointFlags
	GroupName string `name:"group" help:"Schedule group." default:"default" placeholder:"NAME"`
}

// withCatchUp returns an option of CreateSchedule and UpdateSchedule that only mayfly supports.
func withCatchUp(rule string) func(*scheduler.Options) {
	return func(o *scheduler.Options) {
		if rule != "" {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(headerCatchUp, rule))
		}
	}
}

// adviseSchedule returns the error of a call about a schedule or its group, with the next step.
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

// getSchedule returns a schedule.
func (e *endpoint) getSchedule(ctx context.Context, client *scheduler.Client, group, name string) (*scheduleDocument, error) {
	out, err := client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &name, GroupName: &group})
	if err != nil {
		return nil, err
	}
	return documentOf(out), nil
}

// timetable computes the occurrences of a schedule.
type timetable struct {
	expression cron.Expression
	zone       *time.Location
	anchor     time.Time // start of a rate's intervals
	start, end time.Time // no occurrence lies before or after; zero: unbounded
}

// after returns the first occurrence strictly after an instant. ok is false if there is none.
func (t timetable) after(from time.Time) (occurrence time.Time, ok bool) {
	if t.expression.Kind() != cron.At && !t.start.IsZero() && from.Before(t.start) {
		from = t.start.Add(-1)
	}
	occurrence, ok = t.expression.Next(t.anchor, from)
	return occurrence, ok && (t.end.IsZero() || t.expression.Kind() == cron.At || !occurrence.After(t.end))
}

// timetable returns the schedule's timetable. The anchor of an updated rate is known only from
// mayfly's tables.
func (d *scheduleDocument) timetable() (timetable, error) {
	zone, err := cron.Zone(cmp.Or(aws.ToString(d.ScheduleExpressionTimezone), zoneDefault))
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

// next returns the time of the next firing: the exact one within the flexible window if it is
// known, otherwise the beginning of the window. It returns zero if there is none.
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

// whenFlags set the times of a schedule.
type whenFlags struct {
	At         string `help:"Once: 2030-01-01T12:00:00[.250] in --zone, 2030-01-01T12:00:00+01:00, \"in 5m\", +5m, now." xor:"when" placeholder:"TIME"`
	Every      *span  `help:"Repeatedly: 5m, 2h, 1d, 30s, 250ms." xor:"when" placeholder:"TIME"`
	Cron       string `help:"By the calendar, in six fields: minutes hours day-of-month month day-of-week year, such as \"0 9 ? * MON-FRI *\"." xor:"when" placeholder:"FIELDS"`
	Expression string `help:"As in the API: at(…), rate(…), cron(…), and mayfly's own instant(…) and every(…)." xor:"when" placeholder:"TEXT"`
	Zone       string `help:"Time zone, such as Europe/Berlin." placeholder:"NAME"`
	Start      string `help:"No firing before this time, from which a rate counts. Same form as --at." placeholder:"TIME"`
	End        string `help:"No firing after this time. Same form as --at." placeholder:"TIME"`
}

// timing has the times of a schedule in the API's form.
type timing struct {
	expression, zone string
	start, end       time.Time // zero: not set
}

// given reports whether a flag sets an expression.
func (f whenFlags) given() bool {
	return f.At != "" || f.Every != nil || f.Cron != "" || f.Expression != ""
}

// read returns the expression of the flags: AWS's form if it is exact enough, otherwise mayfly's
// own. extended is set if the endpoint may support mayfly's form, exact if it certainly does.
func (f whenFlags) read(now func() time.Time, extended, exact bool) (timing, error) {
	w := timing{zone: cmp.Or(f.Zone, zoneDefault)}
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

// isEvery reports whether an invalid rate would be valid with mayfly's every, which also has seconds
// and milliseconds.
func isEvery(expression string) bool {
	body, rate := strings.CutPrefix(expression, "rate(")
	_, err := cron.Parse("every("+body, nil)
	return rate && err == nil
}

// check returns an error for an invalid expression, with more detail than the API's.
func (w timing) check(zone *time.Location, extended bool) error {
	if w.expression == "" {
		return misused(errNoExpression, "set --at, --every, --cron or --expression")
	}
	_, err := cron.Parse(w.expression, zone)
	switch {
	case err != nil && strings.HasPrefix(w.expression, "cron("):
		return misused(err, "for example %s", exampleCron(strings.TrimSuffix(strings.TrimPrefix(w.expression, "cron("), ")")))
	case err != nil && isEvery(w.expression):
		return misused(err, "for example every(%s", strings.TrimPrefix(w.expression, "rate("))
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
	// days of the week count from 1 here, and from 0 in Unix
	if len(f) != 5 || strings.ContainsAny(f[4], "0123456789") {
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

// readBound parses the time of a flag that bounds a range; zero: not set.
func readBound(flag, text string, zone *time.Location, now func() time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	m, err := when.Parse(text, zone, now)
	if err != nil {
		return time.Time{}, misused(fmt.Errorf("%s: %w", flag, err), "")
	}
	return m.At, nil
}

// atExpression returns at(…) for whole seconds, and otherwise instant(…).
func (f whenFlags) atExpression(zone *time.Location, now func() time.Time, extended, exact bool) (string, error) {
	m, err := when.Parse(f.At, zone, now)
	if err != nil {
		return "", misused(fmt.Errorf("--at: %w", err), "")
	}
	if m.Relative && !exact {
		m.At = when.Ceil(m.At, time.Second)
	}
	wall := m.Wall
	if wall == "" {
		wall = when.Wall(m.At.In(zone))
	}
	keyword := "instant"
	if m.At.Nanosecond() == 0 {
		keyword = "at"
		wall, _, _ = strings.Cut(wall, ".")
	}
	text := keyword + "(" + wall + ")"
	expression, err := cron.Parse(text, zone)
	if err != nil {
		return "", err
	}
	if at, _ := expression.Next(time.Time{}, time.Time{}); !at.Equal(m.At) {
		return "", misused(fmt.Errorf("--at: the clocks of %s show %s twice; the second time cannot be expressed", zone, wall), "drop --zone, so that the time is sent in UTC")
	}
	return text, nil
}

// rateExpression returns rate(…) for whole minutes, and otherwise every(…).
func rateExpression(interval time.Duration, extended bool) (string, error) {
	if interval == 0 {
		return "", misused(errors.New("--every 0s is not above 0"), "for example --every 5m")
	}
	units := []struct {
		keyword, name string
		length        time.Duration
	}{
		{"rate", "day", 24 * time.Hour}, {"rate", "hour", time.Hour}, {"rate", "minute", time.Minute},
		{"every", "second", time.Second}, {"every", "millisecond", time.Millisecond},
	}
	for _, u := range units {
		if interval%u.length != 0 {
			continue
		}
		if u.keyword == "every" && !extended {
			return "", misused(fmt.Errorf("--every %s: Amazon's service needs whole minutes", span(interval)), "use whole minutes, or a mayfly endpoint")
		}
		n, plural := interval/u.length, "s"
		if n == 1 {
			plural = ""
		}
		return fmt.Sprintf("%s(%d %s%s)", u.keyword, n, u.name, plural), nil
	}
	return "", misused(fmt.Errorf("--every %s is not a whole number of milliseconds", span(interval)), "for example --every 250ms")
}

// isExtended reports whether only mayfly supports the expression.
func isExtended(expression string) bool {
	return strings.HasPrefix(expression, "instant(") || strings.HasPrefix(expression, "every(")
}
