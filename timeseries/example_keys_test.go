package timeseries_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/timeseries"
)

// Two places overlap by one sample, which the union has once.
func ExampleUnion() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	r := series.Reader(timeseries.ReaderOptions{Strong: true})
	live := r.Range(ctx, timeseries.Query{Device: "roof", From: noon.Add(-20 * time.Minute)})
	old := r.Range(ctx, timeseries.Query{Device: "roof", From: noon.Add(-40 * time.Minute), To: noon.Add(-10 * time.Minute)})
	for s, err := range timeseries.Union(live, old, false) {
		show(s, err)
	}
	// Output:
	// 11:20:00 roof 2
	// 11:30:00 roof 3
	// 11:40:00 roof 4
	// 11:50:00 roof 5
}

// A sample, and not only the end of a page, can be the place from which another process continues.
func ExamplePlaceAfter() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	r := series.Reader(timeseries.ReaderOptions{Strong: true})
	q := timeseries.Query{Device: "roof"}
	for s, err := range r.Range(ctx, q) {
		show(s, err)
		if s.Values["temperature"] == 4 {
			q.After = timeseries.PlaceAfter(q, s)
			break
		}
	}
	fmt.Println("later:")
	for s, err := range r.Range(ctx, q) {
		show(s, err)
	}
	// Output:
	// 11:00:00 roof 0
	// 11:10:00 roof 1
	// 11:20:00 roof 2
	// 11:30:00 roof 3
	// 11:40:00 roof 4
	// later:
	// 11:50:00 roof 5
}

// A range across devices continues after any of its samples too.
func ExampleMetricPlaceAfter() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	r := series.Reader(timeseries.ReaderOptions{})
	q := timeseries.MetricQuery{Metric: "temperature", From: noon.Add(-20 * time.Minute), To: noon}
	for s, err := range r.Metric(ctx, q) {
		show(s, err)
		q.After = timeseries.MetricPlaceAfter(q, s)
		break
	}
	fmt.Println("later:")
	for s, err := range r.Metric(ctx, q) {
		show(s, err)
	}
	// Output:
	// 11:40:00 cellar 11
	// later:
	// 11:40:00 roof 4
	// 11:50:00 cellar 11
	// 11:50:00 roof 5
}

// A reader of another store finds out where a page of the series begins.
func ExamplePlaceKey() {
	q := timeseries.Query{Device: "roof"}
	q.After = timeseries.PlaceAfter(q, timeseries.Sample{Device: "roof", Key: "2030-01-01T11:50:00.000000000Z#s00000000007"})
	key, err := timeseries.PlaceKey(q)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key)
	// Output: 2030-01-01T11:50:00.000000000Z#s00000000007
}

func ExampleReadKey() {
	at, sequence, err := timeseries.ReadKey("2030-01-01T11:50:00.000000000Z#s00000000007")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(at.Format(time.TimeOnly), sequence)
	// Output: 11:50:00 7
}

// A trigger or a scan of the table has items; ReadItem makes samples of them.
func ExampleReadItem() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	fill(ctx, series)
	out, err := db.DynamoDB().Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("weather")})
	if err != nil {
		log.Fatal(err)
	}
	s, deadline, err := timeseries.ReadItem(out.Items[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("kept for", deadline.Sub(s.Time))
	// Output: kept for 720h0m0s
}

// A tool that finds a table of unknown origin asks whether it is a series. The latest samples have a
// table of their own.
func ExampleIsLayout() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	for _, name := range []string{"weather", series.Spec().LatestTable()} {
		out, err := db.DynamoDB().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, timeseries.IsLayout(out.Table))
	}
	fmt.Printf("the endpoint lacks %q\n", series.Lacks())
	// Output:
	// weather true
	// weather.latest false
	// the endpoint lacks ""
}

func ExampleFormatOf() {
	fmt.Printf("%q %q\n", timeseries.FormatOf("weather.csv.gz"), timeseries.FormatOf("weather.txt"))
	// Output: "csv" ""
}
