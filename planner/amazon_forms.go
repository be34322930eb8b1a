package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// cloudFormationResource is a resource of a template.
type cloudFormationResource struct {
	Type       string `yaml:"Type"`
	Properties any    `yaml:"Properties"`
}

// reference is the name of another resource of the template.
type reference struct {
	Ref string `yaml:"Ref"`
}

// CloudFormation returns the settings as a CloudFormation template in YAML. The table need not be
// in the same stack.
func (s *AmazonSettings) CloudFormation() []byte {
	resources := &yaml.Node{Kind: yaml.MappingNode}
	add := func(id, kind string, properties any) {
		var value yaml.Node
		// Encoding these structs cannot fail.
		_ = value.Encode(cloudFormationResource{kind, properties})
		resources.Content = append(resources.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: logicalID(id)}, &value)
	}
	for _, x := range s.scalings {
		add(x.id+"_target", "AWS::ApplicationAutoScaling::ScalableTarget", x.target)
		add(x.id+"_policy", "AWS::ApplicationAutoScaling::ScalingPolicy", struct {
			ScalingTargetID reference `yaml:"ScalingTargetId"`
			scalingPolicy   `yaml:",inline"`
		}{reference{logicalID(x.id + "_target")}, x.policy})
	}
	for _, a := range s.alarms {
		add(a.id+"_alarm", "AWS::CloudWatch::Alarm", a)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	_ = encoder.Encode(struct {
		Version     string     `yaml:"AWSTemplateFormatVersion"`
		Description string     `yaml:"Description"`
		Resources   *yaml.Node `yaml:"Resources"`
	}{"2010-09-09", "Autoscaling and alarms of the table " + s.table + ", from mayfly plan aws", resources})
	return out.Bytes()
}

// logicalID returns the identifier as CloudFormation has it: "index_byDay_writes" is
// "IndexByDayWrites".
func logicalID(id string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(id, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// CLI returns the settings as commands of the AWS CLI, one a line, each with the JSON of its request.
// A shell can run them, and running them again changes nothing.
func (s *AmazonSettings) CLI() []byte {
	var out bytes.Buffer
	add := func(command string, request any) {
		// Marshalling these structs cannot fail. No name or description has a quote.
		body, _ := json.Marshal(request)
		fmt.Fprintf(&out, "aws %s --cli-input-json '%s'\n", command, body)
	}
	for _, x := range s.scalings {
		add("application-autoscaling register-scalable-target", x.target)
		add("application-autoscaling put-scaling-policy", struct {
			ServiceNamespace  string `json:"ServiceNamespace"`
			ResourceID        string `json:"ResourceId"`
			ScalableDimension string `json:"ScalableDimension"`
			scalingPolicy
		}{x.target.ServiceNamespace, x.target.ResourceID, x.target.ScalableDimension, x.policy})
	}
	for _, a := range s.alarms {
		add("cloudwatch put-metric-alarm", a)
	}
	return out.Bytes()
}

// Terraform returns the settings as resources of Terraform's AWS provider.
func (s *AmazonSettings) Terraform() []byte {
	var w hclWriter
	if len(s.scalings) > 0 {
		w.comment("If Terraform manages the table too, let autoscaling change its capacity:",
			"  lifecycle { ignore_changes = [read_capacity, write_capacity] }")
	}
	for _, x := range s.scalings {
		of := "aws_appautoscaling_target." + x.id
		w.resource("aws_appautoscaling_target", x.id, func() {
			w.attributes(
				"service_namespace", strconv.Quote(x.target.ServiceNamespace), "resource_id", strconv.Quote(x.target.ResourceID),
				"scalable_dimension", strconv.Quote(x.target.ScalableDimension),
				"min_capacity", strconv.Itoa(x.target.MinCapacity), "max_capacity", strconv.Itoa(x.target.MaxCapacity))
		})
		w.resource("aws_appautoscaling_policy", x.id, func() {
			w.attributes(
				"name", strconv.Quote(x.policy.PolicyName), "policy_type", strconv.Quote(x.policy.PolicyType),
				"service_namespace", of+".service_namespace", "resource_id", of+".resource_id", "scalable_dimension", of+".scalable_dimension")
			w.gap()
			w.block("target_tracking_scaling_policy_configuration", func() {
				w.attributes("target_value", decimal(x.policy.Tracking.TargetValue))
				w.gap()
				w.block("predefined_metric_specification", func() {
					w.attributes("predefined_metric_type", strconv.Quote(x.policy.Tracking.Metric.Type))
				})
			})
		})
	}
	for _, a := range s.alarms {
		w.resource("aws_cloudwatch_metric_alarm", a.id, func() { w.alarm(a) })
	}
	return w.Bytes()
}

// hclWriter writes Terraform's language as terraform fmt formats it.
type hclWriter struct {
	bytes.Buffer
	indent string
}

func (w *hclWriter) comment(lines ...string) {
	for _, l := range lines {
		w.WriteString("# " + l + "\n")
	}
}

// gap writes an empty line.
func (w *hclWriter) gap() { w.WriteByte('\n') }

func (w *hclWriter) resource(kind, name string, body func()) {
	if w.Len() > 0 {
		w.gap()
	}
	w.block("resource "+strconv.Quote(kind)+" "+strconv.Quote(name), body)
}

func (w *hclWriter) block(heading string, body func()) {
	w.WriteString(w.indent + heading + " {\n")
	w.indent += "  "
	body()
	w.indent = w.indent[2:]
	w.WriteString(w.indent + "}\n")
}

// attributes writes names and their values, with the equals signs in one column.
func (w *hclWriter) attributes(pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, len(pairs[i]))
	}
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(w, "%s%-*s = %s\n", w.indent, width, pairs[i], pairs[i+1])
	}
}

func (w *hclWriter) alarm(a cloudWatchAlarm) {
	pairs := []string{"alarm_name", strconv.Quote(a.AlarmName), "alarm_description", strconv.Quote(a.AlarmDescription)}
	if len(a.AlarmActions) > 0 {
		pairs = append(pairs, "alarm_actions", "["+strconv.Quote(a.AlarmActions[0])+"]")
	}
	if a.MetricName != "" {
		pairs = append(pairs, "namespace", strconv.Quote(a.Namespace), "metric_name", strconv.Quote(a.MetricName), "statistic", strconv.Quote(a.Statistic), "period", strconv.Itoa(a.Period))
	}
	w.attributes(append(pairs,
		"evaluation_periods", strconv.Itoa(a.EvaluationPeriods), "datapoints_to_alarm", strconv.Itoa(a.DatapointsToAlarm),
		"threshold", decimal(a.Threshold), "comparison_operator", strconv.Quote(a.ComparisonOperator), "treat_missing_data", strconv.Quote(a.TreatMissingData))...)
	if a.MetricName != "" {
		w.gap()
		w.dimensions(a.Dimensions)
	}
	for _, m := range a.Metrics {
		w.gap()
		w.block("metric_query", func() {
			if m.Stat == nil {
				w.attributes("id", strconv.Quote(m.ID), "expression", strconv.Quote(m.Expression), "label", strconv.Quote(m.Label), "return_data", strconv.FormatBool(m.ReturnData))
				return
			}
			w.attributes("id", strconv.Quote(m.ID))
			w.gap()
			w.block("metric", func() {
				metric := m.Stat.Metric
				w.attributes("namespace", strconv.Quote(metric.Namespace), "metric_name", strconv.Quote(metric.MetricName), "period", strconv.Itoa(m.Stat.Period), "stat", strconv.Quote(m.Stat.Stat))
				w.gap()
				w.dimensions(metric.Dimensions)
			})
		})
	}
}

func (w *hclWriter) dimensions(all []dimension) {
	w.block("dimensions =", func() {
		var pairs []string
		for _, d := range all {
			pairs = append(pairs, d.Name, strconv.Quote(d.Value))
		}
		w.attributes(pairs...)
	})
}
