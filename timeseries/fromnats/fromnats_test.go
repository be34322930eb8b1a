package fromnats

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/timeseries"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Messages of a stream become samples, those that are broken are told, and all are acknowledged; a run that was ended goes on behind what is acknowledged.
func TestIngest(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	must(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	conn, err := nats.Connect(s.ClientURL())
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "READINGS", Subjects: []string{"readings.>"}})
	must(t, err)
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "weather", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute})
	must(t, err)

	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db, err := mayfly.Open("", mayfly.Options{Start: at.Add(24 * time.Hour), Frozen: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	series, err := timeseries.Create(t.Context(), db.DynamoDB(), timeseries.Spec{Table: "weather", Now: db.Clock().Now})
	must(t, err)
	w, err := series.Writer(t.Context(), timeseries.WriterOptions{})
	must(t, err)
	t.Cleanup(w.Close)
	rejected := 0
	r, err := timeseries.NewReceiver(w, timeseries.NDJSON, timeseries.Mapping{Device: "device"}, func(x timeseries.Rejected) { rejected++ })
	must(t, err)

	const readings = 700
	for round := range 2 {
		for i := range readings {
			_, err := js.PublishAsync("readings.roof", fmt.Appendf(nil, `{"device":"roof","time":%q,"temperature":%d}`, at.Add(time.Duration(i+round*readings)*time.Second).Format(time.RFC3339), i))
			must(t, err)
		}
		_, err = js.PublishAsync("readings.roof", []byte(`{"device":"roof","temperature":`))
		must(t, err)
		<-js.PublishAsyncComplete()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Ingest(ctx, consumer, r) }()
		want := uint64((round + 1) * (readings + 1))
		for limit := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			info, err := consumer.Info(t.Context())
			must(t, err)
			if info.AckFloor.Stream == want {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("%d messages are acknowledged, want %d", info.AckFloor.Stream, want)
			}
		}
		cancel()
		must(t, <-ended)
		n := 0
		for _, err := range series.Reader(timeseries.ReaderOptions{Strong: true}).Range(t.Context(), timeseries.Query{Device: "roof"}) {
			must(t, err)
			n++
		}
		if n != (round+1)*readings || rejected != round+1 {
			t.Errorf("%d samples and %d rejected lines, want %d and %d", n, rejected, (round+1)*readings, round+1)
		}
	}
}
