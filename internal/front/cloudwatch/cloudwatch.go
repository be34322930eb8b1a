// Package cloudwatch implements the operations of CloudWatch that read metrics: GetMetricData,
// GetMetricStatistics and ListMetrics, one file each. Their data are the database's points, minute
// by minute, in the namespaces AWS/DynamoDB and AWS/Scheduler.
//
// Metrics have the names, dimensions and units that they have at Amazon, and there are no
// aggregates over dimensions that Amazon does not have. Periods are whole minutes. Percentiles and
// math expressions are refused.
//
// Sources: the CloudWatch API reference; "Metrics and dimensions" in the guides of DynamoDB and
// EventBridge Scheduler.
package cloudwatch

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/front/rpc"
	"github.com/mayflydb/mayfly/internal/front/wire"
	"github.com/mayflydb/mayfly/internal/points"
)

const (
	service = "monitoring" // in signatures
	target  = "GraniteServiceVersion20100801."
	xml     = "http://monitoring.amazonaws.com/doc/2010-08-01/"
)

// Actions returns the operations for the wire.
func Actions(r *points.Recorder) []wire.Action {
	m := &metrics{r}
	return []wire.Action{
		action("GetMetricData", m.getMetricData),
		action("GetMetricStatistics", m.getMetricStatistics),
		action("ListMetrics", m.listMetrics),
	}
}

// metrics answers from the points of a recorder.
type metrics struct{ points *points.Recorder }

// action returns an operation of the wire from a function of its input.
func action[In, Out any](name string, do func(*In) (*Out, error)) wire.Action {
	return wire.Action{
		Service: service, Prefix: "cloudwatch", Target: target + name, Namespace: xml,
		Do: func(_ context.Context, c *wire.Call) (any, error) {
			in := new(In)
			if err := c.Decode(in); err != nil {
				return nil, err
			}
			out, err := do(in)
			if err != nil {
				return nil, err
			}
			return out, nil
		},
	}
}

// failure is an error of the API, by its name in the API's model.
type failure struct{ code, message string }

func (f *failure) Error() string        { return f.code + ": " + f.message }
func (f *failure) ErrorCode() string    { return f.code }
func (f *failure) ErrorMessage() string { return f.message }
func (f *failure) HTTPStatus() int      { return http.StatusBadRequest }

func invalidValue(message string) error {
	return &failure{"InvalidParameterValueException", message}
}

func invalidCombination(message string) error {
	return &failure{"InvalidParameterCombinationException", message}
}

func missing(parameter string) error {
	return &failure{"MissingRequiredParameterException", "The parameter " + parameter + " is required."}
}

func badToken() error { return &failure{"InvalidNextToken", "The nextToken is invalid."} }

// Dimension is a dimension of a metric. A filter may lack the value.
type Dimension struct{ Name, Value *string }

// Metric names a metric.
type Metric struct {
	Namespace, MetricName *string
	Dimensions            []Dimension
}

// metricOf returns a key as a Metric.
func metricOf(k points.Key) Metric {
	namespace := string(k.Namespace)
	m := Metric{&namespace, &k.Metric, []Dimension{}}
	for _, d := range k.Dimensions() {
		m.Dimensions = append(m.Dimensions, Dimension{&d.Name, &d.Value})
	}
	return m
}

// unitOf returns the unit of a metric.
func unitOf(metric string) string {
	switch {
	case metric == points.Latency:
		return "Milliseconds"
	case metric == points.ReturnedBytes:
		return "Bytes"
	case strings.HasSuffix(metric, "Utilization"):
		return "Percent"
	}
	return "Count"
}

// The lengths of texts in requests.
const (
	namesMax      = 255
	valuesMax     = 1024
	dimensionsMax = 30
)

// checkDimensions returns the first mistake in dimensions, or "".
func checkDimensions(list []Dimension, valued bool) string {
	if len(list) > dimensionsMax {
		return "The collection Dimensions must not have a size greater than 30."
	}
	for _, d := range list {
		switch {
		case d.Name == nil || *d.Name == "" || len(*d.Name) > namesMax:
			return "The parameter Dimensions.member.N.Name must have 1 to 255 characters."
		case d.Value == nil && valued, d.Value != nil && (*d.Value == "" || len(*d.Value) > valuesMax):
			return "The parameter Dimensions.member.N.Value must have 1 to 1024 characters."
		}
	}
	return ""
}

// span is a range of time and its division into periods, in minutes.
type span struct{ from, to, period int64 }

// newSpan rounds start down and end up to whole minutes. A period begins at the start and at every
// multiple of period after it.
func newSpan(start, end *rpc.Time, period int32) span {
	from, to := floorMinute(start.Time), floorMinute(end.Add(time.Minute-time.Nanosecond))
	return span{from, to, int64(period) / 60}
}

func floorMinute(t time.Time) int64 {
	seconds := t.Unix()
	m := seconds / 60
	if seconds%60 < 0 {
		m--
	}
	return m
}

// checkPeriod returns the mistake in a period, or "".
func checkPeriod(name string, period *int32) string {
	if period == nil || *period < 60 || *period%60 != 0 {
		return "The parameter " + name + " must be a multiple of 60; mayfly keeps whole minutes."
	}
	return ""
}

// read returns the points of a metric, one for each period that has values, by time. A unit, unless
// nil, selects metrics with that unit only.
func (m *metrics) read(metric *Metric, unit *string, s span) (found []points.Point) {
	var dimensions []points.Dimension
	for _, d := range metric.Dimensions {
		dimensions = append(dimensions, points.Dimension{Name: *d.Name, Value: *d.Value})
	}
	k, ok := points.KeyOf(*metric.Namespace, *metric.MetricName, dimensions)
	if !ok || unit != nil && *unit != unitOf(k.Metric) {
		return nil
	}
	for _, p := range m.points.Points(k, s.from, s.to) {
		at := s.from + (p.Minute-s.from)/s.period*s.period
		if n := len(found); n == 0 || found[n-1].Minute != at {
			found = append(found, points.Point{Minute: at})
		}
		found[len(found)-1].Merge(p)
	}
	return found
}

func timeOf(minute int64) rpc.Time { return rpc.Time{Time: time.Unix(minute*60, 0).UTC()} }

// statistics are the values of a point by the names of the statistics.
var statistics = map[string]func(p points.Point) float64{
	"SampleCount": func(p points.Point) float64 { return float64(p.Count) },
	"Average":     func(p points.Point) float64 { return p.Sum / float64(p.Count) },
	"Sum":         func(p points.Point) float64 { return p.Sum },
	"Minimum":     func(p points.Point) float64 { return p.Min },
	"Maximum":     func(p points.Point) float64 { return p.Max },
}
