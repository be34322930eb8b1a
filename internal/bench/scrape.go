package bench

import (
	"context"
	"sort"
	"strconv"
	"strings"
)

// scrape is a server's /metrics: values by name with labels.
type scrape map[string]float64

// Metrics of mayfly about expiry.
const (
	metricBucket  = `mayfly_lateness_commit_seconds_bucket{le="`
	metricDeleted = "TimeToLiveDeletedItemCount"
	metricArmed   = "mayfly_guard_armed"
)

// scrape reads the metrics; ok is false for an endpoint without mayfly's histogram of lateness,
// such as a worker of guard.
func (e *endpoint) scrape(ctx context.Context) (s scrape, ok bool, err error) {
	a, err := e.get(ctx, "/metrics")
	if err != nil {
		return nil, false, err
	}
	s = parseScrape(a.body)
	return s, a.status == 200 && len(s.buckets()) > 0, nil
}

func parseScrape(text []byte) scrape {
	s := scrape{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if value, err := strconv.ParseFloat(line[end+1:], 64); err == nil && end > 0 {
			s[line[:end]] = value
		}
	}
	return s
}

// ofTable returns a metric of a table; zero if it is missing.
func (s scrape) ofTable(metric, table string) float64 { return s[metric+`{TableName="`+table+`"}`] }

type bucket struct{ upTo, count float64 } // milliseconds; items

// buckets returns the lateness at the commit: cumulative, ascending.
func (s scrape) buckets() (list []bucket) {
	for name, count := range s {
		label, ok := strings.CutPrefix(name, metricBucket)
		if upTo, err := strconv.ParseFloat(strings.TrimSuffix(label, `"}`), 64); ok && err == nil {
			list = append(list, bucket{upTo * 1000, count})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].upTo < list[j].upTo })
	return list
}

// latenessSince returns the lateness of the histogram's values since an earlier scrape, or nil
// without values. It interpolates a quantile within its bucket; the greatest is the end of the last
// non-empty bucket. No value is above most, in milliseconds.
func (s scrape) latenessSince(before scrape, most float64) *Lateness {
	added, earlier := s.buckets(), before.buckets()
	for i := range added {
		added[i].upTo = min(added[i].upTo, most)
		if i < len(earlier) {
			added[i].count -= earlier[i].count
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
