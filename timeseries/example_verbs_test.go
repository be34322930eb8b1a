package timeseries_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// weather returns a series in memory whose clock shows noon, and the database that stores it.
func weather(ctx context.Context) (*timeseries.Series, *mayfly.DB) {
	db, err := mayfly.Open("", mayfly.Options{Start: noon, Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	series, err := timeseries.Create(ctx, db.DynamoDB(), timeseries.Spec{
		Table: "weather", Retention: 30 * timeseries.Day, Metrics: []string{"temperature"}, Now: db.Clock().Now,
	})
	if err != nil {
		log.Fatal(err)
	}
	return series, db
}

// fill writes the readings of two devices: one every ten minutes of the hour before noon.
func fill(ctx context.Context, series *timeseries.Series) {
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	for i := range 6 {
		at := noon.Add(time.Duration(i-6) * 10 * time.Minute)
		err := w.Write(ctx,
			timeseries.Sample{Device: "roof", Time: at, Values: map[string]float64{"temperature": float64(i)}},
			timeseries.Sample{Device: "cellar", Time: at, Values: map[string]float64{"temperature": 11, "humidity": 80}})
		if err != nil {
			log.Fatal(err)
		}
	}
}

func show(s timeseries.Sample, err error) {
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Time.Format(time.TimeOnly), s.Device, s.Values["temperature"])
}

func ExampleWriter_Write() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	err = w.Write(ctx,
		timeseries.Sample{Device: "roof", Time: noon, Values: map[string]float64{"temperature": 4.1}},
		timeseries.Sample{Device: "roof", Time: noon.Add(-31 * timeseries.Day), Values: map[string]float64{"temperature": 3}})
	if partly, ok := errors.AsType[*timeseries.WriteError](err); ok {
		for _, refused := range partly.Refused {
			fmt.Println("sample", refused.Index, "is refused:", refused.Err.Reason)
		}
	}
	// Output: sample 1 is refused: beyond retention
}

func ExampleReader_Range() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	r := series.Reader(timeseries.ReaderOptions{Strong: true})
	for s, err := range r.Range(ctx, timeseries.Query{Device: "roof", From: noon.Add(-20 * time.Minute), Newest: true}) {
		show(s, err)
	}
	// Output:
	// 11:50:00 roof 5
	// 11:40:00 roof 4
}

// A page ends with the place at which the next one begins, in this process or another.
func ExampleReader_Page() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	r := series.Reader(timeseries.ReaderOptions{Strong: true})
	q := timeseries.Query{Device: "roof", Limit: 4}
	for {
		page, err := r.Page(ctx, q)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.Samples), "samples")
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	// Output:
	// 4 samples
	// 2 samples
}

func ExampleReader_Latest() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	latest, err := series.Reader(timeseries.ReaderOptions{Strong: true}).Latest(ctx, "roof", "cellar", "garage")
	show(latest["roof"], err)
	show(latest["cellar"], err)
	fmt.Println(len(latest), "devices")
	// Output:
	// 11:50:00 roof 5
	// 11:50:00 cellar 11
	// 2 devices
}

func ExampleReader_AllLatest() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	var devices []string
	for s, err := range series.Reader(timeseries.ReaderOptions{Strong: true}).AllLatest(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		devices = append(devices, s.Device)
	}
	slices.Sort(devices)
	fmt.Println(devices)
	// Output: [cellar roof]
}

// An index of Spec.Metrics has one metric of all devices.
func ExampleReader_Metric() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	r := series.Reader(timeseries.ReaderOptions{})
	for s, err := range r.Metric(ctx, timeseries.MetricQuery{Metric: "temperature", From: noon.Add(-10 * time.Minute), To: noon}) {
		show(s, err)
	}
	page, err := r.MetricPage(ctx, timeseries.MetricQuery{Metric: "temperature", From: noon.Add(-time.Hour), To: noon, Limit: 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Samples), "samples, more:", page.Next != "")
	// Unordered output:
	// 11:50:00 roof 5
	// 11:50:00 cellar 11
	// 10 samples, more: true
}

func ExampleReader_Scan() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	samples := 0
	for _, err := range series.Reader(timeseries.ReaderOptions{Strong: true}).Scan(ctx, 0, 1) {
		if err != nil {
			log.Fatal(err)
		}
		samples++
	}
	count, err := series.Count(ctx)
	fmt.Println(samples, count, err)
	// Output: 12 12 <nil>
}

// A device that writes faster than a partition can take is spread over several.
func ExampleSeries_SetShards() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	shards, err := series.SetShards(ctx, "roof", 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("writers use", shards.Writers(noon), "until", shards.NextAt.Format(time.TimeOnly), "and then", shards.Next)
	stored, err := series.Shards(ctx, "roof")
	fmt.Println("readers query", stored.Readers(noon), err)
	// Output:
	// writers use 1 until 12:02:00 and then 4
	// readers query 4 <nil>
}

func ExampleOpen() {
	ctx := context.Background()
	_, db := weather(ctx)
	defer db.Close()
	series, err := timeseries.Open(ctx, db.DynamoDB(), timeseries.Spec{Table: "weather"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(series.Spec().Retention, series.Spec().Metrics)
	_, err = timeseries.Open(ctx, db.DynamoDB(), timeseries.Spec{Table: "traffic"})
	fmt.Println(errors.Is(err, timeseries.ErrNoSeries))
	// Output:
	// 720h0m0s [temperature]
	// true
}

func ExampleIngest() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	file := strings.NewReader("device,time,temperature\nroof,2030-01-01T11:00:00Z,4.1\nroof,yesterday,4.2\n")
	report, err := timeseries.Ingest(ctx, w, file, timeseries.IngestOptions{Format: timeseries.CSV})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Written, "written,", report.Rejected, "rejected")
	for _, r := range report.First {
		fmt.Printf("line %d: %s\n", r.Line, r.Reason)
	}
	// Output:
	// 1 written, 1 rejected
	// line 3: bad time
}

// A receiver stores a broker's messages, which may be acknowledged when Receive returns.
func ExampleReceiver_Receive() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	aside := func(lines []timeseries.Rejected) error {
		for _, l := range lines {
			fmt.Println("rejected:", l.From, l.Reason)
		}
		return nil
	}
	r, err := timeseries.NewReceiver(w, timeseries.NDJSON, timeseries.Mapping{}, aside)
	if err != nil {
		log.Fatal(err)
	}
	n, err := r.Receive(ctx,
		timeseries.Message{Text: []byte(`{"device":"roof","time":"2030-01-01T11:00:00Z","temperature":4.1}`), From: "READINGS 7"},
		timeseries.Message{Text: []byte(`{"time":"2030-01-01T11:00:00Z","temperature":4.1}`), From: "READINGS 8"})
	fmt.Println("durable:", n, err)
	fmt.Println("written since the start:", r.Report().Written)
	// Output:
	// rejected: READINGS 8 bad device
	// durable: 1 <nil>
	// written since the start: 1
}

// A program that reads another source stores its position with the series.
func ExampleSeries_SaveCheckpoint() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	type position struct{ Offset int }
	if err := series.SaveCheckpoint(ctx, "meters", position{42}); err != nil {
		log.Fatal(err)
	}
	var p position
	found, err := series.LoadCheckpoint(ctx, "meters", &p)
	fmt.Println(found, p.Offset, err)
	// Output: true 42 <nil>
}

func ExampleSeries_Check() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	bad := series.Check(&timeseries.Sample{Device: "roof", Time: noon.Add(2 * time.Hour), Values: map[string]float64{"temperature": 4}}, noon)
	fmt.Println(bad.Reason)
	// Output: in the future
}

func ExampleRollup() {
	samples := func(yield func(timeseries.Sample, error) bool) {
		for i := range 36 {
			if !yield(timeseries.Sample{Time: noon.Add(time.Duration(i) * time.Hour), Values: map[string]float64{"temperature": float64(i)}}, nil) {
				return
			}
		}
	}
	for day, err := range timeseries.Rollup(samples, timeseries.Day, nil) {
		if err != nil {
			log.Fatal(err)
		}
		t := day.Stats["temperature"]
		fmt.Println(day.Start.Format(time.DateOnly), t.Count, "samples, mean", t.Mean)
	}
	// Output:
	// 2030-01-01 12 samples, mean 5.5
	// 2030-01-02 24 samples, mean 23.5
}
