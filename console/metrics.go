package console

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"sort"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are the metrics of an endpoint at an instant.
type metrics map[string]*dto.MetricFamily

// metrics reads /metrics of the endpoint.
func (e *endpoint) metrics(ctx context.Context) (metrics, error) {
	text, err := e.ask(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	return p.TextToMetricFamilies(bytes.NewReader(text))
}

// label returns the value of a metric's label.
func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// value returns the value of a counter or a gauge.
func value(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}

// all returns the metrics of a name.
func (m metrics) all(name string) []*dto.Metric { return m[name].GetMetric() }

// sum returns the sum of the metrics of a name.
func (m metrics) sum(name string) (total float64) {
	for _, one := range m.all(name) {
		total += value(one)
	}
	return total
}

// distribution is a histogram: counts of values up to bounds. Distributions of one metric can be
// added and subtracted.
type distribution struct {
	bounds []float64 // the last one is +Inf
	counts []float64 // of values up to each bound and above the one before
	sum    float64
}

// distribution returns the sum of the histograms of a name that keep accepts; nil: all.
func (m metrics) distribution(name string, keep func(*dto.Metric) bool) distribution {
	var d distribution
	for _, one := range m.all(name) {
		hist := one.GetHistogram()
		if hist == nil || keep != nil && !keep(one) {
			continue
		}
		d.sum += hist.GetSampleSum()
		before := 0.0
		buckets := hist.GetBucket()
		for i, b := range buckets {
			n := float64(b.GetCumulativeCount())
			d.add(i, b.GetUpperBound(), n-before)
			before = n
		}
		if n := len(buckets); n == 0 || !math.IsInf(buckets[n-1].GetUpperBound(), 1) {
			d.add(n, math.Inf(1), float64(hist.GetSampleCount())-before)
		}
	}
	return d
}

func (d *distribution) add(i int, bound, n float64) {
	if i == len(d.bounds) {
		d.bounds, d.counts = append(d.bounds, bound), append(d.counts, 0)
	}
	d.counts[i] += n
}

// since returns the values that came after an earlier reading.
func (d distribution) since(before distribution) distribution {
	if len(before.counts) != len(d.counts) || before.total() > d.total() {
		return d // the first reading, or the server has started again
	}
	out := distribution{d.bounds, slices.Clone(d.counts), d.sum - before.sum}
	for i, n := range before.counts {
		out.counts[i] -= n
	}
	return out
}

func (d distribution) total() (n float64) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

// quantile returns the bound that a share of the values does not exceed; 0 if there are none.
func (d distribution) quantile(share float64) float64 {
	want, seen := share*d.total(), 0.0
	if want == 0 {
		return 0
	}
	for i, c := range d.counts {
		if seen += c; seen >= want {
			return d.bounds[i]
		}
	}
	return math.Inf(1)
}

// calls are the calls of one operation.
type calls struct {
	operation string
	count     float64
	errors    float64
	duration  distribution
}

// operations returns the calls by operation, the most frequent first.
func (m metrics) operations() []calls {
	by := map[string]*calls{}
	at := func(name string) *calls {
		if by[name] == nil {
			by[name] = &calls{operation: name}
		}
		return by[name]
	}
	for _, one := range m.all("mayfly_requests_total") {
		c := at(label(one, "operation"))
		c.count += value(one)
		if label(one, "code") != "OK" {
			c.errors += value(one)
		}
	}
	for name, c := range by {
		c.duration = m.distribution("mayfly_request_duration_seconds", func(one *dto.Metric) bool { return label(one, "operation") == name })
	}
	var all []calls
	for _, c := range by {
		all = append(all, *c)
	}
	sort.Slice(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[j].count, all[i].count), cmp.Compare(all[i].operation, all[j].operation)) < 0
	})
	return all
}
