package timeseries_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
)

// Store readings, read them, summarize them, and see them expire at the end of their retention.
func Example() {
	ctx := context.Background()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	db, err := mayfly.Open("", mayfly.Options{Start: noon, Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	series, err := timeseries.Create(ctx, db.DynamoDB(), timeseries.Spec{Table: "weather", Retention: 30 * 24 * time.Hour, Now: db.Clock().Now})
	if err != nil {
		log.Fatal(err)
	}
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	for i := range 90 {
		err := w.Write(ctx, timeseries.Sample{
			Device: "roof", Time: noon.Add(time.Duration(i-90) * time.Minute), Values: map[string]float64{"temperature": float64(i) / 10},
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	r := series.Reader(timeseries.ReaderOptions{Strong: true})
	latest, err := r.Latest(ctx, "roof", "cellar")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("latest:", latest["roof"].Time.Format(time.TimeOnly), latest["roof"].Values["temperature"])

	hours := timeseries.Rollup(r.Range(ctx, timeseries.Query{Device: "roof", From: noon.Add(-2 * time.Hour), To: noon}), timeseries.Hour, nil)
	for hour, err := range hours {
		if err != nil {
			log.Fatal(err)
		}
		t := hour.Stats["temperature"]
		fmt.Printf("%s: %d samples, %.1f to %.1f, mean %.2f\n", hour.Start.Format(time.TimeOnly), t.Count, t.Min, t.Max, t.Mean)
	}

	if _, err := db.Clock().Advance(ctx, 30*24*time.Hour-90*time.Minute); err != nil {
		log.Fatal(err)
	}
	left := 0
	for _, err := range r.Range(ctx, timeseries.Query{Device: "roof"}) {
		if err != nil {
			log.Fatal(err)
		}
		left++
	}
	fmt.Println("30 days after the first:", left)
	// Output:
	// latest: 11:59:00 8.9
	// 10:00:00: 30 samples, 0.0 to 2.9, mean 1.45
	// 11:00:00: 60 samples, 3.0 to 8.9, mean 5.95
	// 30 days after the first: 89
}
