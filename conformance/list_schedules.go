package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

var listSchedulesChecks = []check{
	{"Summaries", listSchedulesSummaries},
	{"Pages", listSchedulesPages},
	{"Filters", listSchedulesFilters},
	{"AllGroups", listSchedulesAllGroups},
	{"Refused", listSchedulesRefused},
}

func listSchedulesSummaries(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	arn := g.create(t, g.usual("a"))
	out, err := e.Scheduler.ListSchedules(t.Context(), &scheduler.ListSchedulesInput{GroupName: &g.name})
	if err != nil || len(out.Schedules) != 1 || out.NextToken != nil {
		t.Fatalf("got %+v, %v", out, err)
	}
	s := out.Schedules[0]
	same(t, "summary", []string{*s.Arn, *s.Name, *s.GroupName, string(s.State), *s.Target.Arn}, []string{arn, "a", g.name, "ENABLED", putItemARN})
	if s.CreationDate == nil || s.LastModificationDate == nil {
		t.Errorf("created %v, modified %v", s.CreationDate, s.LastModificationDate)
	}
}

// Pages follow each other in the order of the names, and leave nothing out.
func listSchedulesPages(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	var want []string
	for i := range 23 {
		name := fmt.Sprintf("s-%02d", (i*7)%23)
		g.create(t, g.usual(name))
		want = append(want, name)
	}
	slices.Sort(want)
	for _, size := range []int32{1, 5, 23, 100} {
		same(t, fmt.Sprintf("by %d", size), g.names(t, func(in *scheduler.ListSchedulesInput) { in.MaxResults = &size }), want)
	}
	out, err := e.Scheduler.ListSchedules(t.Context(), &scheduler.ListSchedulesInput{GroupName: &g.name, MaxResults: aws.Int32(5)})
	if err != nil || len(out.Schedules) != 5 || out.NextToken == nil {
		t.Errorf("got %+v, %v", out, err)
	}
}

func listSchedulesFilters(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	for _, name := range []string{"a.1", "a.2", "ab", "b"} {
		g.create(t, g.usual(name, func(in *scheduler.CreateScheduleInput) {
			if name == "a.2" {
				in.State = types.ScheduleStateDisabled
			}
		}))
	}
	prefix := func(p string) func(*scheduler.ListSchedulesInput) {
		return func(in *scheduler.ListSchedulesInput) { in.NamePrefix = &p }
	}
	state := func(s types.ScheduleState) func(*scheduler.ListSchedulesInput) {
		return func(in *scheduler.ListSchedulesInput) { in.State = s }
	}
	same(t, "a.", g.names(t, prefix("a.")), []string{"a.1", "a.2"})
	same(t, "c", g.names(t, prefix("c")), []string(nil))
	same(t, "enabled", g.names(t, state("ENABLED")), []string{"a.1", "ab", "b"})
	same(t, "disabled", g.names(t, state("DISABLED"), func(in *scheduler.ListSchedulesInput) { in.MaxResults = aws.Int32(1) }), []string{"a.2"})
	same(t, "both", g.names(t, prefix("a"), state("ENABLED")), []string{"a.1", "ab"})
}

// A list without a group has the schedules of all groups.
func listSchedulesAllGroups(t *testing.T, e *Endpoint) {
	g, h := newScheduleGroup(t, e), newScheduleGroup(t, e)
	name := scheduleName(t)
	g.create(t, g.usual(name))
	h.create(t, h.usual(name))
	found := map[string]bool{}
	in := &scheduler.ListSchedulesInput{NamePrefix: &name, MaxResults: aws.Int32(1)}
	for {
		out, err := e.Scheduler.ListSchedules(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Schedules {
			found[*s.GroupName] = true
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	if len(found) != 2 || !found[g.name] || !found[h.name] {
		t.Errorf("found in %v", found)
	}
}

func listSchedulesRefused(t *testing.T, e *Endpoint) {
	list := func(change func(*scheduler.ListSchedulesInput)) error {
		in := &scheduler.ListSchedulesInput{}
		change(in)
		_, err := e.Scheduler.ListSchedules(t.Context(), in)
		return err
	}
	unknown := scheduleName(t)
	wantError(t, list(func(in *scheduler.ListSchedulesInput) { in.GroupName = &unknown }), notFound, "Schedule group "+unknown+" does not exist.")
	wantError(t, list(func(in *scheduler.ListSchedulesInput) { in.MaxResults = aws.Int32(101) }), validation,
		"1 validation error detected: Value '101' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 100")
	wantError(t, list(func(in *scheduler.ListSchedulesInput) { in.MaxResults = aws.Int32(0) }), validation,
		"1 validation error detected: Value '0' at 'maxResults' failed to satisfy constraint: Member must have value greater than or equal to 1")
	wantError(t, list(func(in *scheduler.ListSchedulesInput) { in.State = "GONE" }), validation, "")
	wantError(t, list(func(in *scheduler.ListSchedulesInput) { in.NextToken = aws.String("nonsense") }), validation, "")
	wantError(t, list(func(in *scheduler.ListSchedulesInput) { in.NamePrefix = aws.String("a b") }), validation, "")
}
