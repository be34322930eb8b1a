// Package deploy_test reads the templates as their tools would, and compares them with guard's
// needs.
package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// deployment is the content of a template, in words that all forms of templates share. A value that
// refers to something else is its text in the template.
type deployment struct {
	roles       map[string]role
	environment map[string]any
	function    map[string]any
	tables      map[string]table
	alarms      map[string]alarm // by namespace and metric
	group       string           // name of the schedules' group; "": there is none
	rule        map[string]any
	mapping     map[string]any
	queues      []string
}

// role is the principals of a role, their conditions, and its permissions: actions, each with the
// kind of its resource.
type role struct {
	principal  string
	conditions string
	may        []string
	passes     string // condition of iam:PassRole
}

// table is a table's keys, by name, and its settings.
type table struct {
	name, when string // when it is made
	billing    string
	hash, sort string
	kinds      map[string]string
	index      string // its name, keys and projection
	ttl        string
	stream     string
	kept       bool // survives the deployment
}

type alarm struct {
	comparison string
	threshold  float64
	missing    string
	of         string // the value of its one dimension
	actions    bool
	statistic  string
	minutes    string // "<periods that count> of <periods of a minute>"
}

// permissions are a function's own, in the words of roles.
func permissions(list []guard.Permission, besides ...string) []string {
	all := slices.Clone(besides)
	for _, p := range list {
		all = append(all, p.Action+" on "+string(p.On))
	}
	slices.Sort(all)
	return all
}

var (
	logs        = []string{"logs:CreateLogStream on logs", "logs:PutLogEvents on logs"}
	deadLetters = []string{"sqs:SendMessage on dead letters"}
	mapping     = []string{ // the permissions of an event source mapping, by Lambda's documentation
		"dynamodb:DescribeStream on stream", "dynamodb:GetRecords on stream", "dynamodb:GetShardIterator on stream", "dynamodb:ListStreams on *",
	}
)

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmp.AllowUnexported(role{}, table{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestSweep(t *testing.T) {
	for form, read := range map[string]func(*testing.T) *deployment{
		"CloudFormation": func(t *testing.T) *deployment { return readCloudFormation(t, "cloudformation/sweep.yaml") },
		"Terraform":      func(t *testing.T) *deployment { return readTerraform(t, "terraform/sweep/main.tf") },
	} {
		t.Run(form, func(t *testing.T) {
			d := read(t)
			checkFunction(t, d)
			f := d.function
			if f["concurrency"] != 1.0 || d.environment["MAYFLY_ALONE"] != "true" {
				t.Errorf("runs may overlap: concurrency %v, alone %v", f["concurrency"], d.environment["MAYFLY_ALONE"])
			}
			if seconds, _ := f["timeout"].(float64); seconds < 60 {
				t.Errorf("a sweep has %v s", f["timeout"])
			}
			same(t, "a failed run", f["retries"], 0.0)
			same(t, "where failed runs end", f["on failure"], "dead letters")

			same(t, "the environment", d.environment, map[string]any{
				"MAYFLY_HANDLER": "sweep", "MAYFLY_TABLE": "<table name>", "MAYFLY_ATTRIBUTE": "<attribute>", "MAYFLY_INDEX": "<index name>", "MAYFLY_GRANULARITY": "<granularity>",
				"MAYFLY_SHARDS": "<shards>", "MAYFLY_ALONE": "true",
			})
			same(t, "the function's role", d.roles["function"], role{
				principal: "lambda.amazonaws.com", may: permissions(guard.SweepPermissions(), slices.Concat(logs, deadLetters)...),
			})
			same(t, "the number of roles", len(d.roles), 1)

			guarded := d.tables["guarded"]
			same(t, "the table", guarded, table{
				name: "<table name>", when: "asked for", billing: "PAY_PER_REQUEST", hash: "itemId", kinds: map[string]string{"itemId": "S", "<index key>": "S", "<attribute>": "N"}, kept: true,
				index: "<index name>: <index key>, <attribute>, KEYS_ONLY", ttl: "<attribute>",
			})
			made := leasesTable(t)
			made.kept = form == "CloudFormation"
			same(t, "the leases' table", d.tables["leases"], made)

			same(t, "the rule", d.rule, map[string]any{
				"schedule": "rate(1 minute)", "state": "ENABLED", "target": "function", "template": `{"time": <time>}`, "paths": map[string]any{"time": "$.time"},
				"dead letters": "dead letters", "may invoke": "lambda:InvokeFunction of function, events.amazonaws.com by rule", "may send": "sqs:SendMessage to dead letters, events.amazonaws.com by rule",
			})
			checkAlarms(t, d, map[string]alarm{
				"AWS/Lambda Errors":                          {"GreaterThanOrEqualToThreshold", 1, "notBreaching", "function", true, "Sum", "3 of 5"},
				"AWS/Lambda Invocations":                     {"LessThanThreshold", 1, "breaching", "function", true, "Sum", "5 of 5"},
				"AWS/Lambda Duration":                        {"GreaterThanThreshold", 60_000, "notBreaching", "function", true, "Maximum", "3 of 5"},
				"AWS/SQS ApproximateNumberOfMessagesVisible": {"GreaterThanOrEqualToThreshold", 1, "notBreaching", "dead letters", true, "Maximum", "1 of 1"},
			})
			same(t, "the queue", d.queues, []string{"1.2096e+06 s, encrypted: true"})
		})
	}
}

func TestStream(t *testing.T) {
	for form, read := range map[string]func(*testing.T) *deployment{
		"CloudFormation": func(t *testing.T) *deployment { return readCloudFormation(t, "cloudformation/stream.yaml") },
		"Terraform":      func(t *testing.T) *deployment { return readTerraform(t, "terraform/stream/main.tf") },
	} {
		t.Run(form, func(t *testing.T) {
			d := read(t)
			checkFunction(t, d)
			same(t, "the environment", d.environment, map[string]any{
				"MAYFLY_HANDLER": "stream", "MAYFLY_TABLE": "<table name>", "MAYFLY_ATTRIBUTE": "<attribute>", "MAYFLY_ROLE": "role", "MAYFLY_DEAD_LETTERS": "dead letters",
			})

			same(t, "the function's role", d.roles["function"], role{
				principal: "lambda.amazonaws.com", may: permissions(guard.StreamPermissions(), slices.Concat(logs, deadLetters, mapping)...),
				passes: "StringEquals iam:PassedToService scheduler.amazonaws.com",
			})
			same(t, "the schedules' role", d.roles["schedules"], role{
				principal: "scheduler.amazonaws.com", conditions: "StringEquals aws:SourceAccount account, StringEquals aws:SourceArn group",
				may: permissions(guard.SchedulePermissions(), deadLetters...),
			})
			same(t, "the number of roles", len(d.roles), 2)
			same(t, "the group", d.group, guard.ScheduleGroup("<table name>"))

			same(t, "the table", d.tables["guarded"], table{
				name: "<table name>", when: "no stream is given", billing: "PAY_PER_REQUEST", hash: "PK", sort: "SK", kinds: map[string]string{"PK": "S", "SK": "S"}, ttl: "<attribute>", stream: "NEW_AND_OLD_IMAGES", kept: true,
			})
			same(t, "the mapping", d.mapping, map[string]any{
				"function": "function", "stream": "stream", "from": "TRIM_HORIZON", "size": 500.0, "window": 0.0, "response": []any{"ReportBatchItemFailures"}, "bisect": true,
				"attempts": -1.0, "age": -1.0, "on failure": "dead letters",
			})
			checkAlarms(t, d, map[string]alarm{
				"AWS/Lambda Errors":                          {"GreaterThanOrEqualToThreshold", 1, "notBreaching", "function", true, "Sum", "3 of 5"},
				"AWS/Lambda IteratorAge":                     {"GreaterThanThreshold", 300_000, "notBreaching", "function", true, "Maximum", "5 of 5"},
				"AWS/Scheduler InvocationDroppedCount":       {"GreaterThanOrEqualToThreshold", 1, "notBreaching", "group", true, "Sum", "1 of 1"},
				"AWS/SQS ApproximateNumberOfMessagesVisible": {"GreaterThanOrEqualToThreshold", 1, "notBreaching", "dead letters", true, "Maximum", "1 of 1"},
			})
			same(t, "the queue", d.queues, []string{"1.2096e+06 s, encrypted: true"})
		})
	}
}

// setting finds the names of the settings in the command's table of them.
var setting = regexp.MustCompile(`(?m)^\t"(MAYFLY_[A-Z_]+)":`)

// checkFunction checks the settings of both functions, and that the command knows them.
func checkFunction(t *testing.T, d *deployment) {
	t.Helper()
	same(t, "the program", []any{d.function["runtime"], d.function["handler"], d.function["architecture"]}, []any{"provided.al2023", "bootstrap", "arm64"})
	same(t, "whose permissions it has", d.function["role"], any("function role"))
	same(t, "where it logs", d.function["logs"], any("logs"))
	source, err := os.ReadFile("../cmd/mayfly-lambda/settings.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range setting.FindAllStringSubmatch(string(source), -1) {
		known[m[1]] = true
	}
	if len(known) < 10 {
		t.Fatalf("the program's settings were not found: %v", known)
	}
	for name := range d.environment {
		if !known[name] {
			t.Errorf("the function has the setting %s, which its program does not know", name)
		}
	}
}

func checkAlarms(t *testing.T, d *deployment, want map[string]alarm) {
	t.Helper()
	same(t, "the alarms", slices.Sorted(maps.Keys(d.alarms)), slices.Sorted(maps.Keys(want)))
	for name, a := range want {
		if got := d.alarms[name]; got != a {
			t.Errorf("the alarm %s is %+v, not %+v", name, got, a)
		}
	}
}

// leasesTable is the table of leases as package lease makes it.
func leasesTable(t *testing.T) table {
	t.Helper()
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := lease.New(db.DynamoDB(), "c", lease.Options{}).Note(t.Context(), "s", "x"); err != nil {
		t.Fatal(err)
	}
	out, err := db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(lease.TableName)})
	if err != nil {
		t.Fatal(err)
	}
	made := table{kinds: map[string]string{}, name: lease.TableName, when: "asked for", billing: "PAY_PER_REQUEST"}
	for _, a := range out.Table.AttributeDefinitions {
		made.kinds[*a.AttributeName] = string(a.AttributeType)
	}
	made.hash, made.sort = *out.Table.KeySchema[0].AttributeName, *out.Table.KeySchema[1].AttributeName
	return made
}

// minutes returns the length of an alarm's periods.
func minutes(period, periods, count any) string {
	if count == nil {
		count = periods
	}
	if period != 60.0 {
		return fmt.Sprint("periods of ", period, " s")
	}
	return fmt.Sprint(count, " of ", periods)
}

// at returns the value at a path of members, such as "Properties.Targets.0.Arn", or nil.
func at(value any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func textAt(value any, path string) string {
	s, _ := at(value, path).(string)
	return s
}

// statements returns the permissions in the statements of a policy, and the condition for passing a
// role. A resource without a word is its text.
func statements(t *testing.T, policy any) (may []string, passes string) {
	t.Helper()
	for _, s := range list(at(policy, "Statement")) {
		same(t, "a statement's effect", at(s, "Effect"), any("Allow"))
		for _, action := range list(at(s, "Action")) {
			if strings.Contains(action.(string), "*") {
				t.Errorf("%s allows too much", action)
			}
			may = append(may, fmt.Sprintf("%s on %v", action, at(s, "Resource")))
			if action == "iam:PassRole" {
				passes = conditions(at(s, "Condition"))
			}
		}
	}
	slices.Sort(may)
	return may, passes
}

// conditions returns the conditions of a statement, sorted.
func conditions(of any) string {
	var all []string
	operators, _ := of.(map[string]any)
	for operator, keys := range operators {
		for key, value := range keys.(map[string]any) {
			all = append(all, fmt.Sprintf("%s %s %v", operator, key, value))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// list is a value that may stand alone.
func list(value any) []any {
	if all, ok := value.([]any); ok {
		return all
	}
	return []any{value}
}
