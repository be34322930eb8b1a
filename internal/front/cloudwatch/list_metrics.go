package cloudwatch

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/mayflydb/mayfly/internal/points"
)

// ListMetricsInput is the input of ListMetrics.
type ListMetricsInput struct {
	Namespace, MetricName *string
	Dimensions            []Dimension // without a value: any value
	RecentlyActive        *string     // PT3H: only metrics with a point in the last three hours
	NextToken             *string
}

// ListMetricsOutput is the answer: at most listMost metrics, by name.
type ListMetricsOutput struct {
	Metrics   []Metric
	NextToken *string
}

const (
	listMost      = 500
	recentMinutes = 3 * 60
)

// listMetrics lists the metrics that have points.
func (m *metrics) listMetrics(in *ListMetricsInput) (*ListMetricsOutput, error) {
	since := points.Oldest
	switch {
	case in.RecentlyActive == nil:
	case *in.RecentlyActive == "PT3H":
		since = floorMinute(timeOfMillis(m.points.Now())) - recentMinutes
	default:
		return nil, invalidValue("The parameter RecentlyActive must be PT3H.")
	}
	if problem := checkDimensions(in.Dimensions, false); problem != "" {
		return nil, invalidValue(problem)
	}
	keys := m.points.Keys(since)
	if in.NextToken != nil {
		last, ok := parseListToken(*in.NextToken)
		if !ok {
			return nil, badToken()
		}
		keys = slices.DeleteFunc(keys, func(k points.Key) bool { return k.Compare(last) <= 0 })
	}
	keys = slices.DeleteFunc(keys, func(k points.Key) bool { return !in.matches(k) })
	out := &ListMetricsOutput{Metrics: []Metric{}}
	if len(keys) > listMost {
		keys = keys[:listMost]
		token := newListToken(keys[listMost-1])
		out.NextToken = &token
	}
	for _, k := range keys {
		out.Metrics = append(out.Metrics, metricOf(k))
	}
	return out, nil
}

// matches reports whether a metric passes the filters. It may have more dimensions than they name.
func (in *ListMetricsInput) matches(k points.Key) bool {
	if in.Namespace != nil && *in.Namespace != string(k.Namespace) || in.MetricName != nil && *in.MetricName != k.Metric {
		return false
	}
	dimensions := k.Dimensions()
	for _, filter := range in.Dimensions {
		if !slices.ContainsFunc(dimensions, func(d points.Dimension) bool {
			return d.Name == *filter.Name && (filter.Value == nil || *filter.Value == d.Value)
		}) {
			return false
		}
	}
	return true
}

// A token is the last metric of its page, so that metrics that appear between two pages do no harm.

func newListToken(last points.Key) string {
	text, _ := json.Marshal(last) // strings have no error
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseListToken(token string) (last points.Key, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	return last, err == nil && json.Unmarshal(text, &last) == nil
}
