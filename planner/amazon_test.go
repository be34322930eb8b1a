package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"gopkg.in/yaml.v3"
)

// settingsRead are the settings that a form has, by resource and by name of the alarm.
type settingsRead struct {
	Scalings map[string]scalingRead
	Alarms   map[string]alarmRead
}

// scalingRead has the members of RegisterScalableTarget and of PutScalingPolicy, as the API's
// reference lists them.
type scalingRead struct {
	ServiceNamespace, ResourceId, ScalableDimension string `json:",omitempty"`

	MinCapacity, MaxCapacity int `json:",omitempty"`

	PolicyName, PolicyType                   string `json:",omitempty"`
	TargetTrackingScalingPolicyConfiguration struct {
		TargetValue                   float64
		PredefinedMetricSpecification struct{ PredefinedMetricType string }
	}
}

// alarmRead has the members of PutMetricAlarm.
type alarmRead struct {
	AlarmName, AlarmDescription, Namespace, MetricName, Statistic, ComparisonOperator, TreatMissingData string

	AlarmActions                                 []string
	Dimensions                                   []dimensionRead
	Period, EvaluationPeriods, DatapointsToAlarm int
	Threshold                                    float64
	Metrics                                      []metricRead
}

type dimensionRead struct{ Name, Value string }

type metricRead struct {
	Id, Expression, Label string
	ReturnData            bool
	MetricStat            *metricStatRead
}

type metricStatRead struct {
	Metric struct {
		Namespace, MetricName string
		Dimensions            []dimensionRead
	}
	Period int
	Stat   string
}

// strictly decodes JSON whose members v must all have.
func strictly(t *testing.T, text []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// and returns the target with the policy's members.
func (s scalingRead) and(policy scalingRead) scalingRead {
	policy.MinCapacity, policy.MaxCapacity = s.MinCapacity, s.MaxCapacity
	policy.ServiceNamespace, policy.ResourceId, policy.ScalableDimension = s.ServiceNamespace, s.ResourceId, s.ScalableDimension
	return policy
}

func (s scalingRead) key() string { return s.ResourceId + " " + s.ScalableDimension }

func readCLI(t *testing.T, text []byte) settingsRead {
	t.Helper()
	s := settingsRead{map[string]scalingRead{}, map[string]alarmRead{}}
	for line := range strings.Lines(string(text)) {
		command, body, ok := strings.Cut(strings.TrimSuffix(line, "'\n"), " --cli-input-json '")
		if !ok || strings.Contains(body, "'") {
			t.Fatalf("no command: %s", line)
		}
		switch command {
		case "aws application-autoscaling register-scalable-target":
			var x scalingRead
			strictly(t, []byte(body), &x)
			s.Scalings[x.key()] = x
		case "aws application-autoscaling put-scaling-policy":
			var x scalingRead
			strictly(t, []byte(body), &x)
			s.Scalings[x.key()] = s.Scalings[x.key()].and(x)
		case "aws cloudwatch put-metric-alarm":
			var a alarmRead
			strictly(t, []byte(body), &a)
			s.Alarms[a.AlarmName] = a
		default:
			t.Fatalf("unknown command %s", command)
		}
	}
	return s
}

func readCloudFormation(t *testing.T, text []byte) settingsRead {
	t.Helper()
	var template struct {
		AWSTemplateFormatVersion string `yaml:"AWSTemplateFormatVersion"`
		Description              string `yaml:"Description"`
		Resources                map[string]struct {
			Type       string         `yaml:"Type"`
			Properties map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&template); err != nil { // it refuses a name that is there twice
		t.Fatal(err)
	}
	if template.AWSTemplateFormatVersion != "2010-09-09" {
		t.Errorf("version %q", template.AWSTemplateFormatVersion)
	}
	s := settingsRead{map[string]scalingRead{}, map[string]alarmRead{}}
	targets := map[string]scalingRead{}
	// The policies come after the targets, so that their references are known.
	order := slices.SortedFunc(maps.Keys(template.Resources), func(a, b string) int {
		return strings.Compare(template.Resources[a].Type, template.Resources[b].Type)
	})
	for _, id := range order {
		if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			t.Errorf("the identifier %q does not consist of letters and digits", id)
		}
		r := template.Resources[id]
		ref := r.Properties["ScalingTargetId"]
		delete(r.Properties, "ScalingTargetId")
		body, err := json.Marshal(r.Properties)
		if err != nil {
			t.Fatal(err)
		}
		switch r.Type {
		case "AWS::ApplicationAutoScaling::ScalableTarget":
			var x scalingRead
			strictly(t, body, &x)
			targets[id] = x
		case "AWS::ApplicationAutoScaling::ScalingPolicy":
			var x scalingRead
			strictly(t, body, &x)
			target, ok := targets[ref.(map[string]any)["Ref"].(string)]
			if !ok {
				t.Errorf("%s refers to %v, which is not there", id, ref)
			}
			s.Scalings[target.key()] = target.and(x)
		case "AWS::CloudWatch::Alarm":
			var a alarmRead
			strictly(t, body, &a)
			s.Alarms[a.AlarmName] = a
		default:
			t.Errorf("unknown type %s", r.Type)
		}
	}
	return s
}

// terraformBlock is a block with its values: numbers, texts, lists, maps, and references as text.
type terraformBlock struct {
	t      *testing.T
	values map[string]any
	blocks map[string][]*terraformBlock
}

func terraformOf(t *testing.T, body *hclsyntax.Body, text []byte) *terraformBlock {
	t.Helper()
	b := &terraformBlock{t, map[string]any{}, map[string][]*terraformBlock{}}
	for name, a := range body.Attributes {
		v, problems := a.Expr.Value(nil)
		if problems.HasErrors() {
			r := a.Expr.Range()
			b.values[name] = string(text[r.Start.Byte:r.End.Byte])
			continue
		}
		b.values[name] = plainValue(v)
	}
	for _, inner := range body.Blocks {
		b.blocks[inner.Type] = append(b.blocks[inner.Type], terraformOf(t, inner.Body, text))
	}
	return b
}

func plainValue(v cty.Value) any {
	switch {
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Bool:
		return v.True()
	case v.Type() == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f
	case v.Type().IsTupleType():
		var all []string
		for _, one := range v.AsValueSlice() {
			all = append(all, one.AsString())
		}
		return all
	}
	all := map[string]string{}
	for name, one := range v.AsValueMap() {
		all[name] = one.AsString()
	}
	return all
}

// take returns a value and removes it, so that left finds the members that nothing has read.
func take[T any](b *terraformBlock, name string) (v T) {
	v, _ = b.values[name].(T)
	delete(b.values, name)
	return v
}

func (b *terraformBlock) left() {
	b.t.Helper()
	if len(b.values) > 0 {
		b.t.Errorf("unknown arguments %v", b.values)
	}
}

func (b *terraformBlock) dimensions() (all []dimensionRead) {
	values := take[map[string]string](b, "dimensions")
	for _, name := range []string{"TableName", "GlobalSecondaryIndexName", "Operation"} {
		if v, ok := values[name]; ok {
			all = append(all, dimensionRead{name, v})
		}
	}
	if len(all) != len(values) {
		b.t.Errorf("unknown dimensions: %v", values)
	}
	return all
}

func (b *terraformBlock) alarm() alarmRead {
	a := alarmRead{
		AlarmName: take[string](b, "alarm_name"), AlarmDescription: take[string](b, "alarm_description"), AlarmActions: take[[]string](b, "alarm_actions"),
		Namespace: take[string](b, "namespace"), MetricName: take[string](b, "metric_name"), Statistic: take[string](b, "statistic"), Period: int(take[float64](b, "period")), Dimensions: b.dimensions(),
		EvaluationPeriods: int(take[float64](b, "evaluation_periods")), DatapointsToAlarm: int(take[float64](b, "datapoints_to_alarm")),
		Threshold: take[float64](b, "threshold"), ComparisonOperator: take[string](b, "comparison_operator"), TreatMissingData: take[string](b, "treat_missing_data"),
	}
	for _, q := range b.blocks["metric_query"] {
		m := metricRead{Id: take[string](q, "id"), Expression: take[string](q, "expression"), Label: take[string](q, "label"), ReturnData: take[bool](q, "return_data")}
		for _, metric := range q.blocks["metric"] {
			m.MetricStat = &metricStatRead{Period: int(take[float64](metric, "period")), Stat: take[string](metric, "stat")}
			m.MetricStat.Metric.Namespace, m.MetricStat.Metric.MetricName = take[string](metric, "namespace"), take[string](metric, "metric_name")
			m.MetricStat.Metric.Dimensions = metric.dimensions()
			metric.left()
		}
		q.left()
		a.Metrics = append(a.Metrics, m)
	}
	b.left()
	return a
}

func readTerraform(t *testing.T, text []byte) settingsRead {
	t.Helper()
	if formatted := hclwrite.Format(text); !bytes.Equal(formatted, text) {
		t.Errorf("terraform fmt changes the text: %s", cmp.Diff(string(text), string(formatted)))
	}
	file, problems := hclsyntax.ParseConfig(text, "table.tf", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	s := settingsRead{map[string]scalingRead{}, map[string]alarmRead{}}
	targets := map[string]scalingRead{}
	seen := map[string]bool{}
	for _, r := range file.Body.(*hclsyntax.Body).Blocks {
		id := strings.Join(r.Labels, ".")
		if seen[id] || r.Type != "resource" {
			t.Errorf("%s %s is there twice, or no resource", r.Type, id)
		}
		seen[id] = true
		b := terraformOf(t, r.Body, text)
		switch r.Labels[0] {
		case "aws_appautoscaling_target":
			x := scalingRead{
				ServiceNamespace: take[string](b, "service_namespace"), ResourceId: take[string](b, "resource_id"), ScalableDimension: take[string](b, "scalable_dimension"),
				MinCapacity: int(take[float64](b, "min_capacity")), MaxCapacity: int(take[float64](b, "max_capacity")),
			}
			targets[id] = x
		case "aws_appautoscaling_policy":
			of, _, _ := strings.Cut(take[string](b, "resource_id"), ".resource_id")
			target, ok := targets[of]
			if !ok || take[string](b, "service_namespace") != of+".service_namespace" || take[string](b, "scalable_dimension") != of+".scalable_dimension" {
				t.Errorf("%s refers to %s, which is not there, or to two targets", id, of)
			}
			x := scalingRead{PolicyName: take[string](b, "name"), PolicyType: take[string](b, "policy_type")}
			tracking := b.blocks["target_tracking_scaling_policy_configuration"][0]
			x.TargetTrackingScalingPolicyConfiguration.TargetValue = take[float64](tracking, "target_value")
			metric := tracking.blocks["predefined_metric_specification"][0]
			x.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification.PredefinedMetricType = take[string](metric, "predefined_metric_type")
			tracking.left()
			metric.left()
			s.Scalings[target.key()] = target.and(x)
		case "aws_cloudwatch_metric_alarm":
			a := b.alarm()
			s.Alarms[a.AlarmName] = a
		default:
			t.Errorf("unknown type %s", r.Labels[0])
		}
		b.left()
	}
	return s
}

func amazonSettings(t *testing.T, w Workload, table AmazonTable) *AmazonSettings {
	t.Helper()
	s, err := made(t, w, USEast1).Amazon(table)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The plain case: a table, its writes and reads, and the figures of its plan.
func TestAmazon(t *testing.T) {
	w := Workload{Writes: 1000, Mix: Mix{Eventual: 3000}, ItemBytes: 1024, Scaling: Scaling{MinWrite: 100, MaxWrite: 1400, Target: 0.65}}
	got := readCLI(t, amazonSettings(t, w, AmazonTable{Name: "orders", Topic: "arn:aws:sns:us-east-1:111122223333:alarms"}).CLI())
	writes := got.Scalings["table/orders dynamodb:table:WriteCapacityUnits"]
	if fmt.Sprintf("%+v", writes) != "{ServiceNamespace:dynamodb ResourceId:table/orders ScalableDimension:dynamodb:table:WriteCapacityUnits MinCapacity:100 MaxCapacity:1400 "+
		"PolicyName:DynamoDBWriteCapacityUtilization:table/orders PolicyType:TargetTrackingScaling "+
		"TargetTrackingScalingPolicyConfiguration:{TargetValue:65 PredefinedMetricSpecification:{PredefinedMetricType:DynamoDBWriteCapacityUtilization}}}" {
		t.Errorf("%+v", writes)
	}
	if len(got.Scalings) != 2 || got.Scalings["table/orders dynamodb:table:ReadCapacityUnits"].MaxCapacity != 40_000 {
		t.Errorf("%+v", got.Scalings)
	}
	if names := slices.Sorted(maps.Keys(got.Alarms)); !slices.Equal(names, []string{"orders-consumed-reads", "orders-consumed-writes", "orders-system-errors", "orders-throttled-requests"}) {
		t.Errorf("alarms %v", names)
	}
	for name, want := range map[string]struct {
		threshold float64
		text      string
	}{
		// 80 % of 1,400 is less than 1,250, a quarter above 1,000
		"orders-consumed-writes":    {1120 * 300, "More than 1,120 write units a second are consumed: 80.0 % of the highest capacity of 1,400."},
		"orders-consumed-reads":     {1875 * 300, "More than 1,875 read units a second are consumed: a quarter above the planned peak of 1,500."},
		"orders-throttled-requests": {30, "More than 30 requests in five minutes are throttled. The capacity is too low, or a partition is hot."},
		"orders-system-errors":      {1200, "More than 1,200 requests in five minutes end with an error of the service itself. Clients retry them."},
	} {
		a := got.Alarms[name]
		if a.Threshold != want.threshold || a.AlarmDescription != want.text || !slices.Equal(a.AlarmActions, []string{"arn:aws:sns:us-east-1:111122223333:alarms"}) {
			t.Errorf("%s: %v, %q, %v", name, a.Threshold, a.AlarmDescription, a.AlarmActions)
		}
		if a.EvaluationPeriods != 2 || a.DatapointsToAlarm != 2 || a.ComparisonOperator != "GreaterThanThreshold" || a.TreatMissingData != "notBreaching" {
			t.Errorf("%+v", a)
		}
	}
	a := got.Alarms["orders-consumed-writes"]
	if a.Namespace != "AWS/DynamoDB" || a.MetricName != "ConsumedWriteCapacityUnits" || a.Statistic != "Sum" || a.Period != 300 || !slices.Equal(a.Dimensions, []dimensionRead{{"TableName", "orders"}}) || a.Metrics != nil {
		t.Errorf("%+v", a)
	}
	a = got.Alarms["orders-system-errors"]
	if len(a.Metrics) != 11 || a.Metrics[0].Expression != "SUM(FILL(METRICS(), 0))" || !a.Metrics[0].ReturnData || a.MetricName != "" || a.Period != 0 {
		t.Errorf("%+v", a) // CloudWatch allows ten metrics and an expression
	}
	for _, m := range a.Metrics[1:] {
		if m.ReturnData || m.MetricStat.Metric.MetricName != "SystemErrors" || len(m.MetricStat.Metric.Dimensions) != 2 || m.MetricStat.Period != 300 || m.MetricStat.Stat != "Sum" {
			t.Errorf("%+v", m)
		}
	}
}

// The three forms have the same content. The names of the indexes differ only in characters that
// identifiers cannot have.
func TestAmazonForms(t *testing.T) {
	w := orders()
	for _, name := range []string{"by-Day", "by.day", "byDay2", "---", "..."} {
		w.Indexes = append(w.Indexes, Index{Name: name, Reads: 5})
	}
	for _, table := range []AmazonTable{{Name: "orders"}, {Name: "or-ders.2", Topic: "arn:aws:sns:eu-west-1:111122223333:a"}, {Name: "orders", OnDemand: true}} {
		s := amazonSettings(t, w, table)
		want := readCLI(t, s.CLI())
		scalings, alarms := 16, 17 // the table and seven indexes; two alarms are of the table, and byDay has no reads
		if table.OnDemand {
			scalings = 0
		}
		if len(want.Scalings) != scalings || len(want.Alarms) != alarms {
			t.Errorf("%d scalings and %d alarms, want %d and %d", len(want.Scalings), len(want.Alarms), scalings, alarms)
		}
		if diff := cmp.Diff(want, readCloudFormation(t, s.CloudFormation())); diff != "" {
			t.Errorf("CloudFormation: %s", diff)
		}
		if diff := cmp.Diff(want, readTerraform(t, s.Terraform())); diff != "" {
			t.Errorf("Terraform: %s", diff)
		}
	}
}

func TestAmazonRefuses(t *testing.T) {
	r := made(t, Workload{Writes: 1, ItemBytes: 100}, USEast1)
	for _, c := range []struct {
		table AmazonTable
		want  string
	}{
		{AmazonTable{}, `table name: "" does not have 3 to 255`},
		{AmazonTable{Name: "it's"}, `table name: "it's" does not have`},
		{AmazonTable{Name: "orders", Topic: "alarms"}, `topic: "alarms" is not the ARN of an SNS topic`},
		{AmazonTable{Name: "orders", Topic: "arn:aws:sqs:us-east-1:111122223333:alarms"}, `is not the ARN of an SNS topic`},
		{AmazonTable{Name: "orders", Topic: `arn:aws:sns:us-east-1:111122223333:a"b`}, `is not the ARN of an SNS topic`},
	} {
		if _, err := r.Amazon(c.table); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.table, err, c.want)
		}
	}
}
