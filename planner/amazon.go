package planner

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// AmazonTable names the table at Amazon DynamoDB that a plan is for.
type AmazonTable struct {
	Name string // 3 to 255 of a-z, A-Z, 0-9, _, . and -
	// leave out the scaling policies: the table has no provisioned capacity
	OnDemand bool
	// ARN of the SNS topic that the alarms notify. Default: none
	Topic string
}

// AmazonSettings are autoscaling and CloudWatch alarms of a table, with the figures of a plan.
// CloudFormation, Terraform and CLI return them as text.
type AmazonSettings struct {
	table    string
	scalings []scaling
	alarms   []cloudWatchAlarm
}

// scaling is the autoscaling of one kind of capacity of the table or of a global index.
type scaling struct {
	id     string // such as "table_writes"
	target scalableTarget
	policy scalingPolicy
}

// scalableTarget has the fields that CloudFormation and RegisterScalableTarget share.
type scalableTarget struct {
	ServiceNamespace  string `json:"ServiceNamespace" yaml:"ServiceNamespace"`
	ResourceID        string `json:"ResourceId" yaml:"ResourceId"`
	ScalableDimension string `json:"ScalableDimension" yaml:"ScalableDimension"`
	MinCapacity       int    `json:"MinCapacity" yaml:"MinCapacity"`
	MaxCapacity       int    `json:"MaxCapacity" yaml:"MaxCapacity"`
}

// scalingPolicy has the fields that CloudFormation and PutScalingPolicy share. The policy's target
// is a reference at CloudFormation, and three fields at PutScalingPolicy.
type scalingPolicy struct {
	PolicyName string         `json:"PolicyName" yaml:"PolicyName"`
	PolicyType string         `json:"PolicyType" yaml:"PolicyType"`
	Tracking   targetTracking `json:"TargetTrackingScalingPolicyConfiguration" yaml:"TargetTrackingScalingPolicyConfiguration"`
}

type targetTracking struct {
	TargetValue float64          `json:"TargetValue" yaml:"TargetValue"` // percent
	Metric      predefinedMetric `json:"PredefinedMetricSpecification" yaml:"PredefinedMetricSpecification"`
}

type predefinedMetric struct {
	Type string `json:"PredefinedMetricType" yaml:"PredefinedMetricType"`
}

// cloudWatchAlarm has the fields that CloudFormation and PutMetricAlarm share. It watches either
// one metric or the sum of Metrics.
type cloudWatchAlarm struct {
	id                 string          // such as "table_consumed_writes"
	AlarmName          string          `json:"AlarmName" yaml:"AlarmName"`
	AlarmDescription   string          `json:"AlarmDescription" yaml:"AlarmDescription"`
	AlarmActions       []string        `json:"AlarmActions,omitempty" yaml:"AlarmActions,omitempty"`
	Namespace          string          `json:"Namespace,omitempty" yaml:"Namespace,omitempty"`
	MetricName         string          `json:"MetricName,omitempty" yaml:"MetricName,omitempty"`
	Dimensions         []dimension     `json:"Dimensions,omitempty" yaml:"Dimensions,omitempty"`
	Statistic          string          `json:"Statistic,omitempty" yaml:"Statistic,omitempty"`
	Period             int             `json:"Period,omitempty" yaml:"Period,omitempty"` // seconds
	Metrics            []alarmedMetric `json:"Metrics,omitempty" yaml:"Metrics,omitempty"`
	EvaluationPeriods  int             `json:"EvaluationPeriods" yaml:"EvaluationPeriods"`
	DatapointsToAlarm  int             `json:"DatapointsToAlarm" yaml:"DatapointsToAlarm"`
	Threshold          float64         `json:"Threshold" yaml:"Threshold"`
	ComparisonOperator string          `json:"ComparisonOperator" yaml:"ComparisonOperator"`
	TreatMissingData   string          `json:"TreatMissingData" yaml:"TreatMissingData"`
}

type dimension struct {
	Name  string `json:"Name" yaml:"Name"`
	Value string `json:"Value" yaml:"Value"`
}

// alarmedMetric is a metric of an alarm, or the expression over the others.
type alarmedMetric struct {
	ID         string      `json:"Id" yaml:"Id"`
	Expression string      `json:"Expression,omitempty" yaml:"Expression,omitempty"`
	Label      string      `json:"Label,omitempty" yaml:"Label,omitempty"`
	Stat       *metricStat `json:"MetricStat,omitempty" yaml:"MetricStat,omitempty"`
	ReturnData bool        `json:"ReturnData" yaml:"ReturnData"`
}

type metricStat struct {
	Metric metricName `json:"Metric" yaml:"Metric"`
	Period int        `json:"Period" yaml:"Period"`
	Stat   string     `json:"Stat" yaml:"Stat"`
}

type metricName struct {
	Namespace  string      `json:"Namespace" yaml:"Namespace"`
	MetricName string      `json:"MetricName" yaml:"MetricName"`
	Dimensions []dimension `json:"Dimensions" yaml:"Dimensions"`
}

const (
	dynamoDBMetrics = "AWS/DynamoDB"
	alarmPeriod     = 300 // seconds of one data point
	alarmPeriods    = 2   // data points above the threshold before an alarm fires
	// share of the highest capacity that counts as near it
	nearCapacity = 0.8
	// throttled requests per second that are worth an alarm, as in the rules for Prometheus
	throttledPerS = 0.1
	// share of the requests that may fail by a fault of the service, which the SDKs retry
	faultShare = 0.001
	faultsMin  = 10 // per period
)

// tableOperations are the operations whose metrics an alarm sums: CloudWatch has ThrottledRequests
// and SystemErrors of a table by operation only. An alarm can use ten metrics.
func tableOperations() []string {
	return []string{"GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"}
}

// Amazon returns the settings of the plan for a table at Amazon DynamoDB. The scaling policies have
// the target and limits of Workload.Scaling, for the table and each global index.
//
// An alarm of consumed capacity fires a quarter above the planned peak, and at 80 % of the highest
// capacity if that is less. The alarms of throttled requests and of system errors are of the table.
// The error reports a wrong name or topic.
func (r *Report) Amazon(t AmazonTable) (*AmazonSettings, error) {
	if len(t.Name) < 3 || len(t.Name) > 255 || strings.Trim(t.Name, nameLetters) != "" {
		return nil, fmt.Errorf("table name: %q does not have 3 to 255 of a-z, A-Z, 0-9, _, . and -", t.Name)
	}
	if t.Topic != "" && !isTopic(t.Topic) {
		return nil, fmt.Errorf("topic: %q is not the ARN of an SNS topic, such as arn:aws:sns:us-east-1:111122223333:alarms", t.Topic)
	}
	s := &AmazonSettings{table: t.Name}
	ids := map[string]bool{}
	for i, c := range r.Thresholds().Consumed {
		x := amazonResource{table: t.Name, index: c.Index, id: resourceID(c.Index, ids)}
		for _, k := range []struct {
			kind   Kind
			unit   string // the word for it in Amazon's names
			limits [2]float64
			above  float64
			peak   float64
		}{
			{Writes, "Write", [2]float64{r.Workload.Scaling.MinWrite, r.Workload.Scaling.MaxWrite}, c.Writes, r.Tracks[2*i].Peak},
			{Reads, "Read", [2]float64{r.Workload.Scaling.MinRead, r.Workload.Scaling.MaxRead}, c.Reads, r.Tracks[2*i+1].Peak},
		} {
			if !t.OnDemand {
				s.scalings = append(s.scalings, x.scaling(k.kind, k.unit, k.limits, r.Workload.Scaling.Target))
			}
			if k.above == 0 {
				continue
			}
			limit, reason := k.above, "a quarter above the planned peak of "+number(k.peak)
			if near := max(math.Floor(nearCapacity*k.limits[1]), 1); !t.OnDemand && near < limit {
				limit, reason = near, percent(nearCapacity)+" of the highest capacity of "+number(k.limits[1])
			}
			s.alarms = append(s.alarms, x.consumedAlarm(k.kind, k.unit, limit, reason))
		}
	}
	faults := max(math.Ceil((r.WritesPerS+r.ReadsPerS)*alarmPeriod*faultShare), faultsMin)
	s.alarms = append(s.alarms,
		sumAlarm(t.Name, "throttled_requests", "ThrottledRequests", throttledPerS*alarmPeriod,
			"are throttled. The capacity is too low, or a partition is hot."),
		sumAlarm(t.Name, "system_errors", "SystemErrors", faults,
			"end with an error of the service itself. Clients retry them."))
	if t.Topic != "" {
		for i := range s.alarms {
			s.alarms[i].AlarmActions = []string{t.Topic}
		}
	}
	return s, nil
}

// isTopic reports whether a text has the form of an SNS topic's ARN.
func isTopic(text string) bool {
	parts := strings.Split(text, ":")
	return len(parts) == 6 && parts[0] == "arn" && parts[2] == "sns" && parts[5] != "" && strings.Trim(text, nameLetters+":") == ""
}

// resourceID returns an identifier for the table (index "") or an index, in letters, digits and
// underscores, which none in taken has, and adds it there.
func resourceID(index string, taken map[string]bool) string {
	id := "table"
	if index != "" {
		id = "index_" + strings.Map(func(c rune) rune {
			if c == '.' || c == '-' || c == '_' {
				return -1
			}
			return c
		}, index)
	}
	// CloudFormation's identifiers have no underscores and begin words with capitals.
	bare := func(id string) string { return strings.ToLower(strings.ReplaceAll(id, "_", "")) }
	unique := id
	for n := 2; taken[bare(unique)]; n++ {
		unique = id + "_" + strconv.Itoa(n)
	}
	taken[bare(unique)] = true
	return unique
}

// amazonResource is the table, or one of its global indexes.
type amazonResource struct{ table, index, id string }

func (x amazonResource) scaling(k Kind, unit string, limits [2]float64, target float64) scaling {
	resource, dimension := "table/"+x.table, "dynamodb:table:"
	if x.index != "" {
		resource, dimension = resource+"/index/"+x.index, "dynamodb:index:"
	}
	metric := "DynamoDB" + unit + "CapacityUtilization"
	return scaling{
		id:     x.id + "_" + string(k),
		target: scalableTarget{"dynamodb", resource, dimension + unit + "CapacityUnits", int(limits[0]), int(limits[1])},
		policy: scalingPolicy{
			PolicyName: metric + ":" + resource, // as Amazon's console names it
			PolicyType: "TargetTrackingScaling",
			Tracking:   targetTracking{math.Round(target*1e4) / 100, predefinedMetric{metric}},
		},
	}
}

// consumedAlarm returns the alarm of a resource that consumes more than limit units a second.
func (x amazonResource) consumedAlarm(k Kind, unit string, limit float64, reason string) cloudWatchAlarm {
	name, dimensions := x.table, []dimension{{"TableName", x.table}}
	if x.index != "" {
		name, dimensions = x.table+"/"+x.index, append(dimensions, dimension{"GlobalSecondaryIndexName", x.index})
	}
	a := newAlarm(name+"-consumed-"+string(k), fmt.Sprintf("More than %s %s units a second are consumed: %s.", number(limit), strings.ToLower(unit), reason), limit*alarmPeriod)
	a.id = x.id + "_consumed_" + string(k)
	a.Namespace, a.MetricName, a.Dimensions = dynamoDBMetrics, "Consumed"+unit+"CapacityUnits", dimensions
	a.Statistic, a.Period = "Sum", alarmPeriod
	return a
}

// sumAlarm returns the alarm of a metric that CloudWatch has by operation.
func sumAlarm(table, id, metric string, threshold float64, result string) cloudWatchAlarm {
	a := newAlarm(table+"-"+strings.ReplaceAll(id, "_", "-"), fmt.Sprintf("More than %s requests in five minutes %s", number(threshold), result), threshold)
	a.id = "table_" + id
	a.Metrics = []alarmedMetric{{ID: "total", Expression: "SUM(FILL(METRICS(), 0))", Label: metric, ReturnData: true}}
	for i, operation := range tableOperations() {
		a.Metrics = append(a.Metrics, alarmedMetric{ID: "m" + strconv.Itoa(i+1), Stat: &metricStat{
			Metric: metricName{dynamoDBMetrics, metric, []dimension{{"TableName", table}, {"Operation", operation}}}, Period: alarmPeriod, Stat: "Sum",
		}})
	}
	return a
}

func newAlarm(name, description string, threshold float64) cloudWatchAlarm {
	return cloudWatchAlarm{
		AlarmName: name, AlarmDescription: description, EvaluationPeriods: alarmPeriods, DatapointsToAlarm: alarmPeriods, Threshold: threshold,
		ComparisonOperator: "GreaterThanThreshold", TreatMissingData: "notBreaching",
	}
}
