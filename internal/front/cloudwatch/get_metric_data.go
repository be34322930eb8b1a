package cloudwatch

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/front/rpc"
	"github.com/mayflydb/mayfly/internal/points"
)

// GetMetricDataInput is the input of GetMetricData.
type GetMetricDataInput struct {
	MetricDataQueries  []MetricDataQuery
	StartTime, EndTime *rpc.Time
	NextToken          *string
	ScanBy             *string
	MaxDatapoints      *int32
}

// MetricDataQuery is one series of a request.
type MetricDataQuery struct {
	Id, Expression, Label *string
	MetricStat            *MetricStat
	ReturnData            *bool
	Period                *int32 // of an expression
}

// MetricStat is a statistic of a metric.
type MetricStat struct {
	Metric *Metric
	Period *int32 // seconds
	Stat   *string
	Unit   *string
}

// GetMetricDataOutput is the answer.
type GetMetricDataOutput struct {
	MetricDataResults []MetricDataResult
	Messages          []struct{ Code, Value string }
	NextToken         *string
}

// MetricDataResult is one series of an answer. StatusCode is PartialData if the next page continues
// it.
type MetricDataResult struct {
	Id, Label  string
	Timestamps []rpc.Time
	Values     []float64
	StatusCode string
}

const (
	queriesMost = 500
	valuesMost  = 100_800 // of an answer
	ascending   = "TimestampAscending"
)

// getMetricData checks the request, and then reads one query after the other until the page is full.
func (m *metrics) getMetricData(in *GetMetricDataInput) (*GetMetricDataOutput, error) {
	if problem := in.problem(); problem != "" {
		return nil, &failure{"ValidationError", problem}
	}
	var from pagePlace
	if in.NextToken != nil {
		var ok bool
		if from, ok = parsePlace(*in.NextToken); !ok || from.query >= len(in.MetricDataQueries) {
			return nil, badToken()
		}
	}
	room := valuesMost
	if in.MaxDatapoints != nil {
		room = int(*in.MaxDatapoints)
	}
	out := &GetMetricDataOutput{MetricDataResults: []MetricDataResult{}, Messages: []struct{ Code, Value string }{}}
	for i := from.query; i < len(in.MetricDataQueries); i++ {
		q := &in.MetricDataQueries[i]
		if q.ReturnData != nil && !*q.ReturnData {
			continue
		}
		found := m.read(q.MetricStat.Metric, q.MetricStat.Unit, newSpan(in.StartTime, in.EndTime, *q.MetricStat.Period))
		if in.ScanBy == nil || *in.ScanBy != ascending {
			slices.Reverse(found)
		}
		if from.begun && i == from.query {
			found = from.after(found)
		}
		cut := min(len(found), room)
		result := q.result(found[:cut])
		room -= cut
		if cut < len(found) {
			result.StatusCode = "PartialData"
			next := pagePlace{query: i}
			if cut > 0 {
				next.begun, next.minute = true, found[cut-1].Minute
			}
			token := next.String()
			out.NextToken = &token
		}
		out.MetricDataResults = append(out.MetricDataResults, result)
		if out.NextToken != nil {
			break
		}
	}
	return out, nil
}

func (q *MetricDataQuery) result(found []points.Point) MetricDataResult {
	r := MetricDataResult{
		Id: *q.Id, Label: *q.MetricStat.Metric.MetricName, StatusCode: "Complete",
		Timestamps: []rpc.Time{}, Values: []float64{},
	}
	if q.Label != nil {
		r.Label = *q.Label
	}
	value := statistics[*q.MetricStat.Stat]
	for _, p := range found {
		r.Timestamps = append(r.Timestamps, timeOf(p.Minute))
		r.Values = append(r.Values, value(p))
	}
	return r
}

// problem returns the first mistake in the request, or "".
func (in *GetMetricDataInput) problem() string {
	switch {
	case len(in.MetricDataQueries) == 0:
		return "The parameter MetricDataQueries is required."
	case len(in.MetricDataQueries) > queriesMost:
		return "The collection MetricDataQueries must not have a size greater than 500."
	case in.StartTime == nil:
		return "The parameter StartTime is required."
	case in.EndTime == nil:
		return "The parameter EndTime is required."
	case !in.StartTime.Before(in.EndTime.Time):
		return "The parameter StartTime must be less than the parameter EndTime."
	case in.ScanBy != nil && *in.ScanBy != ascending && *in.ScanBy != "TimestampDescending":
		return "The parameter ScanBy must be a value in the set [ TimestampDescending, TimestampAscending ]."
	case in.MaxDatapoints != nil && (*in.MaxDatapoints < 1 || *in.MaxDatapoints > valuesMost):
		return "The parameter MaxDatapoints must be between 1 and 100800."
	}
	ids := map[string]bool{}
	for i := range in.MetricDataQueries {
		q := &in.MetricDataQueries[i]
		at := fmt.Sprintf("MetricDataQueries.member.%d.", i+1)
		if problem := q.problem(at); problem != "" {
			return problem
		}
		if ids[*q.Id] {
			return `The values for parameter id in MetricDataQueries are not unique: "` + *q.Id + `".`
		}
		ids[*q.Id] = true
	}
	return ""
}

// isID reports whether s is a lower-case letter and up to 254 letters, digits and underscores.
func isID(s string) bool {
	const lower, rest = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	return s != "" && len(s) <= 255 && strings.Contains(lower, s[:1]) && strings.Trim(s, lower+rest) == ""
}

func (q *MetricDataQuery) problem(at string) string {
	switch {
	case q.Id == nil || !isID(*q.Id):
		return "The parameter " + at + "Id must begin with a lower case letter, and have only letters, digits and underscores."
	case (q.Expression == nil) == (q.MetricStat == nil):
		return "Exactly one of the parameters " + at + "MetricStat and " + at + "Expression must be specified."
	case q.Expression != nil:
		return "The parameter " + at + "Expression is not served: mayfly evaluates no math expressions. Request the metrics, and compute in the client."
	case q.MetricStat.Metric == nil:
		return "The parameter " + at + "MetricStat.Metric is required."
	case q.MetricStat.Metric.Namespace == nil || q.MetricStat.Metric.MetricName == nil:
		return "The parameters Namespace and MetricName of " + at + "MetricStat.Metric are required."
	case q.MetricStat.Stat == nil:
		return "The parameter " + at + "MetricStat.Stat is required."
	case statistics[*q.MetricStat.Stat] == nil:
		return "The parameter " + at + "MetricStat.Stat must be a value in the set [ SampleCount, Average, Sum, Minimum, Maximum ]; mayfly keeps no percentiles."
	}
	if problem := checkDimensions(q.MetricStat.Metric.Dimensions, true); problem != "" {
		return problem
	}
	return checkPeriod(at+"MetricStat.Period", q.MetricStat.Period)
}

// pagePlace is where a page ended.
type pagePlace struct {
	query  int   // the number of the query to continue with
	begun  bool  // a value of it was returned already
	minute int64 // that value's
}

// String returns the place as a token.
func (p pagePlace) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %t %d", p.query, p.begun, p.minute))
}

func parsePlace(token string) (p pagePlace, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return p, false
	}
	parts := strings.Split(string(text), " ")
	if len(parts) != 3 {
		return p, false
	}
	query, err1 := strconv.Atoi(parts[0])
	minute, err2 := strconv.ParseInt(parts[2], 10, 64)
	p = pagePlace{query, parts[1] == "true", minute}
	return p, err1 == nil && err2 == nil && query >= 0 && p.String() == token
}

// after returns the points that follow the place, in either order. The point at the place may be gone
// by now.
func (p pagePlace) after(found []points.Point) []points.Point {
	descending := len(found) > 1 && found[0].Minute > found[1].Minute
	i := slices.IndexFunc(found, func(f points.Point) bool {
		return f.Minute != p.minute && (f.Minute < p.minute) == descending
	})
	if i < 0 {
		return nil
	}
	return found[i:]
}

func timeOfMillis(ms int64) time.Time { return time.UnixMilli(ms) }
