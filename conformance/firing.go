package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// firingChecks move the clock. A firing puts an item into a table on the same endpoint, through the
// universal target for DynamoDB's PutItem. So the suite sees firings of any endpoint. A firing may
// be up to a minute late.
var firingChecks = []check{
	{"At", firingAt},
	{"Rate", firingRate},
	{"Cron", firingCron},
	{"TimeZones", firingTimeZones},
	{"EndDate", firingEndDate},
	{"Disabled", firingDisabled},
	{"Deleted", firingDeleted},
	{"Updated", firingUpdated},
	{"DeleteAfterCompletion", firingDeleteAfterCompletion},
	{"ContextAttributes", firingContextAttributes},
	{"FlexibleWindow", firingFlexibleWindow},
	{"GroupDeleted", firingGroupDeleted},
	{"ManyAtOnce", firingManyAtOnce},
}

// precision is the lateness that a firing may have.
const precision = time.Minute

// fireTable is a table into which schedules put an item for each firing.
type fireTable struct {
	*table
	group *scheduleGroup
}

func newFireTable(t *testing.T, e *Endpoint) *fireTable {
	return &fireTable{newTable(t, e, "pk:S"), newScheduleGroup(t, e)}
}

// schedule makes a schedule whose firings become items: one for each instant that it fires for.
func (f *fireTable) schedule(t *testing.T, name, expression string, change ...func(*scheduler.CreateScheduleInput)) {
	t.Helper()
	f.group.create(t, f.group.usual(name, append([]func(*scheduler.CreateScheduleInput){f.puts(name, expression)}, change...)...))
}

// puts returns a change that turns a schedule's firings into items.
func (f *fireTable) puts(name, expression string) func(*scheduler.CreateScheduleInput) {
	return func(in *scheduler.CreateScheduleInput) {
		in.ScheduleExpression = &expression
		in.Target.Input = aws.String(`{"TableName":"` + f.name + `","Item":{"pk":{"S":"` + name + ` <aws.scheduler.scheduled-time>"},` +
			`"arn":{"S":"<aws.scheduler.schedule-arn>"},"id":{"S":"<aws.scheduler.execution-id>"},"attempt":{"S":"<aws.scheduler.attempt-number>"}}}`)
	}
}

// fired returns the firings so far, sorted, each as the schedule's name, a blank and the instant
// that it fired for, in the format of stamp.
func (f *fireTable) fired(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, it := range f.scanAll(t, "") {
		all = append(all, it["pk"].(*types.AttributeValueMemberS).Value)
	}
	slices.Sort(all)
	return all
}

// wantFired waits until as many firings are there as are wanted, and compares them.
func (f *fireTable) wantFired(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.Now().Add(callTimeout)
	got := f.fired(t)
	for len(got) < len(want) && time.Now().Before(deadline) {
		time.Sleep(pollEvery)
		got = f.fired(t)
	}
	same(t, "fired", got, want)
}

// to advances the clock to an instant. A clock that runs goes on from there.
func (f *fireTable) to(t *testing.T, instant time.Time) {
	t.Helper()
	if by := instant.Sub(f.now()); by > 0 {
		f.Advance(by)
	}
}

// stamp returns an instant in the format of scheduled-time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// nextHour returns a full hour that is at least ten minutes ahead.
func (f *fireTable) nextHour() time.Time {
	return f.now().UTC().Add(10 * time.Minute).Truncate(time.Hour).Add(time.Hour)
}

// A one-time schedule fires once, not before its instant.
func firingAt(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour().Add(17 * time.Second)
	f.schedule(t, "a", "at("+at(due)+")")
	f.to(t, due.Add(-time.Minute))
	f.wantFired(t)
	f.to(t, due.Add(precision))
	f.wantFired(t, "a "+stamp(due))
	f.Advance(48 * time.Hour)
	f.wantFired(t, "a "+stamp(due))
	if s := f.group.get(t, "a"); s == nil || s.State != schedulertypes.ScheduleStateEnabled {
		t.Errorf("the schedule is %+v", s)
	}
}

// A rate counts from the start date.
func firingRate(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	start := f.nextHour().Add(7 * time.Second)
	f.schedule(t, "a", "rate(5 minutes)", func(in *scheduler.CreateScheduleInput) { in.StartDate = &start })
	f.to(t, start.Add(-time.Minute))
	f.wantFired(t)
	f.to(t, start.Add(22*time.Minute))
	f.wantFired(t, f.firings("a", start, 5*time.Minute, 5)...)
}

// firings returns the items of a schedule that fires at equal intervals.
func (f *fireTable) firings(name string, first time.Time, every time.Duration, n int) (all []string) {
	for i := range n {
		all = append(all, name+" "+stamp(first.Add(time.Duration(i)*every)))
	}
	return all
}

func firingCron(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	hour := f.nextHour()
	f.schedule(t, "a", "cron(0/20 * * * ? *)", func(in *scheduler.CreateScheduleInput) { in.StartDate = &hour })
	f.to(t, hour.Add(2*time.Hour+precision))
	f.wantFired(t, f.firings("a", hour, 20*time.Minute, 7)...)
}

// The times of an expression are on the wall clock of its time zone.
func firingTimeZones(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	hour := f.nextHour()
	zone := time.FixedZone("", 5*3600+30*60) // Kolkata has had no other time since 1945
	f.schedule(t, "a", "at("+hour.In(zone).Format("2006-01-02T15:04:05")+")", func(in *scheduler.CreateScheduleInput) {
		in.ScheduleExpressionTimezone = aws.String("Asia/Kolkata")
	})
	f.schedule(t, "c", "cron("+hour.In(zone).Format("4 15 2 1 ? 2006")+")", func(in *scheduler.CreateScheduleInput) {
		in.ScheduleExpressionTimezone = aws.String("Asia/Kolkata")
	})
	f.to(t, hour.Add(precision))
	f.wantFired(t, "a "+stamp(hour), "c "+stamp(hour))
}

// Nothing fires after the end date.
func firingEndDate(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	start := f.nextHour()
	f.schedule(t, "a", "rate(10 minutes)", func(in *scheduler.CreateScheduleInput) {
		in.StartDate, in.EndDate = &start, aws.Time(start.Add(25*time.Minute))
	})
	f.to(t, start.Add(3*time.Hour))
	f.wantFired(t, f.firings("a", start, 10*time.Minute, 3)...)
}

// A disabled schedule does not fire, and does not make up for missed firings.
func firingDisabled(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	start := f.nextHour()
	f.schedule(t, "a", "rate(10 minutes)", func(in *scheduler.CreateScheduleInput) {
		in.StartDate, in.State = &start, schedulertypes.ScheduleStateDisabled
	})
	f.to(t, start.Add(25*time.Minute))
	f.wantFired(t)
	in := update(f.group.usual("a", f.puts("a", "rate(10 minutes)")))
	in.StartDate = &start
	if _, err := e.Scheduler.UpdateSchedule(t.Context(), in); err == nil {
		f.to(t, start.Add(41*time.Minute+precision))
		f.wantFired(t, "a "+stamp(start.Add(30*time.Minute)), "a "+stamp(start.Add(40*time.Minute)))
		return
	}
	// A start date that is long past is refused on some endpoints; enabled without one, it counts
	// from now.
	in.StartDate = nil
	before := f.now()
	if _, err := e.Scheduler.UpdateSchedule(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	f.Advance(20*time.Minute + precision)
	for _, one := range f.fired(t) {
		at, err := time.Parse("a "+time.RFC3339, one) // a fraction may follow the seconds
		if err != nil || at.Before(before.Truncate(time.Millisecond)) {
			t.Errorf("a firing from before %s was made up for: %s, %v", before, one, err)
		}
	}
}

// A schedule that was deleted does not fire.
func firingDeleted(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	f.schedule(t, "a", "at("+at(due)+")")
	f.schedule(t, "b", "at("+at(due)+")")
	f.group.delete(t, "a")
	f.to(t, due.Add(precision))
	f.wantFired(t, "b "+stamp(due))
}

// A changed schedule fires by its new settings only.
func firingUpdated(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	f.schedule(t, "a", "at("+at(due)+")")
	f.schedule(t, "b", "at("+at(due.Add(time.Hour))+")")
	for name, instant := range map[string]time.Time{"a": due.Add(30 * time.Minute), "b": due.Add(15 * time.Minute)} {
		if _, err := e.Scheduler.UpdateSchedule(t.Context(), update(f.group.usual(name, f.puts(name, "at("+at(instant)+")")))); err != nil {
			t.Fatal(err)
		}
	}
	f.to(t, due.Add(10*time.Minute))
	f.wantFired(t)
	f.to(t, due.Add(3*time.Hour))
	f.wantFired(t, "a "+stamp(due.Add(30*time.Minute)), "b "+stamp(due.Add(15*time.Minute)))
}

// A schedule that asks for it is deleted after its last firing.
func firingDeleteAfterCompletion(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	remove := func(in *scheduler.CreateScheduleInput) {
		in.ActionAfterCompletion = schedulertypes.ActionAfterCompletionDelete
	}
	f.schedule(t, "a", "at("+at(due)+")", remove)
	f.schedule(t, "r", "rate(10 minutes)", remove, func(in *scheduler.CreateScheduleInput) {
		in.StartDate, in.EndDate = &due, aws.Time(due.Add(15*time.Minute))
	})
	f.schedule(t, "stays", "at("+at(due)+")")
	f.to(t, due.Add(-time.Minute))
	same(t, "schedules before", f.group.names(t), []string{"a", "r", "stays"})
	f.to(t, due.Add(time.Hour))
	f.wantFired(t, "a "+stamp(due), "r "+stamp(due), "r "+stamp(due.Add(10*time.Minute)), "stays "+stamp(due))
	f.await(t, "deletion after completion", func() bool { return len(f.group.names(t)) == 1 })
	same(t, "schedules after", f.group.names(t), []string{"stays"})
}

// The context attributes in an input are replaced.
func firingContextAttributes(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	f.schedule(t, "a", "at("+at(due)+")")
	arn := aws.ToString(f.group.get(t, "a").Arn)
	f.to(t, due.Add(precision))
	f.wantFired(t, "a "+stamp(due))
	it := f.get(t, item("pk", "a "+stamp(due)))
	text := func(name string) string { return it[name].(*types.AttributeValueMemberS).Value }
	same(t, "schedule-arn, attempt-number", []string{text("arn"), text("attempt")}, []string{arn, "1"})
	if id := text("id"); id == "" || strings.Contains(id, "<") {
		t.Errorf("execution-id %q", id)
	}
}

// With a flexible window a firing comes within it, and its scheduled time is the expression's.
func firingFlexibleWindow(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		f.schedule(t, name, "at("+at(due)+")", func(in *scheduler.CreateScheduleInput) {
			in.FlexibleTimeWindow = &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeFlexible, MaximumWindowInMinutes: aws.Int32(30)}
		})
		want = append(want, name+" "+stamp(due))
	}
	f.to(t, due.Add(-time.Minute))
	f.wantFired(t)
	f.to(t, due.Add(30*time.Minute+precision))
	f.wantFired(t, want...)
}

// The schedules of a deleted group fire no more.
func firingGroupDeleted(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	f.schedule(t, "a", "at("+at(due)+")")
	if _, err := e.Scheduler.DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: &f.group.name}); err != nil {
		t.Fatal(err)
	}
	f.await(t, "deletion of the group", func() bool {
		_, err := f.group.describe(t)
		return err != nil
	})
	f.to(t, due.Add(time.Hour))
	f.wantFired(t)
}

// Many schedules that are due at one instant all fire, each once.
func firingManyAtOnce(t *testing.T, e *Endpoint) {
	f := newFireTable(t, e)
	due := f.nextHour()
	var want []string
	for i := range 120 {
		name := "s" + strings.Repeat("x", i/26) + string(rune('a'+i%26))
		f.schedule(t, name, "at("+at(due)+")")
		want = append(want, name+" "+stamp(due))
	}
	slices.Sort(want)
	f.to(t, due.Add(precision))
	f.wantFired(t, want...)
}
