package program

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/mayflydb/mayfly/internal/when"
	schedules "github.com/mayflydb/mayfly/internal/work/scheduler"
)

type scheduleListCommand struct {
	GroupName string `name:"group" help:"Only this schedule group." placeholder:"NAME"`
	Prefix    string `help:"Only names that begin with this." placeholder:"TEXT"`
	State     string `help:"Only ENABLED or DISABLED schedules." enum:"ENABLED,DISABLED," default:"" placeholder:"STATE"`
	Limit     int    `help:"Most rows to show; 0 shows all." default:"1000"`
	JSON      bool   `name:"json" help:"Print JSON lines with all fields."`
	endpointFlags
}

func (scheduleListCommand) Help() string {
	return `Examples:

    mayfly schedule list
    mayfly schedule list --group billing --state ENABLED --prefix invoice-
    mayfly schedule list --json --limit 0`
}

// Run lists schedules.
func (c scheduleListCommand) Run(ctx context.Context, s streams) error {
	if c.Limit < 0 {
		return misused(fmt.Errorf("--limit %d is negative", c.Limit), "use 0 to show all")
	}
	e, err := c.connect(ctx, serviceScheduler)
	if err != nil {
		return err
	}
	now := e.now(ctx)
	shown := listing{
		table: table{heading: []string{"Group", "Name", "State", "Expression", "Next firing (UTC)", "In"}}, plural: "schedules",
		json: c.JSON, limit: c.Limit, hint: "--limit 0 shows all",
	}
	err = e.eachPage(ctx, schedulesAsked{group: c.GroupName, prefix: c.Prefix, state: c.State}, func(page []scheduleName) error {
		for _, d := range e.describe(ctx, page[:shown.fit(len(page))], now) {
			if d.err != nil {
				return d.err
			}
			if d.document == nil { // deleted meanwhile
				continue
			}
			if err := shown.show(s, d.document, scheduleRow(d.document, now)...); err != nil {
				return err
			}
		}
		if shown.more {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return err
	}
	return shown.end(s)
}

func scheduleRow(d *scheduleDocument, now time.Time) []string {
	at, in := "-", ""
	if next := d.NextFiring.time(); !next.IsZero() {
		at, in = when.UTC(next), when.Until(next.Sub(now))
	}
	return []string{d.GroupName, d.Name, d.State, expressionText(d), at, in}
}

// expressionText returns the expression, with the zone if it matters.
func expressionText(d *scheduleDocument) string {
	zone := cmp.Or(aws.ToString(d.ScheduleExpressionTimezone), zoneDefault)
	if zone == zoneDefault || strings.HasPrefix(d.ScheduleExpression, "rate(") || strings.HasPrefix(d.ScheduleExpression, "every(") {
		return d.ScheduleExpression
	}
	return d.ScheduleExpression + " " + zone
}

// scheduleName identifies a schedule.
type scheduleName struct{ group, name string }

// schedulesAsked selects schedules; empty fields select all.
type schedulesAsked struct{ group, prefix, state string }

// errEnough ends a listing early.
var errEnough = fmt.Errorf("enough")

// eachPage calls do with the names of schedules, a hundred at a time.
func (e *endpoint) eachPage(ctx context.Context, asked schedulesAsked, do func([]scheduleName) error) error {
	in := &scheduler.ListSchedulesInput{MaxResults: aws.Int32(100), State: types.ScheduleState(asked.state)}
	if asked.group != "" {
		in.GroupName = &asked.group
	}
	if asked.prefix != "" {
		in.NamePrefix = &asked.prefix
	}
	for pages := scheduler.NewListSchedulesPaginator(e.Scheduler(), in); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return e.adviseSchedule(err, asked.group)
		}
		names := make([]scheduleName, len(out.Schedules))
		for i, found := range out.Schedules {
			names[i] = scheduleName{aws.ToString(found.GroupName), aws.ToString(found.Name)}
		}
		if err := do(names); err == errEnough {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// described is a schedule, or the error from reading it. Both are nil if the schedule does not
// exist.
type described struct {
	document *scheduleDocument
	err      error
}

// describe returns schedules with the times of their next firings.
func (e *endpoint) describe(ctx context.Context, names []scheduleName, now time.Time) []described {
	client := e.Scheduler()
	all := inParallel(parallelMax, names, func(n scheduleName) described {
		d, err := e.getSchedule(ctx, client, n.group, n.name)
		if answered(err, "ResourceNotFoundException") {
			return described{}
		}
		if err != nil {
			return described{err: e.advise(err)}
		}
		return described{document: d}
	})
	if e.isMayfly(ctx) {
		e.addKept(ctx, all)
	}
	for _, d := range all {
		if d.document != nil {
			d.document.NextFiring = wireTimeOf(d.document.next(now))
		}
	}
	return all
}

// addKept adds data from mayfly's tables. They may be unreadable, because another endpoint serves
// the schedules or the credentials do not suffice. Then the API's data has to do.
func (e *endpoint) addKept(ctx context.Context, all []described) {
	names := map[string][]string{} // by group
	for _, d := range all {
		if d.document != nil {
			names[d.document.GroupName] = append(names[d.document.GroupName], d.document.Name)
		}
	}
	db := e.DynamoDB()
	for group, members := range names {
		kept, err := schedules.ReadStates(ctx, db, group, members...)
		if err != nil {
			continue
		}
		for _, d := range all {
			if d.document == nil || d.document.GroupName != group {
				continue
			}
			if k, known := kept[d.document.Name]; known {
				d.document.kept, d.document.CatchUp = &k, string(k.CatchUp)
			}
		}
	}
}
