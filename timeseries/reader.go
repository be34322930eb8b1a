package timeseries

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// ReaderOptions configure a Reader. The zero value is valid.
type ReaderOptions struct {
	// Strong reads see every write acknowledged before them, at twice the cost. Default: eventually
	// consistent reads. Metric ignores it, because indexes have no strong reads.
	Strong bool
	// Parallel is the number of concurrent calls of Latest. Default: 8. Range: 1 to 256.
	Parallel int
}

// Reader reads samples. It omits expired ones even if the endpoint removes them late. Its methods
// are safe for concurrent use.
type Reader struct {
	series *Series
	o      ReaderOptions
}

// Reader returns a new reader.
func (s *Series) Reader(o ReaderOptions) *Reader {
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	o.Parallel = min(max(o.Parallel, 1), 256)
	return &Reader{s, o}
}

// Query selects samples of a device.
type Query struct {
	Device string
	// From is the first instant, and To the first one after the range. Zero: no bound.
	From, To time.Time
	// Newest first. Default: oldest first.
	Newest bool
	// Metrics selects metrics: it omits others, tags, and samples with none of them. Default:
	// everything. At most 50.
	Metrics []string
	// Limit is the maximum number of samples. Default: 0, all.
	Limit int
	// After continues after a Page, or after a sample (PlaceAfter). It belongs to one Device and
	// order.
	After string
}

const projectedMax = 50

func (q *Query) validate() error {
	if err := checkDevice(q.Device); err != nil {
		return err
	}
	switch {
	case q.Limit < 0:
		return fmt.Errorf("the limit %d is negative", q.Limit)
	case len(q.Metrics) > projectedMax:
		return fmt.Errorf("%d metrics are too many; the limit is %d", len(q.Metrics), projectedMax)
	case !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From):
		return fmt.Errorf("the range ends at %s, before it begins at %s", q.To.Format(time.RFC3339Nano), q.From.Format(time.RFC3339Nano))
	}
	for _, name := range q.Metrics {
		if err := checkMetric(name); err != nil {
			return err
		}
	}
	return nil
}

// bounds returns the sort keys around all samples of the range. They include the sample after which
// the range continues, which callers skip.
func (q *Query) bounds() (low, high, behind string, err error) {
	low, high = keyFirst, keyLast
	if !q.From.IsZero() {
		low = bound(q.From)
	}
	if !q.To.IsZero() {
		high = bound(q.To)
	}
	if q.After == "" {
		return low, high, "", nil
	}
	if behind, err = readPlace(q.After, q); err != nil {
		return "", "", "", err
	}
	if q.Newest {
		high = min(high, behind)
	} else {
		low = max(low, behind)
	}
	return low, high, behind, nil
}

// Range returns the samples of a device in the order of Keys, and so of time. It reads ahead. An
// error ends the sequence; it can continue from PlaceAfter the last sample.
func (r *Reader) Range(ctx context.Context, q Query) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		low, high, behind, err := q.bounds()
		if err == nil {
			err = q.validate()
		}
		var shards Shards
		if err == nil {
			shards, err = r.series.shards.of(ctx, q.Device)
		}
		if err != nil {
			yield(Sample{}, err)
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
		if low >= high {
			return
		}
		for shard := range shards.Readers(r.series.spec.Now()) {
			sources = append(sources, newSource(ctx, r.series, r.request(&q, partition(q.Device, shard), low, high)))
		}
		count := 0
		for s, err := range merge(sources, q.Newest, byKey) {
			if err != nil {
				yield(Sample{}, err)
				return
			}
			if s.Key == behind {
				continue
			}
			if !yield(s, nil) {
				return
			}
			if count++; count == q.Limit {
				return
			}
		}
	}
}

// byKey orders the samples of one device. Samples with equal keys are equal, in any shard.
func byKey(a, b *Sample) int { return cmp.Compare(a.Key, b.Key) }

// byKeyAndDevice orders the samples of many devices.
func byKeyAndDevice(a, b *Sample) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Device, b.Device))
}

// Page is a part of a range.
type Page struct {
	Samples []Sample
	Next    string // Query.After of the next page; "" on the last one
}

// pageDefault is the default limit of a page.
const pageDefault = 1000

// Page returns a part of a range: up to Limit samples, or 1,000. Next is a position in the order of
// keys, so it stays valid when the number of shards changes or samples expire, in any process.
func (r *Reader) Page(ctx context.Context, q Query) (Page, error) {
	if err := q.validate(); err != nil {
		return Page{}, err
	}
	if q.Limit == 0 {
		q.Limit = pageDefault
	}
	limit := q.Limit
	q.Limit++ // an additional one shows that there is a next page
	var p Page
	for s, err := range r.Range(ctx, q) {
		if err != nil {
			return Page{}, err
		}
		if len(p.Samples) == limit {
			p.Next = PlaceAfter(q, p.Samples[limit-1])
			break
		}
		p.Samples = append(p.Samples, s)
	}
	return p, nil
}

// merge returns the samples of ordered sources in one order, and drops duplicates. With newest the
// sources and the result have the opposite order.
func merge(sources []*source, newest bool, order func(a, b *Sample) int) iter.Seq2[Sample, error] {
	if newest {
		forward := order
		order = func(a, b *Sample) int { return forward(b, a) }
	}
	return func(yield func(Sample, error) bool) {
		var last *Sample
		left := slices.Clone(sources)
		for {
			var first *source
			for i := 0; i < len(left); {
				head, err := left[i].head()
				if err != nil {
					yield(Sample{}, err)
					return
				}
				if head == nil {
					left = slices.Delete(left, i, i+1)
					continue
				}
				if first == nil || order(head, first.ready) < 0 {
					first = left[i]
				}
				i++
			}
			if first == nil {
				return
			}
			s := first.take()
			if last != nil && order(last, s) == 0 {
				continue
			}
			last = s
			if !yield(*s, nil) {
				return
			}
		}
	}
}
