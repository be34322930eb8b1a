package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/mayflydb/mayfly/planner"
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

// TestRulesAreThePlanners: the file equals the output of the command in its header.
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

// TestAlarms has promtool check the rules, and raise each of them by its unit tests and not raise
// it.
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
	promtool(t, filepath.Dir(rulesFile), filepath.Base(rulesFile), filepath.Base(testsFile))
}

// TestAlarmsOfIndexes: a plan's indexes have limits of their own.
func TestAlarmsOfIndexes(t *testing.T) {
	r, err := planner.Make(planner.Workload{Writes: 1000, ItemBytes: 3000, Indexes: []planner.Index{{Name: "byDay", Projection: planner.KeysOnly}, {Name: "local", Local: true}}}, planner.Default())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": string(planner.Rules(r.Thresholds())),
		"test.yaml": `
rule_files: [rules.yaml]
tests:
  - interval: 1m
    input_series: # the table consumes less than is planned, the index twice as much
      - {series: 'mayfly_consumed_units_total{kind="write",TableName="orders",instance="db:8000"}', values: '0+240000x90'}
      - {series: 'mayfly_consumed_units_total{kind="write",TableName="orders",index="byDay",instance="db:8000"}', values: '0+120000x90'}
      - {series: 'mayfly_consumed_units_total{kind="write",TableName="orders",index="other",instance="db:8000"}', values: '0+600000x90'}
    alert_rule_test:
      - alertname: MayflyWriteCapacity
        eval_time: 70m
        exp_alerts:
          - exp_labels: {severity: ticket, instance: db:8000, TableName: orders, index: byDay}
            exp_annotations:
              summary: 'orders, index byDay, of db:8000 consumes 2k write units a second, more than planned'
              description: 'Plan anew with mayfly plan: capacity, partitions and cost grow with it.'
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, dir, "rules.yaml", "test.yaml")
}

// promtool checks rules and runs their tests.
func promtool(t *testing.T, dir, rules, tests string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: it is in Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", tests}} {
		command := exec.Command(path, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// metricName matches one of our metrics in an expression.
var metricName = regexp.MustCompile(`\b(mayfly_[a-z0-9_]+|TimeToLiveDeletedItemCount)\b`)

// TestDashboard: each panel asks for something of ours. That it is there to be asked for is
// internal/program's TestMetricsExist.
func TestDashboard(t *testing.T) {
	all := panels(t)
	for _, p := range all {
		for _, expr := range p.exprs {
			if !metricName.MatchString(expr) {
				t.Errorf("panel %q: %s names no metric of ours", p.title, expr)
			}
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d panels", len(all))
	}
}

type panel struct {
	title string
	exprs []string
}

// panels reads the dashboard as Grafana does: it has variables for the open values of its
// expressions, and no two panels share an ID or overlap.
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
