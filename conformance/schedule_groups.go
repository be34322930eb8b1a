package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

var scheduleGroupChecks = []check{
	{"CreateAndGet", groupCreateAndGet},
	{"Default", groupDefault},
	{"List", groupList},
	{"Delete", groupDelete},
	{"ClientToken", groupClientToken},
	{"Refused", groupRefused},
}

var scheduleTagChecks = []check{
	{"AddChangeRemove", scheduleTagAddChangeRemove},
	{"Refused", scheduleTagRefused},
	{"AtMostFifty", scheduleTagAtMostFifty},
}

func (g *scheduleGroup) describe(t *testing.T) (*scheduler.GetScheduleGroupOutput, error) {
	t.Helper()
	return g.Scheduler.GetScheduleGroup(t.Context(), &scheduler.GetScheduleGroupInput{Name: &g.name})
}

func groupCreateAndGet(t *testing.T, e *Endpoint) {
	before := e.now().Add(-time.Second)
	g := newScheduleGroup(t, e)
	if !strings.HasPrefix(g.arn, "arn:aws:scheduler:") || !strings.HasSuffix(g.arn, ":schedule-group/"+g.name) {
		t.Errorf("ARN %s", g.arn)
	}
	out, err := g.describe(t)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "group", []string{*out.Arn, *out.Name, string(out.State)}, []string{g.arn, g.name, "ACTIVE"})
	if out.CreationDate == nil || out.CreationDate.Before(before) || out.LastModificationDate == nil {
		t.Errorf("created %v, modified %v", out.CreationDate, out.LastModificationDate)
	}
	_, err = e.Scheduler.CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: &g.name})
	wantError(t, err, conflict, "")
}

// The group "default" always exists, and cannot be deleted.
func groupDefault(t *testing.T, e *Endpoint) {
	g := scheduleGroup{Endpoint: e, name: "default"}
	out, err := g.describe(t)
	if err != nil || *out.Name != "default" || out.State != types.ScheduleGroupStateActive {
		t.Fatalf("got %+v, %v", out, err)
	}
	_, err = e.Scheduler.DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: aws.String("default")})
	wantError(t, err, validation, "")
	_, err = e.Scheduler.CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: aws.String("default")})
	wantError(t, err, conflict, "")
	if _, err = g.describe(t); err != nil {
		t.Error(err)
	}
}

func groupList(t *testing.T, e *Endpoint) {
	var want []string
	for range 3 {
		want = append(want, newScheduleGroup(t, e).name)
	}
	slices.Sort(want)
	prefix := want[0][:strings.LastIndex(want[0], ".")+1]
	for _, size := range []int32{1, 2, 100} {
		var got []string
		in := &scheduler.ListScheduleGroupsInput{NamePrefix: &prefix, MaxResults: &size}
		for {
			out, err := e.Scheduler.ListScheduleGroups(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range out.ScheduleGroups {
				if g.Arn == nil || g.State != types.ScheduleGroupStateActive || g.CreationDate == nil {
					t.Errorf("summary %+v", g)
				}
				if slices.Contains(want, *g.Name) {
					got = append(got, *g.Name)
				}
			}
			if in.NextToken = out.NextToken; in.NextToken == nil {
				break
			}
		}
		same(t, "groups", got, want)
	}
	out, err := e.Scheduler.ListScheduleGroups(t.Context(), &scheduler.ListScheduleGroupsInput{NamePrefix: aws.String("default")})
	if err != nil || len(out.ScheduleGroups) == 0 || *out.ScheduleGroups[0].Name != "default" {
		t.Errorf("default: %+v, %v", out, err)
	}
	_, err = e.Scheduler.ListScheduleGroups(t.Context(), &scheduler.ListScheduleGroupsInput{MaxResults: aws.Int32(101)})
	wantError(t, err, validation, "1 validation error detected: Value '101' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 100")
}

// Deleting a group deletes its schedules, which takes a moment. Then its name is free.
func groupDelete(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	g.create(t, g.usual("a"))
	if _, err := e.Scheduler.DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: &g.name}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(activeTimeout)
	for {
		out, err := g.describe(t)
		if err != nil {
			wantError(t, err, notFound, "Schedule group "+g.name+" does not exist.")
			break
		}
		if out.State != types.ScheduleGroupStateDeleting {
			t.Fatalf("the group is %s", out.State)
		}
		if time.Now().After(deadline) {
			t.Fatal("the group does not go")
		}
		time.Sleep(pollEvery)
	}
	_, err := e.Scheduler.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: aws.String("a"), GroupName: &g.name})
	wantError(t, err, notFound, "")
	if _, err := e.Scheduler.CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: &g.name}); err != nil {
		t.Fatal(err)
	}
	same(t, "schedules of the new group", g.names(t), []string(nil))
}

func groupClientToken(t *testing.T, e *Endpoint) {
	g := scheduleGroup{Endpoint: e, name: scheduleName(t)}
	in := &scheduler.CreateScheduleGroupInput{Name: &g.name, ClientToken: aws.String("t-1")}
	for range 2 {
		if _, err := e.Scheduler.CreateScheduleGroup(t.Context(), in); err != nil {
			t.Error(err)
		}
	}
	in.Tags = []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
	_, err := e.Scheduler.CreateScheduleGroup(t.Context(), in)
	wantError(t, err, conflict, "")
	for range 2 {
		if _, err := e.Scheduler.DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: &g.name, ClientToken: aws.String("t-2")}); err != nil {
			t.Error(err)
		}
	}
}

func groupRefused(t *testing.T, e *Endpoint) {
	_, err := e.Scheduler.CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: aws.String("a b")})
	wantError(t, err, validation, "1 validation error detected: Value 'a b' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: …")
	unknown := scheduleGroup{Endpoint: e, name: scheduleName(t)}
	_, err = unknown.describe(t)
	wantError(t, err, notFound, "Schedule group "+unknown.name+" does not exist.")
	_, err = e.Scheduler.DeleteScheduleGroup(t.Context(), &scheduler.DeleteScheduleGroupInput{Name: &unknown.name})
	wantError(t, err, notFound, "Schedule group "+unknown.name+" does not exist.")
}

// wantTags compares a group's tags, as sorted texts: wantTags(t, "a=1", "b=2").
func (g *scheduleGroup) wantTags(t *testing.T, want ...string) {
	t.Helper()
	out, err := g.Scheduler.ListTagsForResource(t.Context(), &scheduler.ListTagsForResourceInput{ResourceArn: &g.arn})
	if err != nil {
		t.Fatalf("list tags: %v", err)
	}
	var got []string
	for _, tag := range out.Tags {
		got = append(got, *tag.Key+"="+*tag.Value)
	}
	slices.Sort(got)
	same(t, "tags", got, want)
}

func (g *scheduleGroup) tag(t *testing.T, pairs ...string) error {
	in := &scheduler.TagResourceInput{ResourceArn: &g.arn}
	for i := 0; i < len(pairs); i += 2 {
		in.Tags = append(in.Tags, types.Tag{Key: &pairs[i], Value: &pairs[i+1]})
	}
	_, err := g.Scheduler.TagResource(t.Context(), in)
	return err
}

func scheduleTagAddChangeRemove(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e, "a", "1", "b", "2")
	g.wantTags(t, "a=1", "b=2")
	if err := g.tag(t, "b", "3", "c d/é", "x=y&z"); err != nil {
		t.Fatal(err)
	}
	g.wantTags(t, "a=1", "b=3", "c d/é=x=y&z")
	if _, err := e.Scheduler.UntagResource(t.Context(), &scheduler.UntagResourceInput{ResourceArn: &g.arn, TagKeys: []string{"a", "c d/é", "none"}}); err != nil {
		t.Fatal(err)
	}
	g.wantTags(t, "b=3")
}

func scheduleTagRefused(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	wantError(t, g.tag(t, "aws:a", "1"), validation, "")
	wantError(t, g.tag(t, strings.Repeat("k", 129), "1"), validation,
		"1 validation error detected: Value '…' at 'tags.1.member.key' failed to satisfy constraint: Member must have length less than or equal to 128")
	g.wantTags(t)
	unknown := scheduleGroup{Endpoint: e, name: "none", arn: strings.TrimSuffix(g.arn, g.name) + scheduleName(t)}
	wantError(t, unknown.tag(t, "a", "1"), notFound, "")
	_, err := e.Scheduler.ListTagsForResource(t.Context(), &scheduler.ListTagsForResourceInput{ResourceArn: &unknown.arn})
	wantError(t, err, notFound, "")
	// Schedules have no tags.
	unknown.arn = strings.Replace(g.arn, ":schedule-group/", ":schedule/", 1) + "/a"
	wantError(t, unknown.tag(t, "a", "1"), validation, "")
}

func scheduleTagAtMostFifty(t *testing.T, e *Endpoint) {
	g := newScheduleGroup(t, e)
	var pairs []string
	for i := range 50 {
		pairs = append(pairs, "k"+strings.Repeat("x", i), "v")
	}
	if err := g.tag(t, pairs...); err != nil {
		t.Fatal(err)
	}
	wantError(t, g.tag(t, "one-more", "v"), validation, "")
	if err := g.tag(t, "k", "changed"); err != nil {
		t.Error(err)
	}
}
