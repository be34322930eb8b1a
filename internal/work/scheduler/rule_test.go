package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// refusedAct calls an action that must fail.
func (w *world) refusedAct(want, name, body string) {
	w.Helper()
	_, err := w.action(name, body)
	wantError(w, err, want)
}

// A rule can be put, described, listed, disabled, and deleted when it has no targets.
func TestRule(t *testing.T) {
	w := newWorld(t, "", nil)
	const arn = "arn:aws:events:us-east-1:123456789012:rule/"
	const missing = "ResourceNotFoundException: Rule r does not exist on EventBus default."
	for _, name := range []string{"DescribeRule", "EnableRule", "DisableRule"} {
		w.refusedAct(missing, name, `{"Name":"r"}`)
	}
	w.refusedAct(missing, "PutTargets", `{"Rule":"r","Targets":[{"Id":"1","Arn":"`+lambdaARN+`"}]}`)
	w.refusedAct(missing, "RemoveTargets", `{"Rule":"r","Ids":["1"]}`)
	w.refusedAct(missing, "ListTargetsByRule", `{"Rule":"r"}`)
	w.mustAct("DeleteRule", `{"Name":"r"}`)
	if got := w.mustAct("ListRules", `{}`); got != `{"Rules":[]}` {
		t.Errorf("listed: %s", got)
	}

	if got := w.mustAct("PutRule", `{"Name":"r","ScheduleExpression":"rate(1 minute)","Description":"d","RoleArn":"`+roleARN+`","Tags":[{"Key":"a","Value":"1"}]}`); got != `{"RuleArn":"`+arn+`r"}` {
		t.Errorf("put: %s", got)
	}
	described := `"Name":"r","Arn":"` + arn + `r","State":"%s","ScheduleExpression":"rate(1 minute)","Description":"d","RoleArn":"` + roleARN + `","EventBusName":"default"`
	if got, want := w.mustAct("DescribeRule", `{"Name":"r"}`), `{`+fmt.Sprintf(described, "ENABLED")+`,"CreatedBy":"123456789012"}`; got != want {
		t.Errorf("described\n got %s\nwant %s", got, want)
	}
	w.mustAct("DisableRule", `{"Name":"r","EventBusName":"default"}`)
	if got, want := w.mustAct("ListRules", `{"NamePrefix":"r"}`), `{"Rules":[{`+fmt.Sprintf(described, "DISABLED")+`}]}`; got != want {
		t.Errorf("listed\n got %s\nwant %s", got, want)
	}
	w.mustAct("EnableRule", `{"Name":"r"}`)
	target := `{"Id":"1","Arn":"` + lambdaARN + `","Input":"{\"a\":1}"}`
	if got := w.mustAct("PutTargets", `{"Rule":"r","Targets":[`+target+`]}`); got != `{"FailedEntryCount":0,"FailedEntries":[]}` {
		t.Errorf("targets put: %s", got)
	}
	if got := w.mustAct("ListTargetsByRule", `{"Rule":"r"}`); got != `{"Targets":[`+target+`]}` {
		t.Errorf("targets: %s", got)
	}
	if got := w.mustAct("ListRuleNamesByTarget", `{"TargetArn":"`+lambdaARN+`"}`); got != `{"RuleNames":["r"]}` {
		t.Errorf("rules of the target: %s", got)
	}
	if got := w.mustAct("ListRuleNamesByTarget", `{"TargetArn":"`+queueARN+`"}`); got != `{"RuleNames":[]}` {
		t.Errorf("rules of another target: %s", got)
	}
	w.refusedAct("ValidationException: Rule can't be deleted since it has targets.", "DeleteRule", `{"Name":"r"}`)
	// targets and tags stay
	w.mustAct("PutRule", `{"Name":"r","ScheduleExpression":"cron(0 12 * * ? *)"}`)
	if got := w.mustAct("ListTargetsByRule", `{"Rule":"r"}`); got != `{"Targets":[`+target+`]}` {
		t.Errorf("targets: %s", got)
	}
	if got := w.mustAct("ListTagsForResource", `{"ResourceARN":"`+arn+`r"}`); got != `{"Tags":[{"Key":"a","Value":"1"}]}` {
		t.Errorf("tags: %s", got)
	}
	w.mustAct("TagResource", `{"ResourceARN":"`+arn+`r","Tags":[{"Key":"b","Value":"2"}]}`)
	w.mustAct("UntagResource", `{"ResourceARN":"`+arn+`r","TagKeys":["a"]}`)
	if got := w.mustAct("ListTagsForResource", `{"ResourceARN":"`+arn+`r"}`); got != `{"Tags":[{"Key":"b","Value":"2"}]}` {
		t.Errorf("tags: %s", got)
	}
	want := `{"FailedEntryCount":1,"FailedEntries":[{"TargetId":"2","ErrorCode":"ResourceNotFoundException","ErrorMessage":"Rule 'r' does not have a target with the Id '2'."}]}`
	if got := w.mustAct("RemoveTargets", `{"Rule":"r","Ids":["2","1"]}`); got != want {
		t.Errorf("targets removed: %s", got)
	}
	w.mustAct("DeleteRule", `{"Name":"r"}`)
	w.refusedAct(missing, "DescribeRule", `{"Name":"r"}`)
	if got := w.items(rulesTable); got != "" {
		t.Errorf("the table has %s", got)
	}
}

// Invalid rules and targets are refused with the reason.
func TestCheckRule(t *testing.T) {
	w := newWorld(t, "", func(w *world) {
		w.options.RulesMax = 2
		w.options.Mapped = func(arn string) error {
			if strings.HasSuffix(arn, "unmapped") {
				return fmt.Errorf("Map it.")
			}
			return nil
		}
	})
	shape := func(value, path, constraint string) string {
		return "ValidationException: 1 validation error detected: Value " + value + " at '" + path + "' failed to satisfy constraint: Member must " + constraint
	}
	const notValid = "ValidationException: Parameter ScheduleExpression is not valid."
	for _, tt := range [][2]string{
		{`{"ScheduleExpression":"rate(1 minute)"}`, shape("null", "name", "not be null")},
		{`{"Name":"a b","ScheduleExpression":"rate(1 minute)"}`, shape("'a b'", "name", `satisfy regular expression pattern: [\.\-_A-Za-z0-9]+`)},
		{`{"Name":"r","ScheduleExpression":"rate(1 minute)","State":"ON"}`, shape("'ON'", "state", "satisfy enum value set: [ENABLED, DISABLED, ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS]")},
		{`{"Name":"r"}`, "ValidationException: Parameter(s) EventPattern or ScheduleExpression must be specified."},
		{`{"Name":"r","EventPattern":"{}"}`, "ValidationException: EventPattern is not supported: rules are scheduled here. For what changes in a table, create an event source mapping."},
		{`{"Name":"r","ScheduleExpression":"rate(1 minutes)"}`, notValid},
		{`{"Name":"r","ScheduleExpression":"rate(5 minute)"}`, notValid},
		{`{"Name":"r","ScheduleExpression":"at(2030-01-01T00:00:00)"}`, notValid},
		{`{"Name":"r","ScheduleExpression":"every(5 seconds)"}`, notValid},
		{`{"Name":"r","ScheduleExpression":"rate(1 minute)","EventBusName":"other"}`, "ResourceNotFoundException: Event bus other does not exist."},
	} {
		w.refusedAct(tt[1], "PutRule", tt[0])
	}
	w.mustAct("PutRule", `{"Name":"r","ScheduleExpression":"rate(5 minutes)","EventBusName":"arn:aws:events:us-east-1:123456789012:event-bus/default"}`)
	w.mustAct("PutRule", `{"Name":"s","ScheduleExpression":"rate(1 day)"}`)
	w.refusedAct("LimitExceededException: The requested resource exceeds the maximum number allowed.", "PutRule", `{"Name":"t","ScheduleExpression":"rate(1 day)"}`)
	w.mustAct("PutRule", `{"Name":"s","ScheduleExpression":"rate(2 days)"}`)

	paths := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%03d":"$.time"`, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for _, tt := range [][2]string{
		{`{"Arn":"` + lambdaARN + `"}`, shape("null", "targets.1.member.id", "not be null")},
		{`{"Id":"1","Arn":"` + lambdaARN + `","RetryPolicy":{"MaximumRetryAttempts":186}}`, shape("'186'", "targets.1.member.retryPolicy.maximumRetryAttempts", "have value less than or equal to 185")},
		{`{"Id":"1","Arn":"arn:mayfly:"}`, "ValidationException: Parameter arn:mayfly: is not valid. Reason: Provided Arn is not in correct format."},
		{`{"Id":"1","Arn":"x"}`, "ValidationException: Parameter x is not valid. Reason: Provided Arn is not in correct format."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","Input":"1","InputPath":"$"}`, "ValidationException: Only one of Input, InputPath, or InputTransformer must be provided for target 1."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","Input":"text"}`, "ValidationException: JSON syntax error in input for target 1."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputPath":"x"}`, "ValidationException: Invalid InputPath for target 1: a path begins with $ and goes on with .name, [n], .* or [*]."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{}}`, shape("null", "targets.1.member.inputTransformer.inputTemplate", "not be null")},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{"InputPathsMap":` + paths(101) + `,"InputTemplate":"1"}}`, shape("'[101 elements]'", "targets.1.member.inputTransformer.inputPathsMap", "have length less than or equal to 100")},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{"InputPathsMap":{"aws.x":"$"},"InputTemplate":"1"}}`, shape("'aws.x'", "targets.1.member.inputTransformer.inputPathsMap.key", `satisfy regular expression pattern: [A-Za-z0-9\_\-]+`)},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{"InputPathsMap":{"awsx":"$"},"InputTemplate":"1"}}`, "ValidationException: Invalid InputPathsMap for target 1: the name awsx begins with AWS, which is reserved."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{"InputPathsMap":{"a":"x"},"InputTemplate":"1"}}`, "ValidationException: Invalid InputPathsMap for target 1: a path begins with $ and goes on with .name, [n], .* or [*]."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{"InputTemplate":"{\"a\":<b>}"}}`, "ValidationException: InputTemplate for target 1 contains invalid placeholder b."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","InputTransformer":{"InputTemplate":"{"}}`, "ValidationException: Invalid InputTemplate for target 1: the template is not valid JSON with its placeholders replaced."},
		{`{"Id":"1","Arn":"` + lambdaARN + `","HttpParameters":1}`, "ValidationException: Parameter HttpParameters of target 1 is not an object."},
	} {
		w.refusedAct(tt[1], "PutTargets", `{"Rule":"r","Targets":[`+tt[0]+`]}`)
	}
	w.refusedAct(shape("'[0 elements]'", "targets", "have length greater than or equal to 1"), "PutTargets", `{"Rule":"r","Targets":[]}`)
	var six []string
	for i := range 6 {
		six = append(six, fmt.Sprintf(`{"Id":"t%d","Arn":"%s"}`, i, lambdaARN))
	}
	six[2] = `{"Id":"t2","Arn":"arn:aws:lambda:us-east-1:123456789012:function:unmapped"}`
	want := `{"FailedEntryCount":1,"FailedEntries":[{"TargetId":"t2","ErrorCode":"ValidationException","ErrorMessage":"Map it."}]}`
	if got := w.mustAct("PutTargets", `{"Rule":"r","Targets":[`+strings.Join(six, ",")+`]}`); got != want {
		t.Errorf("put: %s", got)
	}
	want = `{"FailedEntryCount":1,"FailedEntries":[{"TargetId":"more","ErrorCode":"LimitExceededException","ErrorMessage":"The requested resource exceeds the maximum number allowed."}]}`
	if got := w.mustAct("PutTargets", `{"Rule":"r","Targets":[{"Id":"t1","Arn":"`+queueARN+`"},{"Id":"more","Arn":"`+lambdaARN+`"}]}`); got != want {
		t.Errorf("put: %s", got)
	}
}

// A rule fires at full minutes, once for each target, with the target's part of the event.
func TestRuleFires(t *testing.T) {
	w := newWorld(t, "", nil)
	w.advance(37 * time.Second)
	w.mustAct("PutRule", `{"Name":"r","ScheduleExpression":"rate(1 minute)"}`)
	w.mustAct("PutRule", `{"Name":"c","ScheduleExpression":"cron(*/2 * * * ? *)"}`)
	w.advance(5 * time.Minute)
	w.want("") // it has no targets
	w.mustAct("PutTargets", `{"Rule":"r","Targets":[
		{"Id":"plain","Arn":"arn:aws:lambda:us-east-1:123456789012:function:plain"},
		{"Id":"input","Arn":"arn:aws:lambda:us-east-1:123456789012:function:input","Input":"[1]"},
		{"Id":"path","Arn":"arn:aws:lambda:us-east-1:123456789012:function:path","InputPath":"$.resources[0]"},
		{"Id":"sweeper","Arn":"arn:aws:lambda:us-east-1:123456789012:function:sweeper","InputTransformer":{"InputPathsMap":{"time":"$.time"},"InputTemplate":"{\"time\": <time>}"}},
		{"Id":"stream","Arn":"arn:aws:kinesis:us-east-1:123456789012:stream/s","KinesisParameters":{"PartitionKeyPath":"$.source"},"InputPath":"$.nowhere"}]}`)
	w.mustAct("PutTargets", `{"Rule":"c","Targets":[
		{"Id":"stream","Arn":"arn:aws:kinesis:us-east-1:123456789012:stream/s","KinesisParameters":{"PartitionKeyPath":"$.source"}},
		{"Id":"queue","Arn":"`+queueARN+`.fifo","SqsParameters":{"MessageGroupId":"g"},"HttpParameters":{"x":1}}]}`)
	w.advance(30 * time.Second) // 00:06:07
	got := map[string]target.Delivery{}
	ids := map[string]bool{}
	for _, d := range w.taken() {
		got[d.Subject+" "+d.TargetARN[strings.LastIndexAny(d.TargetARN, ":/")+1:]] = d
		ids[d.ID] = true
		if !d.Time.Equal(begin.Add(6*time.Minute)) || d.Type != "Scheduled Event" {
			t.Errorf("%+v", d)
		}
	}
	if len(got) != 6 || len(ids) != 6 {
		t.Fatalf("%d deliveries, %d ids: %v", len(got), len(ids), got)
	}
	arn := "arn:aws:events:us-east-1:123456789012:rule/r"
	plain := string(got["r plain"].Body)
	want := `,"detail-type":"Scheduled Event","source":"aws.events","account":"123456789012","time":"2030-01-01T00:06:00Z","region":"us-east-1","resources":["` + arn + `"],"detail":{}}`
	if !strings.HasPrefix(plain, `{"version":"0","id":"`) || !strings.HasSuffix(plain, want) || got["r plain"].Source != arn {
		t.Errorf("from %s: %s", got["r plain"].Source, plain)
	}
	for name, body := range map[string]string{"r input": `[1]`, "r path": `"` + arn + `"`, "r sweeper": `{"time":"2030-01-01T00:06:00Z"}`} {
		if string(got[name].Body) != body {
			t.Errorf("%s: %s", name, got[name].Body)
		}
	}
	if d := got["c s"]; string(d.Parameters) != `{"KinesisParameters":{"PartitionKey":"aws.events"}}` || d.Key != "aws.events" {
		t.Errorf("%+v", d)
	}
	if d := got["c q.fifo"]; string(d.Parameters) != `{"HttpParameters":{"x":1},"SqsParameters":{"MessageGroupId":"g"}}` || d.Key != "g" {
		t.Errorf("%+v", d)
	}
	w.mustAct("DisableRule", `{"Name":"r"}`)
	w.mustAct("RemoveTargets", `{"Rule":"c","Ids":["stream","queue"]}`)
	w.advance(time.Hour)
	w.want("")
	if got := w.items(rulesTable); got != "c definition, r definition" {
		t.Errorf("the table has %s", got)
	}
	w.mustAct("EnableRule", `{"Name":"r"}`)
	w.advance(time.Minute)
	if n := len(w.taken()); n != 4 {
		t.Errorf("%d deliveries", n)
	}
}

// Rules are listed in pages, and so are their targets.
func TestListRules(t *testing.T) {
	w := newWorld(t, "", nil)
	for i := range 7 {
		w.mustAct("PutRule", fmt.Sprintf(`{"Name":"r%d","ScheduleExpression":"rate(1 day)"}`, i))
		w.mustAct("PutTargets", fmt.Sprintf(`{"Rule":"r%d","Targets":[{"Id":"t2","Arn":"%s"},{"Id":"t1","Arn":"%s"}]}`, i, lambdaARN, queueARN))
	}
	for size := 1; size <= 8; size++ {
		rules, names, token := "", "", ""
		for {
			out, err := w.action("ListRules", fmt.Sprintf(`{"Limit":%d%s}`, size, token))
			if err != nil {
				t.Fatal(err)
			}
			page := out.(*ListRulesOutput)
			for _, r := range page.Rules {
				rules += r.Name
			}
			if page.NextToken == "" {
				break
			}
			token = `,"NextToken":"` + page.NextToken + `"`
		}
		token = ""
		for {
			out, err := w.action("ListRuleNamesByTarget", fmt.Sprintf(`{"TargetArn":"%s","Limit":%d%s}`, lambdaARN, size, token))
			if err != nil {
				t.Fatal(err)
			}
			page := out.(*ListRuleNamesByTargetOutput)
			names += strings.Join(page.RuleNames, "")
			if page.NextToken == "" {
				break
			}
			token = `,"NextToken":"` + page.NextToken + `"`
		}
		if rules != "r0r1r2r3r4r5r6" || names != rules {
			t.Errorf("%d a page: %s, %s", size, rules, names)
		}
	}
	out, err := w.action("ListTargetsByRule", `{"Rule":"r1","Limit":1}`)
	if err != nil {
		t.Fatal(err)
	}
	page := out.(*ListTargetsByRuleOutput)
	if len(page.Targets) != 1 || *page.Targets[0].Id != "t1" || page.NextToken == "" {
		t.Errorf("%s", marshalled(t, out))
	}
	if got := w.mustAct("ListTargetsByRule", `{"Rule":"r1","NextToken":"`+page.NextToken+`"}`); got != `{"Targets":[{"Id":"t2","Arn":"`+lambdaARN+`"}]}` {
		t.Errorf("the second page: %s", got)
	}
}
