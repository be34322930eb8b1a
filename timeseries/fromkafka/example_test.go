package fromkafka_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/fromkafka"
)

// Ingest stores the readings of a topic, and commits their offsets when they are durable.
func ExampleIngest() {
	ctx := context.Background()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "readings"))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	brokers := kgo.SeedBrokers(cluster.ListenAddrs()...)
	producer, err := kgo.NewClient(brokers)
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	reading := &kgo.Record{Topic: "readings", Value: []byte(`{"device":"roof","time":"2030-01-01T11:00:00Z","temperature":4.1}`)}
	if err := producer.ProduceSync(ctx, reading).FirstErr(); err != nil {
		log.Fatal(err)
	}

	db, err := mayfly.Open("", mayfly.Options{Start: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), Frozen: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	series, err := timeseries.Create(ctx, db.DynamoDB(), timeseries.Spec{Table: "weather", Now: db.Clock().Now})
	if err != nil {
		log.Fatal(err)
	}
	w, err := series.Writer(ctx, timeseries.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r, err := timeseries.NewReceiver(w, timeseries.NDJSON, timeseries.Mapping{}, func([]timeseries.Rejected) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	err = fromkafka.Ingest(ctx, r, fromkafka.Options{Client: []kgo.Opt{brokers}, Topic: "readings", Group: "weather", UntilCaughtUp: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Report().Written, "written")
	// Output: 1 written
}
