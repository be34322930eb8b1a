package timeseries

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// MetricQuery says which samples of a metric are wanted, of all devices.
type MetricQuery struct {
	Metric   string    // one of Spec.Metrics
	From, To time.Time // the first instant, and the one behind the last; at most 10 years apart
	Newest   bool      // newest first
	Limit    int       // of samples; 0: all
}

// Metric gives what all devices have measured of a metric, in the order of time. The samples have that metric and no other. It asks one day after another, each
// day's shards at once, of an index, and so sees a write a moment later than Range does.
func (r *Reader) Metric(ctx context.Context, q MetricQuery) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if err := r.checkMetricQuery(&q); err != nil {
			yield(Sample{}, err)
			return
		}
		days := daysOf(q.From, q.To)
		if q.Newest {
			slices.Reverse(days)
		}
		count := 0
		for _, day := range days {
			for s, err := range r.metricDay(ctx, &q, day) {
				if !yield(s, err) || err != nil {
					return
				}
				if count++; count == q.Limit {
					return
				}
			}
		}
	}
}

func (r *Reader) checkMetricQuery(q *MetricQuery) error {
	switch {
	case !slices.Contains(r.series.spec.Metrics, q.Metric):
		return fmt.Errorf("series %q has no index of metric %q", r.series.spec.Table, q.Metric)
	case q.From.IsZero() || q.To.IsZero() || q.To.Before(q.From) || q.To.Sub(q.From) > 10*year:
		return fmt.Errorf("a range across devices has a beginning and an end, at most 10 years apart")
	case q.Limit < 0:
		return fmt.Errorf("the limit %d is less than 0", q.Limit)
	}
	return nil
}

// daysOf are the days in UTC that a range touches.
func daysOf(from, to time.Time) (days []time.Time) {
	for day := from.UTC().Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {
		days = append(days, day)
	}
	return days
}

func (r *Reader) metricDay(ctx context.Context, q *MetricQuery, day time.Time) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var sources []*source
		defer func() {
			cancel()
			for _, s := range sources {
				s.end()
			}
		}()
		for shard := range r.series.spec.MetricShards {
			in := &dynamodb.QueryInput{
				TableName: r.series.table(), IndexName: aws.String(indexOf(q.Metric)), ScanIndexForward: aws.Bool(!q.Newest),
				KeyConditionExpression:   aws.String("#b = :b AND #t BETWEEN :low AND :high"),
				ExpressionAttributeNames: map[string]string{"#b": bucketOf(q.Metric), "#t": attrTime},
				ExpressionAttributeValues: item{
					":b": text(bucket(q.Metric, day, shard)), ":low": text(bound(q.From)), ":high": text(bound(q.To)),
				},
			}
			if q.Limit > 0 && q.Limit < 1000 {
				in.Limit = aws.Int32(int32(q.Limit + 1))
			}
			sources = append(sources, newSource(ctx, r.series, in))
		}
		// Within one shard samples of one instant have no order, so what is alike may not follow on what it is like: only the same sample twice is taken for one.
		merge(sources, q.Newest, byKeyAndDevice)(yield)
	}
}
