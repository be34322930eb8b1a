package timeseries

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// request returns the Query of one shard.
func (r *Reader) request(q *Query, partition, low, high string) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName: r.series.table(), ConsistentRead: aws.Bool(r.o.Strong), ScanIndexForward: aws.Bool(!q.Newest),
		KeyConditionExpression:    aws.String("#d = :d AND #t BETWEEN :low AND :high"),
		ExpressionAttributeNames:  map[string]string{"#d": attrDevice, "#t": attrTime},
		ExpressionAttributeValues: item{":d": attr.S(partition), ":low": attr.S(low), ":high": attr.S(high)},
	}
	if len(q.Metrics) > 0 {
		project(in, q.Metrics)
	}
	// A page of a few samples need not be a page of 1 MB. The limit has room for the sample after
	// which the range continues.
	if q.Limit > 0 && q.Limit < 1000 {
		in.Limit = aws.Int32(int32(q.Limit + 1))
	}
	return in
}

// project limits a query to keys, TTL and some metrics.
func project(in *dynamodb.QueryInput, metrics []string) {
	in.ExpressionAttributeNames["#l"] = attrTTL
	names := []string{"#d", "#t", "#l"}
	for i, m := range metrics {
		name := fmt.Sprintf("#m%d", i)
		in.ExpressionAttributeNames[name] = m
		names = append(names, name)
	}
	in.ProjectionExpression = aws.String(strings.Join(names, ", "))
}

// source reads the samples of one Query page by page, and requests the next page while the caller
// uses one.
type source struct {
	series *Series
	in     *dynamodb.QueryInput
	ctx    context.Context
	coming chan page // receives the requested page; nil: no further page
	page   []Sample  // unused samples of the current page
	ready  *Sample
}

type page struct {
	samples []Sample
	more    bool
	err     error
}

func newSource(ctx context.Context, series *Series, in *dynamodb.QueryInput) *source {
	s := &source{series: series, in: in, ctx: ctx}
	s.fetch()
	return s
}

// fetch requests the next page.
func (s *source) fetch() {
	coming := make(chan page, 1)
	s.coming = coming
	go func() { coming <- s.get() }()
}

// end waits for a pending request. The caller cancels its context before.
func (s *source) end() {
	if s.coming != nil {
		<-s.coming
	}
}

// get reads a page. Calls never overlap.
func (s *source) get() (p page) {
	var out *dynamodb.QueryOutput
	err := patiently(s.ctx, readFor, func() (err error) {
		out, err = s.series.db.Query(s.ctx, s.in)
		return err
	})
	if ensure.Missing(err) {
		err = fmt.Errorf("%w: %w", ErrNoSeries, err)
	}
	if err != nil {
		return page{err: fmt.Errorf("read series %q: %w", s.series.spec.Table, err)}
	}
	now := s.series.spec.Now()
	p.samples = make([]Sample, 0, len(out.Items))
	for _, it := range out.Items {
		sample, deadline, err := readItem(it)
		if err != nil {
			return page{err: fmt.Errorf("read series %q: %w", s.series.spec.Table, err)}
		}
		if deadline.IsZero() || deadline.After(now) {
			if len(sample.Values) > 0 { // empty if the sample has none of the selected metrics
				p.samples = append(p.samples, sample)
			}
		}
	}
	s.in.ExclusiveStartKey, p.more = out.LastEvaluatedKey, len(out.LastEvaluatedKey) > 0
	return p
}

// head returns the next sample, or nil at the end.
func (s *source) head() (*Sample, error) {
	for s.ready == nil {
		switch {
		case len(s.page) > 0:
			s.ready, s.page = &s.page[0], s.page[1:]
		case s.coming == nil:
			return nil, nil
		default:
			p := <-s.coming
			s.coming = nil
			if p.err != nil {
				return nil, p.err
			}
			s.page = p.samples
			if p.more {
				s.fetch()
			}
		}
	}
	return s.ready, nil
}

// take returns the head and removes it.
func (s *source) take() *Sample {
	sample := s.ready
	s.ready = nil
	return sample
}
