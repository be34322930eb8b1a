package fromnats_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/fromnats"
)

// broker starts a NATS server with a stream of one reading, and returns a connection to it.
func broker(ctx context.Context, dir string) (conn *nats.Conn, stop func()) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	if conn, err = nats.Connect("", nats.InProcessServer(s)); err != nil {
		log.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "READINGS", Subjects: []string{"readings"}}); err != nil {
		log.Fatal(err)
	}
	if _, err := js.Publish(ctx, "readings", []byte(`{"device":"roof","time":"2030-01-01T11:00:00Z","temperature":4.1}`)); err != nil {
		log.Fatal(err)
	}
	return conn, func() {
		conn.Close()
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// Ingest stores the readings of a stream, and acknowledges them when they are durable.
func ExampleIngest() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	conn, stop := broker(ctx, dir)
	defer stop()

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

	consumer, err := fromnats.Open(ctx, conn, fromnats.Consumer{Stream: "READINGS", Name: "weather"})
	if err != nil {
		log.Fatal(err)
	}
	if err := fromnats.Ingest(ctx, consumer, r, fromnats.Options{UntilCaughtUp: true}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Report().Written, "written")
	// Output: 1 written
}
