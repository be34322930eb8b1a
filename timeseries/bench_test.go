package timeseries

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly"
)

// durable returns a series in a directory, with the machine's clock.
func durable(b *testing.B, spec Spec) *world {
	b.Helper()
	return newWorldIn(b, b.TempDir(), mayfly.Options{}, spec)
}

// devicesFile returns a CSV file with readings of many devices, one after another at each instant,
// until a time.
func devicesFile(devices, readings int, until time.Time) string {
	var text strings.Builder
	text.WriteString("device,time,temperature,pressure,wind\n")
	for i := range readings {
		at := until.Add(-time.Duration((readings-i)/devices) * time.Minute)
		fmt.Fprintf(&text, "device-%04d,%s,%.1f,%.1f,%.1f\n", i%devices, at.Format(time.RFC3339), float64(i%300)/10, 1000+float64(i%50)/10, float64(i%90)/10)
	}
	return text.String()
}

// BenchmarkIngest reads 100,000 readings of 100 devices from CSV into a durable series with retention, stream and latest samples.
func BenchmarkIngest(b *testing.B) {
	const readings = 100_000
	x := durable(b, Spec{Retention: 366 * Day})
	text := devicesFile(100, readings, x.db.Clock().Now())
	for round := 0; b.Loop(); round++ {
		report, err := Ingest(b.Context(), x.w, strings.NewReader(text), IngestOptions{
			Format: CSV, Checkpoint: fmt.Sprint("round", round), Mapping: Mapping{Device: "device"},
		})
		must(b, err)
		if report.Written != readings {
			b.Fatalf("reports %+v", report)
		}
	}
	b.ReportMetric(readings*float64(b.N)/b.Elapsed().Seconds(), "readings/s")
}

// BenchmarkLatest reads the latest samples of 10,000 devices.
func BenchmarkLatest(b *testing.B) {
	const devices = 10_000
	x := durable(b, Spec{Retention: 366 * Day})
	_, err := Ingest(b.Context(), x.w, strings.NewReader(devicesFile(devices, devices, x.db.Clock().Now())), IngestOptions{Format: CSV})
	must(b, err)
	names := make([]string, devices)
	for i := range names {
		names[i] = fmt.Sprintf("device-%04d", i)
	}
	for b.Loop() {
		latest, err := x.r.Latest(b.Context(), names...)
		must(b, err)
		if len(latest) != devices {
			b.Fatalf("%d devices", len(latest))
		}
	}
}

// BenchmarkYear reads one device's year of hourly readings.
func BenchmarkYear(b *testing.B) {
	x := durable(b, Spec{})
	_, err := Ingest(b.Context(), x.w, strings.NewReader(seattle(b)), IngestOptions{Format: CSV, Mapping: Mapping{As: "seattle"}})
	must(b, err)
	for b.Loop() {
		n := 0
		for _, err := range x.r.Range(b.Context(), Query{Device: "seattle"}) {
			must(b, err)
			n++
		}
		if n != 8759 {
			b.Fatalf("%d samples", n)
		}
	}
}
