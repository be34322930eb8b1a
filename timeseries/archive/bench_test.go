package archive

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
)

// BenchmarkWrite encodes and compresses a day of 100 devices with three metrics, sorted, into a Parquet file.
func BenchmarkWrite(b *testing.B) {
	const rows = 200_000
	m := newMetrics()
	all := make([]*row, rows)
	for i := range all {
		s := reading(i, rows)
		s.Key = s.Time.Format("2006-01-02T15:04:05.000000000Z") + "#0123456789ab"
		r, err := m.row(&s)
		must(b, err)
		all[i] = &r
	}
	for b.Loop() {
		w := newWriter(io.Discard, m.names)
		for _, r := range sortRows(all) {
			must(b, w.write(r))
		}
		must(b, w.close())
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func reading(i, rows int) timeseries.Sample {
	return timeseries.Sample{
		Device: fmt.Sprintf("device-%02d", i%100), Time: start.Add(-time.Duration((rows-i)/100) * 30 * time.Second),
		Values: map[string]float64{"temperature": float64(i%300) / 10, "pressure": 1000 + float64(i%50)/10, "wind": float64(i%90) / 10},
	}
}

// BenchmarkExport exports 100,000 samples of 100 devices from a durable series into a directory. It
// reads the table through the API of DynamoDB.
func BenchmarkExport(b *testing.B) {
	const rows = 100_000
	x := newWorld(b, b.TempDir(), mayfly.Options{Start: start, Frozen: true}, 0)
	samples := make([]timeseries.Sample, rows)
	for i := range samples {
		samples[i] = reading(i, rows)
	}
	must(b, x.w.Write(b.Context(), samples...))
	for b.Loop() {
		report, err := New(Dir(b.TempDir())).Export(b.Context(), x.series, ExportOptions{})
		must(b, err)
		if report.Written != rows {
			b.Fatalf("reports %+v", report)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
