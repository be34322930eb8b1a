package bench

import (
	"bufio"
	"bytes"
	"context"
	"strconv"
	"strings"
)

// scrape is the part of a mayfly server's /metrics about expiry.
type scrape struct {
	buckets []bucket           // lateness at the commit, cumulative, ascending
	deleted map[string]float64 // expired items, by table
}

type bucket struct{ upTo, count float64 } // milliseconds; items

// scrape reads the metrics; ok is false for an endpoint without mayfly's.
func (e *endpoint) scrape(ctx context.Context) (s scrape, ok bool, err error) {
	a, err := e.exchange(ctx, []byte("GET /metrics HTTP/1.1\r\nHost: "+e.address+"\r\n\r\n"))
	if err != nil {
		return s, false, err
	}
	s = parseScrape(a.body)
	return s, a.status == 200 && len(s.buckets) > 0, nil
}

const (
	metricBucket  = `mayfly_lateness_commit_ms_bucket{le="`
	metricDeleted = `TimeToLiveDeletedItemCount{TableName="`
)

func parseScrape(text []byte) scrape {
	s := scrape{deleted: map[string]float64{}}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		for _, metric := range []string{metricBucket, metricDeleted} {
			rest, ok := strings.CutPrefix(lines.Text(), metric)
			if !ok {
				continue
			}
			label, number, ok := strings.Cut(rest, `"} `)
			value, err := strconv.ParseFloat(number, 64)
			if !ok || err != nil {
				continue
			}
			if metric == metricDeleted {
				s.deleted[label] = value
			} else if upTo, err := strconv.ParseFloat(label, 64); err == nil {
				s.buckets = append(s.buckets, bucket{upTo, value})
			}
		}
	}
	return s
}

// latenessSince returns the lateness of the histogram's values since an earlier scrape, or nil
// without values. It interpolates a quantile within its bucket; the greatest is the end of the last
// non-empty bucket. No value is above most, in milliseconds.
func (s scrape) latenessSince(before scrape, most float64) *Lateness {
	added := make([]bucket, len(s.buckets))
	for i, b := range s.buckets {
		added[i] = bucket{min(b.upTo, most), b.count}
		if i < len(before.buckets) {
			added[i].count -= before.buckets[i].count
		}
	}
	if len(added) == 0 || added[len(added)-1].count == 0 {
		return nil
	}
	return &Lateness{P50: quantileOf(added, 0.5), P99: quantileOf(added, 0.99), Max: quantileOf(added, 1)}
}

func quantileOf(cumulative []bucket, q float64) float64 {
	need := q * cumulative[len(cumulative)-1].count
	var below bucket
	for _, b := range cumulative {
		if b.count >= need {
			return round(below.upTo + (b.upTo-below.upTo)*(need-below.count)/(b.count-below.count))
		}
		below = b
	}
	return below.upTo
}
