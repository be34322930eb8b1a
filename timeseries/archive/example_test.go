package archive_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/archive"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// weather returns a series in memory with two samples, which expire after a day and are a day apart,
// and the database that stores it.
func weather(ctx context.Context) (*timeseries.Series, *mayfly.DB) {
	db, err := mayfly.Open("", mayfly.Options{Start: noon, Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	series, err := timeseries.Create(ctx, db.DynamoDB(), timeseries.Spec{Table: "weather", Retention: timeseries.Day, Ahead: 2 * timeseries.Day, Now: db.Clock().Now})
	if err != nil {
		log.Fatal(err)
	}
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	err = w.Write(ctx, timeseries.Sample{Device: "roof", Time: noon, Values: map[string]float64{"temperature": 4}},
		timeseries.Sample{Device: "roof", Time: noon.Add(timeseries.Day), Values: map[string]float64{"temperature": 5}})
	if err != nil {
		log.Fatal(err)
	}
	return series, db
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// Export copies the live samples. They stay in the archive after they expire in the table.
func ExampleArchive_Export() {
	ctx := context.Background()
	series, db := weather(ctx)
	defer db.Close()
	dir := tempDir()
	defer os.RemoveAll(dir)

	a := archive.New(archive.Dir(dir))
	report, err := a.Export(ctx, series, archive.ExportOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Written, "samples in", report.Files, "files")

	if _, err := db.Clock().Advance(ctx, 3*timeseries.Day); err != nil {
		log.Fatal(err)
	}
	for s, err := range a.Range(ctx, timeseries.Query{Device: "roof"}) {
		fmt.Println(s.Time.Format(time.DateOnly), s.Values["temperature"], err)
	}
	// Output:
	// 2 samples in 2 files
	// 2030-01-01 4 <nil>
	// 2030-01-02 5 <nil>
}

// Follow archives samples as they expire. Union then returns the archived and the live ones.
func ExampleArchive_Follow() {
	ctx, cancel := context.WithCancel(context.Background())
	series, db := weather(ctx)
	defer db.Close()
	dir := tempDir()
	defer os.RemoveAll(dir)

	a, archived := archive.New(archive.Dir(dir)), make(chan int, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- a.Follow(ctx, series, archive.FollowOptions{
			DB: db.DynamoDB(), Streams: db.Streams(), Every: 10 * time.Millisecond, Archived: func(_ string, samples int) { archived <- samples },
		})
	}()
	if _, err := db.Clock().Advance(ctx, timeseries.Day); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-archived, "sample archived")

	live := series.Reader(timeseries.ReaderOptions{Strong: true})
	for s, err := range a.Union(ctx, live, timeseries.Query{Device: "roof"}) {
		fmt.Println(s.Time.Format(time.DateOnly), s.Values["temperature"], err)
	}
	cancel()
	fmt.Println("followed until the end:", <-ended)
	// Output:
	// 1 sample archived
	// 2030-01-01 4 <nil>
	// 2030-01-02 5 <nil>
	// followed until the end: <nil>
}

// A target is for guard.Options.Archive: guard delivers each sample before it removes the item.
func ExampleArchive_Target() {
	ctx := context.Background()
	dir := tempDir()
	defer os.RemoveAll(dir)
	t, err := archive.New(archive.Dir(dir)).Target(ctx, archive.TargetOptions{Wait: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	results := t.Deliver(ctx, []target.Delivery{{ID: "1", Body: []byte(`{"id":"not a sample"}`)}})
	fmt.Println(target.AsError(results[0]).Permanent)
	// Output: true
}
