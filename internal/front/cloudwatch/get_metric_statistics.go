package cloudwatch

import (
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/rpc"
)

// GetMetricStatisticsInput is the input of GetMetricStatistics.
type GetMetricStatisticsInput struct {
	Namespace, MetricName          *string
	Dimensions                     []Dimension
	StartTime, EndTime             *rpc.Time
	Period                         *int32 // seconds
	Statistics, ExtendedStatistics []string
	Unit                           *string
}

// GetMetricStatisticsOutput is the answer. Datapoints are by time.
type GetMetricStatisticsOutput struct {
	Label      string
	Datapoints []Datapoint
}

// Datapoint is the values of one period.
type Datapoint struct {
	Timestamp                                   rpc.Time
	SampleCount, Average, Sum, Minimum, Maximum *float64
	Unit                                        string
}

// datapointsMost is the greatest number of periods in a request of GetMetricStatistics.
const datapointsMost = 1440

// getMetricStatistics checks the required parameters, each value, and then their combination.
func (m *metrics) getMetricStatistics(in *GetMetricStatisticsInput) (*GetMetricStatisticsOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	s := newSpan(in.StartTime, in.EndTime, *in.Period)
	if periods := (s.to - s.from + s.period - 1) / s.period; periods > datapointsMost {
		return nil, invalidCombination("You have requested up to " + thousands(periods) + " datapoints, which exceeds the limit of 1,440. " +
			"You may reduce the datapoints requested by increasing Period, or decreasing the time range.")
	}
	out := &GetMetricStatisticsOutput{Label: *in.MetricName, Datapoints: []Datapoint{}}
	for _, p := range m.read(&Metric{in.Namespace, in.MetricName, in.Dimensions}, in.Unit, s) {
		d := Datapoint{Timestamp: timeOf(p.Minute), Unit: unitOf(*in.MetricName)}
		members := map[string]**float64{
			"SampleCount": &d.SampleCount, "Average": &d.Average, "Sum": &d.Sum, "Minimum": &d.Minimum, "Maximum": &d.Maximum,
		}
		for _, name := range in.Statistics {
			v := statistics[name](p)
			*members[name] = &v
		}
		out.Datapoints = append(out.Datapoints, d)
	}
	return out, nil
}

func (in *GetMetricStatisticsInput) check() error {
	for _, p := range []struct {
		name    string
		present bool
	}{
		{"Namespace", in.Namespace != nil}, {"MetricName", in.MetricName != nil},
		{"StartTime", in.StartTime != nil}, {"EndTime", in.EndTime != nil}, {"Period", in.Period != nil},
	} {
		if !p.present {
			return missing(p.name)
		}
	}
	for _, name := range in.Statistics {
		if statistics[name] == nil {
			return invalidValue("The parameter Statistics.member.N must be a value in the set [ SampleCount, Average, Sum, Minimum, Maximum ].")
		}
	}
	if problem := checkDimensions(in.Dimensions, true); problem != "" {
		return invalidValue(problem)
	}
	if problem := checkPeriod("Period", in.Period); problem != "" {
		return invalidValue(problem)
	}
	switch {
	case len(in.ExtendedStatistics) > 0:
		return invalidValue("The parameter ExtendedStatistics is not served: mayfly keeps no percentiles.")
	case len(in.Statistics) == 0:
		return invalidCombination("At least one of the parameters Statistics and ExtendedStatistics must be specified.")
	case !in.StartTime.Before(in.EndTime.Time):
		return invalidValue("The parameter StartTime must be less than the parameter EndTime.")
	}
	return nil
}

// thousands returns a number with commas between groups of three digits.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
