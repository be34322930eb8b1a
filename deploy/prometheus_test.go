package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/admin"
	"github.com/mayflydb/mayfly/planner"
	"github.com/mayflydb/mayfly/target"
)

const (
	rulesFile = "prometheus/mayfly.rules.yaml"
	testsFile = "prometheus/mayfly.test.yaml"
	dashboard = "grafana/mayfly.json"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRulesAreThePlanners: the file says with which command it was made, and that is what the command prints.
func TestRulesAreThePlanners(t *testing.T) {
	text := read(t, rulesFile)
	const command = "mayfly plan alarms --writes 1000 --reads-eventual 3000 --item-size 1KB --retention 30d"
	if !strings.Contains(text, command) {
		t.Fatalf("%s does not say that it is from %s", rulesFile, command)
	}
	r, err := planner.Make(planner.Workload{Writes: 1000, Mix: planner.Mix{Eventual: 3000}, ItemBytes: 1024, Retention: 30 * 24 * time.Hour}, planner.Default())
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(text, "\ngroups:")
	same(t, "the rules", "groups:"+rules, string(planner.Rules(r.Thresholds())))
}

// TestAlarms has promtool check the rules, and raise each of them by its unit tests and not raise it.
func TestAlarms(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &rules); err != nil {
		t.Fatal(err)
	}
	var tests struct {
		Tests []struct {
			Cases []struct {
				Alertname string
				Expect    []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, testsFile)), &tests); err != nil {
		t.Fatal(err)
	}
	raised, silent := map[string]bool{}, map[string]bool{}
	for _, x := range tests.Tests {
		for _, c := range x.Cases {
			raised[c.Alertname] = raised[c.Alertname] || len(c.Expect) > 0
			silent[c.Alertname] = silent[c.Alertname] || len(c.Expect) == 0
		}
	}
	count := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			count++
			if !raised[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s: no test raises it, or none does not", r.Alert)
			}
		}
	}
	if count < 15 {
		t.Errorf("%d rules", count)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: it is in Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", filepath.Base(rulesFile)}, {"test", "rules", filepath.Base(testsFile)}} {
		command := exec.Command(promtool, args...)
		command.Dir = filepath.Dir(rulesFile)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// metricName is what a name of ours looks like in an expression.
var metricName = regexp.MustCompile(`\b(mayfly_[a-z0-9_]+|TimeToLiveDeletedItemCount)\b`)

// TestMetricsExist: every metric that a rule or a panel of the dashboard names is exported, by a server that has done something and by guard.
func TestMetricsExist(t *testing.T) {
	exported := exportedMetrics(t)
	names := map[string][]string{} // where each is named
	for _, name := range metricName.FindAllString(read(t, rulesFile), -1) {
		names[name] = append(names[name], rulesFile)
	}
	for _, p := range panels(t) {
		for _, expr := range p.exprs {
			found := metricName.FindAllString(expr, -1)
			if len(found) == 0 {
				t.Errorf("panel %q: %s names no metric of ours", p.title, expr)
			}
			for _, name := range found {
				names[name] = append(names[name], "panel "+p.title)
			}
		}
	}
	if len(names) < 30 {
		t.Errorf("only %d metrics are named", len(names))
	}
	for name, where := range names {
		if !slices.Contains(exported, name) {
			t.Errorf("%s, in %s, is not exported", name, strings.Join(where, ", "))
		}
	}
}

type panel struct {
	title string
	exprs []string
}

// panels reads the dashboard as Grafana does: it has variables for what its expressions leave open, and no two panels have one id or lie upon each other.
func panels(t *testing.T) (all []panel) {
	t.Helper()
	var d struct {
		Title      string
		UID        string
		Schema     int `json:"schemaVersion"`
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			ID         int
			Type       string
			Title      string
			Datasource struct{ UID string }
			GridPos    struct{ H, W, X, Y int }
			Targets    []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil {
		t.Fatal(err)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		for _, name := range metricName.FindAllString(v.Query, -1) {
			all = append(all, panel{"variable " + v.Name, []string{name}})
		}
	}
	if d.Title == "" || d.UID == "" || d.Schema == 0 {
		t.Error("the dashboard has no title, uid or schemaVersion")
	}
	ids, cells := map[int]bool{}, map[string]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := fmt.Sprint(p.GridPos.X+x, p.GridPos.Y+y)
				if other, taken := cells[cell]; taken || p.GridPos.X+x > 23 {
					t.Fatalf("panels %q and %q lie upon each other, or beside the page", other, p.Title)
				}
				cells[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing, or nobody", p.Title)
		}
		one := panel{title: p.Title}
		for _, target := range p.Targets {
			one.exprs = append(one.exprs, target.Expr)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("panel %q: there is no variable %s", p.Title, v[1])
				}
			}
		}
		all = append(all, one)
	}
	return all
}

// exportedMetrics are the names at /metrics of a server in which items have expired and schedules have fired and failed, and of guard.
func exportedMetrics(t *testing.T) []string {
	t.Helper()
	ctx := t.Context()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const refuses, takes = "arn:aws:sqs:us-east-1:000000000000:refuses", "arn:aws:sqs:us-east-1:000000000000:takes"
	db, err := mayfly.Open("", mayfly.Options{Start: start, Frozen: true, Targets: []target.Mapping{
		{ARN: refuses, Name: "refuses", Target: target.Func(func(context.Context, target.Delivery) error { return target.Permanent("No", "never") })},
		{ARN: takes, Name: "takes", Target: target.Func(func(context.Context, target.Delivery) error { return nil })},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	api := db.DynamoDB()
	_, err = api.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeOldImage},
	})
	must(t, err)
	_, err = api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("orders"), TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String("ttl")}})
	must(t, err)
	_, err = api.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "a"}, "ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(start.Unix() + 60)},
	}})
	must(t, err)
	for name, arn := range map[string]string{"fails": refuses, "works": takes} {
		_, err = db.Scheduler().CreateSchedule(ctx, &scheduler.CreateScheduleInput{
			Name: aws.String(name), ScheduleExpression: aws.String("at(2030-01-01T00:01:00)"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
			Target: &schedulertypes.Target{Arn: aws.String(arn), RoleArn: aws.String("arn:aws:iam::000000000000:role/r")},
		})
		must(t, err)
	}
	_, err = db.Clock().Advance(ctx, time.Hour)
	must(t, err)

	guarded := admin.NewGuard(func() []admin.GuardTable { return []admin.GuardTable{{Table: "orders", USDPerMillion: 1}} })
	guarded.Begin("orders")
	// What a consumer that is a day behind is kept, and a trigger, would take long to have for real.
	rest := admin.NewMetrics(admin.Sources{Held: func() []admin.HeldStream { return []admin.HeldStream{{Table: "orders", Stream: "s", Consumer: "c"}} }})
	rest.Delivery(admin.DeliveryEvent{Event: "dead_lettered", Group: admin.TriggerGroup + "t1"})
	return slices.Concat(scrapeNames(t, db.Handler()), scrapeNames(t, guarded.Handler(nil)), scrapeNames(t, admin.Handler(admin.Options{Metrics: rest})))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scrapeNames are the names of the series at /metrics.
func scrapeNames(t *testing.T, h http.Handler) (all []string) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	answer, err := http.Get(server.URL + "/metrics")
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, strings.TrimSpace(strings.FieldsFunc(line, func(c rune) bool { return c == '{' || c == ' ' })[0]))
		}
	}
	return all
}
