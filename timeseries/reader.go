package timeseries

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// ReaderOptions say how a Reader reads. The zero value is ready to use.
type ReaderOptions struct {
	// Strong reads see every write that was acknowledged before them, at twice the cost. Default: eventually consistent reads. Indexes know no other.
	Strong bool
	// Parallel is how many calls go on at one time for Latest. Default: 8. Range: 1 to 256.
	Parallel int
}

// Reader reads samples. What has expired it leaves out, also where the endpoint is late. All methods may be called at once from many goroutines.
type Reader struct {
	series *Series
	o      ReaderOptions
}

// Reader makes a reader.
func (s *Series) Reader(o ReaderOptions) *Reader {
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	o.Parallel = min(max(o.Parallel, 1), 256)
	return &Reader{s, o}
}

// Query says which samples of a device are wanted.
type Query struct {
	Device string
	// From is the first instant, and To the one behind the last. Zero: no bound.
	From, To time.Time
	// Newest first. Default: oldest first.
	Newest bool
	// Metrics leaves out all others, tags as well, and samples that have none of them. Default: everything. At most 50.
	Metrics []string
	// Limit is how many samples there are at most. Default: 0, all.
	Limit int
	// After goes on where a Page ended, or behind a sample (PlaceAfter). It belongs to the same Device and order.
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

// bounds are the sort keys between which all samples of the range are; the one behind which it goes on is among them, and is to be passed over.
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

// Range gives the samples of a device in the order of their keys, which is that of time. It reads ahead. An error ends it; PlaceAfter the last sample is where to go on.
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

// byKey orders the samples of one device. Two that are the same are one, wherever they are.
func byKey(a, b *Sample) int { return cmp.Compare(a.Key, b.Key) }

// byKeyAndDevice orders the samples of many.
func byKeyAndDevice(a, b *Sample) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Device, b.Device))
}

// Page is a part of a range.
type Page struct {
	Samples []Sample
	Next    string // Query.After of the next page; "": there is none
}

// pageDefault is how many samples a page has where no limit is given.
const pageDefault = 1000

// Page gives a part of a range: up to Limit samples, or 1,000. Next is a place in the order of keys and not in a shard, so that it stays right when the device is
// spread over more shards, or samples expire, or the process is another one.
func (r *Reader) Page(ctx context.Context, q Query) (Page, error) {
	if err := q.validate(); err != nil {
		return Page{}, err
	}
	if q.Limit == 0 {
		q.Limit = pageDefault
	}
	limit := q.Limit
	q.Limit++ // one more tells whether there is a next page
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

// merge gives the samples of sources in one order; of two that are alike by it, one. Each source is in that order, or newest first in the opposite one.
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
