package timeseries

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// MetricQuery selects samples of a metric, of all devices.
type MetricQuery struct {
	Metric   string    // one of Spec.Metrics
	From, To time.Time // From is in the range, To is not; at most 10 years apart
	Newest   bool      // newest first
	Limit    int       // of samples; 0: all
	// After continues after a MetricPage, or after a sample (MetricPlaceAfter). It belongs to one
	// Metric and order.
	After string
}

// Metric returns the samples of a metric from all devices, ordered by time, and with equal Keys by
// device. They contain that metric and no other. It queries an index, one day after another and all
// shards of a day at once. The index is eventually consistent, so a write may appear later than in
// Range. An error ends the sequence; it can continue from MetricPlaceAfter the last sample.
func (r *Reader) Metric(ctx context.Context, q MetricQuery) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		err := r.checkMetricQuery(&q)
		var behind *Sample
		if err == nil {
			behind, err = readMetricPlace(&q)
		}
		if err != nil {
			yield(Sample{}, err)
			return
		}
		low, high, days := q.rest(behind)
		count := 0
		for _, day := range days {
			for s, err := range r.metricDay(ctx, &q, day, low, high) {
				if err == nil && behind != nil && !q.follows(&s, behind) {
					continue
				}
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

// MetricPage returns a part of Metric's samples: up to Limit, or 1,000. Next is the After of the
// next page. It is a position in the order of Keys and devices, so it stays valid when samples
// arrive or expire, in any process.
func (r *Reader) MetricPage(ctx context.Context, q MetricQuery) (p Page, err error) {
	if q.Limit == 0 {
		q.Limit = pageDefault
	}
	limit := q.Limit
	if limit > 0 {
		q.Limit++ // an additional one shows that there is a next page
	}
	for s, err := range r.Metric(ctx, q) {
		if err != nil {
			return Page{}, err
		}
		if len(p.Samples) == limit {
			p.Next = MetricPlaceAfter(q, p.Samples[limit-1])
			break
		}
		p.Samples = append(p.Samples, s)
	}
	return p, nil
}

// rest returns the days to query, in their order, and the bounds of sort keys. The bounds include
// the Key of the sample before, because other devices may have the same one.
func (q *MetricQuery) rest(behind *Sample) (low, high string, days []time.Time) {
	low, high = bound(q.From), bound(q.To)
	days = daysOf(q.From, q.To)
	if q.Newest {
		slices.Reverse(days)
	}
	if behind == nil {
		return low, high, days
	}
	day := behind.Time.Truncate(24 * time.Hour)
	if q.Newest {
		high = min(high, behind.Key)
		return low, high, slices.DeleteFunc(days, day.Before)
	}
	low = max(low, behind.Key)
	return low, high, slices.DeleteFunc(days, day.After)
}

// follows reports whether a sample comes after another one.
func (q *MetricQuery) follows(s, behind *Sample) bool {
	order := byKeyAndDevice(s, behind)
	if q.Newest {
		return order < 0
	}
	return order > 0
}

func (r *Reader) checkMetricQuery(q *MetricQuery) error {
	switch {
	case !slices.Contains(r.series.spec.Metrics, q.Metric):
		return fmt.Errorf("series %q has no index of metric %q", r.series.spec.Table, q.Metric)
	case q.From.IsZero() || q.To.IsZero() || q.To.Before(q.From) || q.To.Sub(q.From) > 10*year:
		return fmt.Errorf("a range across devices needs a begin and an end, at most 10 years apart")
	case q.Limit < 0:
		return fmt.Errorf("the limit %d is negative", q.Limit)
	}
	return nil
}

// daysOf returns the days in UTC that a range touches.
func daysOf(from, to time.Time) (days []time.Time) {
	for day := from.UTC().Truncate(24 * time.Hour); day.Before(to); day = day.Add(24 * time.Hour) {
		days = append(days, day)
	}
	return days
}

func (r *Reader) metricDay(ctx context.Context, q *MetricQuery, day time.Time, low, high string) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if low > high {
			return
		}
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
					":b": attr.S(bucket(q.Metric, day, shard)), ":low": attr.S(low), ":high": attr.S(high),
				},
			}
			if q.Limit > 0 && q.Limit < 1000 {
				in.Limit = aws.Int32(int32(q.Limit + 1))
			}
			sources = append(sources, newSource(ctx, r.series, in))
		}
		settled(merge(sources, q.Newest, byKeyAndDevice), q.Newest)(yield)
	}
}

// settled sorts samples in the order of Keys by device too, and removes duplicates. An index leaves
// samples with equal Keys unordered: many devices may have the same values at one instant. It holds
// the samples of one Key in memory.
func settled(samples iter.Seq2[Sample, error], newest bool) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		var alike []Sample
		give := func() (more bool) {
			sort.SliceStable(alike, func(i, j int) bool {
				if newest {
					i, j = j, i
				}
				return byKeyAndDevice(&alike[i], &alike[j]) < 0
			})
			for i, s := range alike {
				if i > 0 && s.Device == alike[i-1].Device {
					continue
				}
				if !yield(s, nil) {
					return false
				}
			}
			alike = alike[:0]
			return true
		}
		for s, err := range samples {
			if err != nil {
				yield(Sample{}, err)
				return
			}
			if len(alike) > 0 && alike[0].Key != s.Key && !give() {
				return
			}
			alike = append(alike, s)
		}
		give()
	}
}
