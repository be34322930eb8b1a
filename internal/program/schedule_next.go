package program

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

type scheduleNextCommand struct {
	Schedule string `arg:"" optional:"" help:"Name of a schedule, or an expression such as 'rate(5 minutes)'."`

	whenFlags
	From  string `help:"Show the firings after this time instead of now. Same form as --at." placeholder:"TIME"`
	Count int    `short:"n" help:"Number of firings to show, 1 to 10000." default:"10"`
	JSON  bool   `name:"json" help:"Print JSON lines."`
	scheduleFlags
}

func (scheduleNextCommand) Help() string {
	return `Examples:

    mayfly schedule next report
    mayfly schedule next 'cron(0 9 ? * MON-FRI *)' --zone America/New_York
    mayfly schedule next --cron '30 2 * * ? *' --zone Europe/Berlin --from 2030-03-30T00:00:00 -n 3
    mayfly schedule next --every 250ms --start 2030-01-01T00:00:00 -n 3 --json

An expression is evaluated without an endpoint. Daylight saving time is respected: a local time that is skipped does
not occur, and one that occurs twice fires the first time.`
}

const countMax = 10_000 // maximum number of firings

// Run prints the next firings.
func (c scheduleNextCommand) Run(ctx context.Context, s streams) error {
	if c.Count < 1 || c.Count > countMax {
		return misused(fmt.Errorf("-n %d is not between 1 and %d", c.Count, countMax), "for example -n 10")
	}
	if strings.Contains(c.Schedule, "(") { // names contain no parenthesis
		if c.given() {
			return misused(errors.New("give one expression: as the argument or by a flag"), "")
		}
		c.Expression, c.Schedule = c.Schedule, ""
	}
	if n := len(strings.Fields(c.Schedule)); n > 1 {
		return misused(fmt.Errorf("%q is neither a schedule's name nor an expression; a cron expression has six fields, as in cron(0 9 ? * MON-FRI *)", c.Schedule), "mayfly schedule next '%s'", exampleCron(c.Schedule))
	}
	if _, err := readBound("--from", c.From, time.UTC, time.Now); err != nil { // a wrong time is found without the endpoint
		return err
	}
	t, now, from, err := c.timetable(ctx)
	if err != nil {
		return err
	}
	if c.From != "" {
		m, err := when.Parse(c.From, t.zone, func() time.Time { return now })
		if err != nil {
			return misused(fmt.Errorf("--from: %w", err), "")
		}
		from, now = m.At, m.At
	}
	if t.anchor.IsZero() {
		t.anchor = from // a rate counts from its creation: now
	}
	return c.print(s, t, from.Add(-1), now)
}

// timetable returns the timetable of the flags or the schedule, the present time, and the time from
// which firings are printed.
func (c scheduleNextCommand) timetable(ctx context.Context) (t timetable, now, from time.Time, err error) {
	if !c.given() {
		return c.timetableOf(ctx)
	}
	if c.Schedule != "" {
		return t, now, from, misused(errors.New("give the name of a schedule or an expression, not both"), "")
	}
	now = time.Now()
	w, err := c.read(func() time.Time { return now }, true, true)
	if err != nil {
		return t, now, from, err
	}
	zone, err := cron.Zone(w.zone)
	if err != nil {
		return t, now, from, err
	}
	expression, err := cron.Parse(w.expression, zone)
	return timetable{expression: expression, zone: zone, anchor: w.start, start: w.start, end: w.end}, now, now, err
}

// timetableOf returns the timetable of the schedule. If the armed occurrence is known, firings are
// printed from it on.
func (c scheduleNextCommand) timetableOf(ctx context.Context) (t timetable, now, from time.Time, err error) {
	switch {
	case c.Schedule == "":
		return t, now, from, misused(errNoExpression, "give the name of a schedule, an expression, or --at, --every or --cron")
	case c.Zone != "" || c.Start != "" || c.End != "":
		return t, now, from, misused(errors.New("--zone, --start and --end work only with an expression; a schedule has its own"), "")
	}
	e, d, err := c.find(ctx, c.Schedule)
	if err != nil {
		return t, now, from, err
	}
	if d.State == stateDisabled {
		return t, now, from, advise(fmt.Errorf("schedule %s is disabled: it does not fire", c.Schedule), "mayfly schedule next '%s' shows its times", d.ScheduleExpression)
	}
	t, err = d.timetable()
	now = e.now(ctx)
	from = now
	if d.kept != nil && !d.kept.Occurrence.IsZero() {
		from = d.kept.Occurrence
	}
	return t, now, from, err
}

// print prints the firings after an instant.
func (c scheduleNextCommand) print(s streams, t timetable, from, now time.Time) error {
	zone := t.zone.String()
	shown := listing{table: table{heading: []string{zone, "UTC", "In"}}, plural: "further firing", json: c.JSON}
	if zone == zoneDefault {
		shown.heading = shown.heading[1:]
	}
	for range c.Count {
		at, ok := t.after(from)
		if !ok {
			break
		}
		from = at
		in, local := at.Sub(now), at.In(t.zone)
		line := struct {
			At    wireTime `json:"at"`
			Local string   `json:"local"`
			InMS  int64    `json:"in_ms"`
		}{wireTime(at), when.Wall(local) + local.Format("Z07:00"), in.Milliseconds()}
		row := []string{local.Format("Mon ") + strings.Replace(when.Wall(local), "T", " ", 1) + local.Format(" MST"), at.Format("Mon ") + when.UTC(at), when.Until(in)}
		if zone == zoneDefault {
			row = row[1:]
		}
		if err := shown.show(s, line, row...); err != nil {
			return err
		}
	}
	return shown.end(s)
}
