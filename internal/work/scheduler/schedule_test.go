package scheduler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	scheduleARN = "arn:aws:scheduler:us-east-1:123456789012:schedule/"
	groupARN    = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/"
)

// A schedule can be created, read with its defaults, replaced, listed and deleted.
func TestSchedule(t *testing.T) {
	w := newWorld(t, "", nil)
	w.refused("ResourceNotFoundException: Schedule s does not exist.", "GET", "/schedules/s", "")
	w.refused("ResourceNotFoundException: Schedule s does not exist.", "PUT", "/schedules/s", body("rate(1 hour)"))
	w.refused("ResourceNotFoundException: Schedule s does not exist.", "DELETE", "/schedules/s", "")

	first := body("cron(0 1 * * ? *)", `"Description":"d"`, `"ActionAfterCompletion":"DELETE"`, `"StartDate":1893459600.25`, `"EndDate":2.0E9`, `"State":"ENABLED"`,
		`"ScheduleExpressionTimezone":"Europe/Berlin"`, targetJSON(lambdaARN, `"Input":"{\"a\":\"<b>\"}"`, `"RetryPolicy":{"MaximumRetryAttempts":3}`))
	if got, want := w.must("POST", "/schedules/s", first), `{"ScheduleArn":"`+scheduleARN+`default/s"}`; got != want {
		t.Errorf("created: %s", got)
	}
	w.refused("ConflictException: Schedule s already exists.", "POST", "/schedules/s", first)
	w.advance(time.Minute)
	want := `{"Arn":"` + scheduleARN + `default/s","Name":"s","GroupName":"default","CreationDate":1893456000,"LastModificationDate":1893456000,"Description":"d",` +
		`"ScheduleExpression":"cron(0 1 * * ? *)","ScheduleExpressionTimezone":"Europe/Berlin","StartDate":1893459600.25,"EndDate":2000000000,"State":"ENABLED",` +
		`"ActionAfterCompletion":"DELETE","FlexibleTimeWindow":{"Mode":"OFF"},"Target":{"Arn":"` + lambdaARN + `","RoleArn":"` + roleARN + `","Input":"{\"a\":\"<b>\"}",` +
		`"RetryPolicy":{"MaximumEventAgeInSeconds":86400,"MaximumRetryAttempts":3}}}`
	if got := w.must("GET", "/schedules/s?groupName=default", ""); got != want {
		t.Errorf("read\n got %s\nwant %s", got, want)
	}

	if got := w.must("PUT", "/schedules/s", body("rate(2 hours)", `"State":"DISABLED"`)); got != `{"ScheduleArn":"`+scheduleARN+`default/s"}` {
		t.Errorf("updated: %s", got)
	}
	want = `{"Arn":"` + scheduleARN + `default/s","Name":"s","GroupName":"default","CreationDate":1893456000,"LastModificationDate":1893456060,` +
		`"ScheduleExpression":"rate(2 hours)","ScheduleExpressionTimezone":"UTC","State":"DISABLED","ActionAfterCompletion":"NONE","FlexibleTimeWindow":{"Mode":"OFF"},` +
		`"Target":{"Arn":"` + lambdaARN + `","RoleArn":"` + roleARN + `","RetryPolicy":{"MaximumEventAgeInSeconds":86400,"MaximumRetryAttempts":185}}}`
	if got := w.must("GET", "/schedules/s", ""); got != want {
		t.Errorf("read\n got %s\nwant %s", got, want)
	}
	if got := w.items("mayfly.schedules.default"); got != "s definition" {
		t.Errorf("the table has %s", got)
	}
	list := `{"Schedules":[{"Arn":"` + scheduleARN + `default/s","Name":"s","GroupName":"default","State":"DISABLED","CreationDate":1893456000,` +
		`"LastModificationDate":1893456060,"Target":{"Arn":"` + lambdaARN + `"}}]}`
	if got := w.must("GET", "/schedules", ""); got != list {
		t.Errorf("listed\n got %s\nwant %s", got, list)
	}
	if got := w.must("DELETE", "/schedules/s", ""); got != "{}" {
		t.Errorf("deleted: %s", got)
	}
	w.refused("ResourceNotFoundException: Schedule s does not exist.", "DELETE", "/schedules/s", "")
	if got := w.items("mayfly.schedules.default"); got != "" {
		t.Errorf("the table has %s", got)
	}
	w.advance(48 * time.Hour)
	w.want("")
}

// Each code has the status that the API defines.
func TestStatus(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusBadRequest: invalid(""), http.StatusNotFound: notFound(""), http.StatusConflict: conflict(""), http.StatusPaymentRequired: quota(""),
		http.StatusTooManyRequests: throttled(""),
	} {
		if got := err.(*Error).HTTPStatus(); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// A repeated request with its token has one effect and the same response, even if the schedule is
// deleted. Another request with the token is refused.
func TestClientToken(t *testing.T) {
	w := newWorld(t, "", nil)
	const other = "ConflictException: The ClientToken was used before with other parameters."
	created := body("at(2030-01-01T00:05:00)", `"ClientToken":"c1"`, `"ActionAfterCompletion":"DELETE"`)
	answer := w.must("POST", "/schedules/s", created)
	if again := w.must("POST", "/schedules/s", created); again != answer {
		t.Errorf("again: %s", again)
	}
	w.refused(other, "POST", "/schedules/s", body("at(2030-01-01T00:06:00)", `"ClientToken":"c1"`))
	w.refused("ConflictException: Schedule s already exists.", "POST", "/schedules/s", body("at(2030-01-01T00:05:00)", `"ClientToken":"c2"`, `"ActionAfterCompletion":"DELETE"`))

	updated := body("at(2030-01-01T00:07:00)", `"ClientToken":"u1"`, `"ActionAfterCompletion":"DELETE"`)
	w.must("PUT", "/schedules/s", updated)
	w.must("PUT", "/schedules/s", body("at(2030-01-01T00:08:00)", `"ClientToken":"u2"`, `"ActionAfterCompletion":"DELETE"`))
	w.must("PUT", "/schedules/s", updated) // a late repetition does not undo the second update
	w.must("POST", "/schedules/s", created)
	w.refused(other, "PUT", "/schedules/s", body("at(2030-01-01T00:09:00)", `"ClientToken":"u1"`))
	w.advance(10 * time.Minute)
	w.want("s@01-01T00:08:00")

	w.must("POST", "/schedules/s", created) // the schedule is deleted, but its token is stored
	w.refused(other, "POST", "/schedules/s", body("rate(1 hour)", `"ClientToken":"c1"`))
	w.refused("ResourceNotFoundException: Schedule s does not exist.", "GET", "/schedules/s", "")

	w.create("d", "rate(1 hour)", `"ClientToken":"c"`)
	w.must("DELETE", "/schedules/d?clientToken=d1", "")
	w.must("DELETE", "/schedules/d?clientToken=d1", "")
	w.refused("ResourceNotFoundException: Schedule d does not exist.", "DELETE", "/schedules/d?clientToken=d2", "")
	w.create("d", "rate(1 hour)", `"ClientToken":"c"`) // the token is stored
	w.refused("ResourceNotFoundException: Schedule d does not exist.", "GET", "/schedules/d", "")
	w.advance(25 * time.Hour)
	w.want("d@01-01T00:10:00") // from before the deletion
	if got := w.items("mayfly.schedules.default"); got != "" {
		t.Errorf("the table has %s", got)
	}
	w.create("d", "rate(1 hour)", `"ClientToken":"c"`) // the token has expired
	w.must("GET", "/schedules/d", "")
}

// Lists are sorted by group and name, in pages of any size, and filtered by group, prefix and
// state.
func TestListSchedules(t *testing.T) {
	w := newWorld(t, "", nil)
	var all, disabled, prefixed []string
	w.must("POST", "/schedule-groups/a-group", "")
	w.must("POST", "/schedule-groups/empty", "")
	w.must("POST", "/schedule-groups/z.group", "")
	for _, group := range []string{"a-group", "default", "z.group"} {
		for i := range 23 {
			name := fmt.Sprintf("s%02d", i)
			state := "ENABLED"
			if i%7 == 3 {
				state = "DISABLED"
				disabled = append(disabled, group+"/"+name)
			}
			if strings.HasPrefix(name, "s1") {
				prefixed = append(prefixed, group+"/"+name)
			}
			all = append(all, group+"/"+name)
			w.create(name, "at(2031-01-01T00:00:00)", `"GroupName":"`+group+`"`, `"State":"`+state+`"`)
		}
	}
	list := func(query string) (names []string) {
		t.Helper()
		token := ""
		for range 1000 {
			out, err := w.call("GET", "/schedules?"+query+token, "")
			if err != nil {
				t.Fatal(err)
			}
			page := out.(*ListSchedulesOutput)
			for _, s := range page.Schedules {
				names = append(names, s.GroupName+"/"+s.Name)
			}
			if page.NextToken == "" {
				return names
			}
			token = "&NextToken=" + page.NextToken
		}
		t.Fatal("the list does not end")
		return nil
	}
	same := func(query string, want []string) {
		t.Helper()
		if got := list(query); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s\n got %v\nwant %v", query, got, want)
		}
	}
	for _, size := range []string{"MaxResults=1", "MaxResults=2", "MaxResults=23", "MaxResults=24", "MaxResults=69", "MaxResults=100", "x=1"} {
		same(size, all)
		same(size+"&ScheduleGroup=default", all[23:46])
		same(size+"&State=DISABLED", disabled)
		same(size+"&NamePrefix=s1", prefixed)
		same(size+"&NamePrefix=s1&State=DISABLED&ScheduleGroup=z.group", []string{"z.group/s10", "z.group/s17"})
		same(size+"&NamePrefix=t", nil)
		same(size+"&ScheduleGroup=empty", nil)
	}
	w.refused("ResourceNotFoundException: Schedule group g does not exist.", "GET", "/schedules?ScheduleGroup=g", "")
	out, err := w.call("GET", "/schedules?MaxResults=1", "")
	if err != nil {
		t.Fatal(err)
	}
	const bad = "ValidationException: The NextToken is not valid for this request."
	token := out.(*ListSchedulesOutput).NextToken
	w.refused(bad, "GET", "/schedules?NamePrefix=s&NextToken="+token, "")
	w.refused(bad, "GET", "/schedule-groups?NextToken="+token, "")
	w.refused(bad, "GET", "/schedules?NextToken=x", "")
	const failed = "ValidationException: 1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must %s"
	w.refused(fmt.Sprintf(failed, "0", "maxResults", "have value greater than or equal to 1"), "GET", "/schedules?MaxResults=0", "")
	w.refused(fmt.Sprintf(failed, "101", "maxResults", "have value less than or equal to 100"), "GET", "/schedules?MaxResults=101", "")
	w.refused(fmt.Sprintf(failed, "many", "maxResults", "be a number"), "GET", "/schedules?MaxResults=many", "")
	w.refused(fmt.Sprintf(failed, "ON", "state", "satisfy enum value set: [ENABLED, DISABLED]"), "GET", "/schedules?State=ON", "")
	w.refused(fmt.Sprintf(failed, "", "nextToken", "have length greater than or equal to 1"), "GET", "/schedules?NextToken=", "")
}

// A list with a rare filter has empty pages, and ends.
func TestListSparse(t *testing.T) {
	w := newWorld(t, "", nil)
	const n = listPage*listPagesMax + 200
	for i := range n {
		state := "DISABLED"
		if i == n-1 {
			state = "ENABLED"
		}
		w.create(fmt.Sprintf("s%05d", i), "at(2031-01-01T00:00:00)", `"State":"`+state+`"`)
	}
	out, err := w.call("GET", "/schedules?State=ENABLED", "")
	if err != nil {
		t.Fatal(err)
	}
	page := out.(*ListSchedulesOutput)
	if len(page.Schedules) != 0 || page.NextToken == "" {
		t.Fatalf("the first page has %d schedules, next %q", len(page.Schedules), page.NextToken)
	}
	if out, err = w.call("GET", "/schedules?State=ENABLED&NextToken="+page.NextToken, ""); err != nil {
		t.Fatal(err)
	}
	page = out.(*ListSchedulesOutput)
	if len(page.Schedules) != 1 || page.NextToken != "" {
		t.Errorf("the second page has %d schedules, next %q", len(page.Schedules), page.NextToken)
	}
}
