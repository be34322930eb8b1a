package routes

import (
	"net/url"
	"testing"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

// TestResources: policies see the schedule, rule or mapping that the operation then acts on, whatever
// else a request contains.
func TestResources(t *testing.T) {
	o := Owner{"us-east-1", "000000000000"}
	const schedules, rules = "arn:aws:scheduler:us-east-1:000000000000:", "arn:aws:events:us-east-1:000000000000:"
	call := func(label, text, query, body string) *wire.Call {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		return &wire.Call{Path: map[string]string{label: text}, Query: values, Body: []byte(body)}
	}
	for _, test := range []struct {
		resource func(*wire.Call) string
		call     *wire.Call
		want     string
	}{
		{o.schedule("CreateSchedule"), call("Name", "n", "", `{"GroupName":"g"}`), schedules + "schedule/g/n"},
		{o.schedule("CreateSchedule"), call("Name", "n", "groupName=other", `{"Name":"m"}`), schedules + "schedule/default/n"},
		{o.schedule("CreateSchedule"), call("Name", "n", "", `{"groupname":"other"}`), schedules + "schedule/default/n"},
		{o.schedule("UpdateSchedule"), call("Name", "n", "", `{"GroupName":"g"}`), schedules + "schedule/g/n"},
		{o.schedule("GetSchedule"), call("Name", "n", "groupName=g&groupName=other", ""), schedules + "schedule/g/n"},
		{o.schedule("DeleteSchedule"), call("Name", "n", "", `{"GroupName":"other"}`), schedules + "schedule/default/n"},
		{o.schedule("ListSchedules"), call("", "", "ScheduleGroup=g", ""), schedules + "schedule/g/*"},
		{o.schedule("ListSchedules"), call("", "", "", ""), schedules + "schedule/*/*"},
		{o.schedule("DeleteScheduleGroup"), call("Name", "g", "", ""), schedules + "schedule-group/g"},
		{o.schedule("TagResource"), call("ResourceArn", "arn:aws:scheduler:eu-west-1:1:schedule-group/g", "", ""), schedules + "schedule-group/g"},
		{o.rule("PutRule"), call("", "", "", `{"Name":"r","Rule":"other","ResourceARN":"other"}`), rules + "rule/r"},
		{o.rule("PutTargets"), call("", "", "", `{"Name":"other","Rule":"r","ResourceARN":"other"}`), rules + "rule/r"},
		{o.rule("TagResource"), call("", "", "", `{"Name":"other","ResourceARN":"arn:aws:events:eu-west-1:1:rule/r"}`), rules + "rule/r"},
		{o.rule("DeleteRule"), call("", "", "", `{"Name":1}`), "*"},
		{o.rule("DeleteRule"), call("", "", "", `{"Name":"r","Rule":1,"ResourceARN":{}}`), rules + "rule/r"},
		{o.rule("PutTargets"), call("", "", "", `{"Name":1,"Rule":"r"}`), rules + "rule/r"},
		{o.rule("UntagResource"), call("", "", "", `{"ResourceARN":"arn:aws:events:eu-west-1:1:rule/default/r"}`), rules + "rule/r"},
		{o.mapping, call("UUID", "u", "", ""), "arn:aws:lambda:us-east-1:000000000000:event-source-mapping:u"},
		{o.mapping, call("", "", "", ""), "*"},
	} {
		if got := test.resource(test.call); got != test.want {
			t.Errorf("%s %v: got %s, want %s", test.call.Body, test.call.Path, got, test.want)
		}
	}
}
