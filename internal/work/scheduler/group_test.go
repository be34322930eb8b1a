package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/work/items"
)

// await waits until a condition holds.
func (w *world) await(condition string, met func() bool) {
	w.Helper()
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if met() {
			return
		}
	}
	w.Fatalf("%s does not happen", condition)
}

// A group can be created, read, listed, and deleted with its schedules. The default group always
// exists.
func TestGroup(t *testing.T) {
	w := newWorld(t, "", nil)
	described := func(name, state, created, modified string) string {
		return `{"Arn":"` + groupARN + name + `","Name":"` + name + `","State":"` + state + `","CreationDate":` + created + `,"LastModificationDate":` + modified + `}`
	}
	if got, want := w.must("GET", "/schedule-groups/default", ""), described("default", "ACTIVE", "1893456000", "1893456000"); got != want {
		t.Errorf("the default group is %s", got)
	}
	w.advance(time.Second)
	if got, want := w.must("POST", "/schedule-groups/g", ""), `{"ScheduleGroupArn":"`+groupARN+`g"}`; got != want {
		t.Errorf("created: %s", got)
	}
	w.refused("ConflictException: Schedule group g already exists.", "POST", "/schedule-groups/g", "")
	w.refused("ConflictException: Schedule group default already exists.", "POST", "/schedule-groups/default", "")
	if got, want := w.must("GET", "/schedule-groups/g", ""), described("g", "ACTIVE", "1893456001", "1893456001"); got != want {
		t.Errorf("the group is %s", got)
	}
	list := `{"ScheduleGroups":[` + described("default", "ACTIVE", "1893456000", "1893456000") + `,` + described("g", "ACTIVE", "1893456001", "1893456001") + `]}`
	if got := w.must("GET", "/schedule-groups", ""); got != list {
		t.Errorf("listed: %s", got)
	}
	if got := w.must("GET", "/schedule-groups?NamePrefix=g", ""); strings.Contains(got, "default") || !strings.Contains(got, `"g"`) {
		t.Errorf("listed with a prefix: %s", got)
	}
	w.create("s", "rate(1 minute)", `"GroupName":"g"`)
	w.create("s", "rate(1 minute)")
	w.advance(time.Minute)
	w.want("s@01-01T00:00:01 s@01-01T00:00:01 s@01-01T00:01:01 s@01-01T00:01:01")

	w.must("DELETE", "/schedule-groups/g", "")
	w.await("the deletion", func() bool {
		_, err := w.call("GET", "/schedule-groups/g", "")
		return err != nil
	})
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "GET", "/schedule-groups/g", "")
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "DELETE", "/schedule-groups/g", "")
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "POST", "/schedules/s", body("rate(1 hour)", `"GroupName":"g"`))
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "GET", "/schedules/s?groupName=g", "")
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "DELETE", "/schedules/s?groupName=g", "")
	w.refused("ValidationException: The schedule group default cannot be deleted.", "DELETE", "/schedule-groups/default", "")
	w.advance(time.Minute)
	w.want("s@01-01T00:02:01")

	w.must("POST", "/schedule-groups/g", "") // a new group of that name is empty
	if got := w.must("GET", "/schedules?ScheduleGroup=g", ""); got != `{"Schedules":[]}` {
		t.Errorf("the new group has %s", got)
	}
	w.create("n", "rate(1 minute)", `"GroupName":"g"`)
	w.advance(time.Minute)
	w.want("n@01-01T00:02:01 n@01-01T00:03:01 s@01-01T00:03:01")
}

// In a group that is being deleted, schedules cannot be created, and it cannot be deleted again.
// After a restart the deletion continues.
func TestGroupDeleting(t *testing.T) {
	w := newWorld(t, t.TempDir(), nil)
	w.must("POST", "/schedule-groups/g", "")
	w.create("s", "rate(1 minute)", `"GroupName":"g"`)
	g, err := w.readGroupNamed(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	g.state = stateDeleting // as if the process had died here
	if err := w.transactOne(items.Put(groupsTable, g.item(), nil)); err != nil {
		t.Fatal(err)
	}
	const deleting = "ConflictException: Schedule group g is being deleted."
	w.refused(deleting, "DELETE", "/schedule-groups/g", "")
	w.refused(deleting, "POST", "/schedule-groups/g", "")
	w.refused(deleting, "POST", "/tags/"+groupARN+"g", `{"Tags":[]}`)
	if got := w.must("GET", "/schedule-groups/g", ""); !strings.Contains(got, `"State":"DELETING"`) {
		t.Errorf("the group is %s", got)
	}
	w.Scheduler.mu.Lock()
	w.Scheduler.mu.groups["g"] = g
	w.Scheduler.mu.Unlock()
	w.refused(deleting, "POST", "/schedules/t", body("rate(1 hour)", `"GroupName":"g"`))
	w.restart(0)
	w.await("the deletion", func() bool {
		_, err := w.call("GET", "/schedule-groups/g", "")
		return err != nil
	})
}

// transactOne writes one action, as another process might.
func (w *world) transactOne(a action) error {
	c, err := w.transact(w.Context(), []action{a})
	if c != nil {
		return errors.New("refused")
	}
	return err
}

// A repeated request with its token has one effect on a group.
func TestGroupToken(t *testing.T) {
	w := newWorld(t, "", nil)
	w.must("POST", "/schedule-groups/g", `{"ClientToken":"c","Tags":[{"Key":"a","Value":"1"}]}`)
	w.must("POST", "/schedule-groups/g", `{"ClientToken":"c","Tags":[{"Key":"a","Value":"1"}]}`)
	w.refused("ConflictException: The ClientToken was used before with other parameters.", "POST", "/schedule-groups/g", `{"ClientToken":"c"}`)
	w.must("DELETE", "/schedule-groups/g?clientToken=d", "")
	w.must("DELETE", "/schedule-groups/g?clientToken=d", "")
}

// The number of groups is limited.
func TestGroupsMax(t *testing.T) {
	w := newWorld(t, "", func(w *world) { w.options.GroupsMax = 2 })
	w.must("POST", "/schedule-groups/g", "")
	w.must("POST", "/schedule-groups/h", "")
	w.refused("ServiceQuotaExceededException: There are 2 schedule groups, and there may be 2 at most.", "POST", "/schedule-groups/i", "")
	w.refused("ConflictException: Schedule group g already exists.", "POST", "/schedule-groups/g", "")
}

// Groups are listed in pages.
func TestListGroups(t *testing.T) {
	w := newWorld(t, "", nil)
	want := "default"
	for i := range 9 {
		name := fmt.Sprintf("g%d", i)
		want += " " + name
		w.must("POST", "/schedule-groups/"+name, "")
	}
	for size := 1; size <= 11; size++ {
		var names []string
		token := ""
		for {
			out, err := w.call("GET", fmt.Sprintf("/schedule-groups?MaxResults=%d%s", size, token), "")
			if err != nil {
				t.Fatal(err)
			}
			page := out.(*ListScheduleGroupsOutput)
			for _, g := range page.ScheduleGroups {
				names = append(names, g.Name)
			}
			if page.NextToken == "" {
				break
			}
			token = "&NextToken=" + page.NextToken
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%d a page: %s", size, got)
		}
	}
}

// Groups have tags, but not the default group.
func TestTags(t *testing.T) {
	w := newWorld(t, "", nil)
	arn := "/tags/" + groupARN
	w.must("POST", "/schedule-groups/g", `{"Tags":[{"Key":"b","Value":"2"},{"Key":"a","Value":"1"}]}`)
	tags := func(want string) {
		t.Helper()
		if got := w.must("GET", arn+"g", ""); got != `{"Tags":[`+want+`]}` {
			t.Errorf("the tags are %s", got)
		}
	}
	tags(`{"Key":"a","Value":"1"},{"Key":"b","Value":"2"}`)
	w.must("POST", arn+"g", `{"Tags":[{"Key":"a","Value":"3"},{"Key":"mayfly:catch-up","Value":"all"}]}`)
	tags(`{"Key":"a","Value":"3"},{"Key":"b","Value":"2"},{"Key":"mayfly:catch-up","Value":"all"}`)
	w.must("DELETE", arn+"g?TagKeys=a&TagKeys=c&TagKeys=mayfly:catch-up", "")
	tags(`{"Key":"b","Value":"2"}`)
	if got := w.must("GET", arn+"default", ""); got != `{"Tags":[]}` {
		t.Errorf("the default group's tags are %s", got)
	}
	invalid := func(text string) string { return "ValidationException: " + text }
	const failed = "1 validation error detected: Value %s at '%s' failed to satisfy constraint: Member must %s"
	w.refused(invalid("The schedule group default cannot have tags."), "POST", arn+"default", `{"Tags":[{"Key":"a","Value":"1"}]}`)
	w.refused(invalid("The schedule group default cannot have tags."), "DELETE", arn+"default?TagKeys=a", "")
	w.refused("ResourceNotFoundException: Schedule group h does not exist.", "GET", arn+"h", "")
	w.refused("ResourceNotFoundException: Schedule group h does not exist.", "POST", arn+"h", `{"Tags":[]}`)
	w.refused("ResourceNotFoundException: Schedule group h does not exist.", "DELETE", arn+"h?TagKeys=a", "")
	pattern := `satisfy regular expression pattern: arn:aws(-[a-z]+)?:scheduler:[a-z0-9\-]+:\d{12}:schedule-group\/[0-9a-zA-Z-_.]+`
	w.refused(invalid(fmt.Sprintf(failed, "'"+scheduleARN+"default/s'", "resourceArn", pattern)), "GET", "/tags/"+scheduleARN+"default/s", "")
	w.refused(invalid(fmt.Sprintf(failed, "null", "tags", "not be null")), "POST", arn+"g", `{}`)
	w.refused(invalid(fmt.Sprintf(failed, "null", "tagKeys", "not be null")), "DELETE", arn+"g", "")
	w.refused(invalid(fmt.Sprintf(failed, "''", "tags.1.member.value", "have length greater than or equal to 1")), "POST", arn+"g", `{"Tags":[{"Key":"a","Value":""}]}`)
	w.refused(invalid("Tag keys that begin with aws: are reserved: AWS:x"), "POST", arn+"g", `{"Tags":[{"Key":"AWS:x","Value":"1"}]}`)
	w.refused(invalid("The tag key is there twice: a"), "POST", arn+"g", `{"Tags":[{"Key":"a","Value":"1"},{"Key":"a","Value":"2"}]}`)
	w.refused(invalid("The value of the tag mayfly:catch-up is all, last or skip."), "POST", arn+"g", `{"Tags":[{"Key":"mayfly:catch-up","Value":"some"}]}`)
	w.refused(invalid("The tag key with the prefix mayfly: is mayfly:catch-up, and not: mayfly:catchup"), "POST", arn+"g", `{"Tags":[{"Key":"mayfly:catchup","Value":"all"}]}`)
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf(`{"Key":"k%d","Value":"v"}`, i))
	}
	w.refused(invalid(msgTooManyTags), "POST", arn+"g", `{"Tags":[`+strings.Join(many, ",")+`]}`)
	w.must("POST", arn+"g", `{"Tags":[`+strings.Join(many[:49], ",")+`]}`)
	w.refused(invalid(msgTooManyTags), "POST", "/schedule-groups/i", `{"Tags":[`+strings.Join(append(many, `{"Key":"k50","Value":"v"}`), ",")+`]}`)
}
