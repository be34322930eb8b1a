package fromnats

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly/internal/brokertest"
	"github.com/mayflydb/mayfly/timeseries"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a server.
func start(t *testing.T, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	must(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	return s
}

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	// without a buffer a call fails when the connection is lost
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectBufSize(-1))
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// broker is a server with a stream.
type broker struct {
	*testing.T
	url    string
	js     jetstream.JetStream
	stream jetstream.Stream
	sent   int
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{T: t, url: start(t, nil).ClientURL()}
	var err error
	b.js, err = jetstream.New(connect(t, b.url))
	must(t, err)
	b.stream, err = b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "READINGS", Subjects: []string{"readings.>"}})
	must(t, err)
	return b
}

func (b *broker) publish(texts ...[]byte) {
	b.Helper()
	var acks []jetstream.PubAckFuture
	for _, text := range texts {
		ack, err := b.js.PublishAsync("readings.x", text)
		must(b.T, err)
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			b.Fatal(err)
		case <-time.After(brokertest.Limit):
			b.Fatal("a message is not acknowledged")
		}
	}
}

// send publishes the next readings.
func (b *broker) send(n int) {
	b.Helper()
	var texts [][]byte
	for range n {
		texts = append(texts, brokertest.Reading(b.sent))
		b.sent++
	}
	b.publish(texts...)
}

// consumer returns a consumer with a connection of its own.
func (b *broker) consumer() (jetstream.Consumer, *nats.Conn) {
	b.Helper()
	conn := connect(b.T, b.url)
	c, err := Open(b.Context(), conn, Consumer{Stream: "READINGS", Name: "weather"})
	must(b.T, err)
	return c, conn
}

// Messages become samples, unusable ones are rejected, and all are acknowledged. Later messages are
// read later, and a new run continues after the acknowledged ones.
func TestIngest(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	for round := range 2 {
		b.send(700)
		// an invalid one, and a repetition
		b.publish([]byte(`{"device":"roof","n":`), brokertest.Reading(0))
		consumer, _ := b.consumer()
		r := w.Receiver()
		run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, consumer, r, Options{}) })
		brokertest.Await(t, "everything", func() bool { return w.Count() == b.sent })
		b.send(1)
		brokertest.Await(t, "the later records", func() bool { return w.Count() == b.sent })
		run.End()
		w.Want(b.sent)
		info, err := consumer.Info(t.Context())
		must(t, err)
		if info.NumAckPending != 0 || info.NumPending != 0 {
			t.Errorf("round %d: %d messages are not acknowledged, and %d not read", round, info.NumAckPending, info.NumPending)
		}
		if report := r.Report(); report.Messages != 703 || report.Written != 702 || report.Rejected != 1 {
			t.Errorf("round %d: the report is %+v", round, report)
		}
	}
	if aside := w.Aside(); len(aside) != 2 || aside[0].From != "READINGS 701" || aside[0].Reason != timeseries.ReasonSyntax {
		t.Errorf("put aside are %+v", aside)
	}
}

// UntilCaughtUp ends Ingest: for an empty stream, and beside another process.
func TestIngestUntilCaughtUp(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	for _, n := range []int{0, 1, 1200} {
		b.send(n)
		reported := 0
		var runs []*brokertest.Run
		for i := range 2 {
			consumer, _ := b.consumer()
			r := w.Receiver()
			runs = append(runs, brokertest.Go(t, func(ctx context.Context) error {
				return Ingest(ctx, consumer, r, Options{UntilCaughtUp: true, Acknowledged: func() {
					if i == 0 {
						reported++
					}
				}})
			}))
		}
		for _, run := range runs {
			must(t, run.Ended())
		}
		w.Want(b.sent)
		if n == 1200 && reported > 3 {
			t.Errorf("it reported %d batches", reported)
		}
	}
}

// Cut off before or after any of its calls, and started again, an ingest stores every sample once,
// and acknowledges all messages.
func TestIngestCutOff(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	for call := 0; ; call++ {
		b.send(40)
		consumer, conn := b.consumer()
		w.Cut.After(call/2, call%2 == 1, nil)
		err := Ingest(t.Context(), consumer, w.Receiver(), Options{UntilCaughtUp: true})
		conn.Close()
		if was := w.Cut.Mend(); was != (err != nil) {
			t.Fatalf("call %d: cut off is %t, and the error %v", call, was, err)
		}
		if err == nil {
			if call < 6 {
				t.Errorf("it makes %d calls only", call/2)
			}
			break
		}
		consumer, _ = b.consumer()
		must(t, Ingest(t.Context(), consumer, w.Receiver(), Options{UntilCaughtUp: true}))
		w.Want(b.sent)
	}
}

// After a kill -9 between writing and acknowledging, messages are delivered again after AckWait and
// stored once.
func TestIngestGoneBeforeAcknowledging(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	_, err := b.js.CreateConsumer(t.Context(), "READINGS", jetstream.ConsumerConfig{Durable: "weather", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 500 * time.Millisecond})
	must(t, err)
	b.send(100)
	consumer, conn := b.consumer()
	w.Cut.After(0, true, conn.Close) // written, or a part of it, without a connection to the server
	if err := Ingest(t.Context(), consumer, w.Receiver(), Options{UntilCaughtUp: true}); err == nil {
		t.Fatal("it ends without an error")
	}
	w.Cut.Mend()
	b.send(50)
	consumer, _ = b.consumer()
	r := w.Receiver()
	must(t, Ingest(t.Context(), consumer, r, Options{UntilCaughtUp: true}))
	w.Want(b.sent)
	if n := r.Report().Messages; n < 150 {
		t.Errorf("%d messages came, and 100 were not acknowledged", n)
	}
}

// logged records whether anything was logged.
type logged struct{ atomic.Bool }

func (l *logged) Write(p []byte) (int, error) {
	l.Store(true)
	return len(p), nil
}

// Ingest waits for a server that goes away and returns.
func TestIngestServerAway(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	dir := t.TempDir()
	port := -1
	up := func(o *server.Options) { o.StoreDir, o.Port = dir, port }
	s := start(t, up)
	port = s.Addr().(*net.TCPAddr).Port
	b := &broker{T: t, url: s.ClientURL()}
	var err error
	b.js, err = jetstream.New(connect(t, b.url))
	must(t, err)
	_, err = b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "READINGS", Subjects: []string{"readings.>"}})
	must(t, err)
	b.send(10)
	consumer, _ := b.consumer()
	var failed logged
	o := Options{Logger: slog.New(slog.NewTextHandler(&failed, nil))}
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, consumer, w.Receiver(), o) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 10 })
	s.Shutdown()
	s.WaitForShutdown()
	brokertest.Await(t, "a call that fails", func() bool { return failed.Load() })
	start(t, up)
	// another connection, so that no message is sent before the stream exists again
	b.js, err = jetstream.New(connect(t, b.url))
	must(t, err)
	brokertest.Await(t, "the stream", func() bool {
		_, err := b.js.Stream(t.Context(), "READINGS")
		return err == nil
	})
	b.send(10)
	brokertest.Await(t, "the rest", func() bool { return w.Count() == 20 })
	run.End()
	w.Want(20)
}

// A fault that needs an administrator is an error that names it.
func TestIngestRefuses(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	conn := connect(t, b.url)
	if _, err := Open(t.Context(), conn, Consumer{Stream: "NOTHING", Name: "weather"}); !errors.Is(err, ErrNoStream) || err.Error() != `stream not found: "NOTHING"` {
		t.Errorf("a stream that is not there gives %v", err)
	}
	for name, config := range map[string]jetstream.ConsumerConfig{
		"careless":   {AckPolicy: jetstream.AckNonePolicy},
		"impatient":  {AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 2},
		"incurious":  {AckPolicy: jetstream.AckExplicitPolicy, HeadersOnly: true},
		"summarizer": {AckPolicy: jetstream.AckAllPolicy},
	} {
		config.Durable = name
		c, err := b.js.CreateConsumer(t.Context(), "READINGS", config)
		must(t, err)
		if _, err := Open(t.Context(), conn, Consumer{Stream: "READINGS", Name: name}); err == nil {
			t.Errorf("a consumer that is %s is opened", name)
		}
		// short, because the server refuses it
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := Ingest(ctx, c, w.Receiver(), Options{}); err == nil {
			t.Errorf("a consumer that is %s is read", name)
		}
		cancel()
	}
	without := connect(t, start(t, func(o *server.Options) { o.JetStream = false }).ClientURL())
	if _, err := Open(t.Context(), without, Consumer{Stream: "READINGS", Name: "weather"}); err == nil {
		t.Error("a server without JetStream is read")
	}
	for what, gone := range map[string]struct {
		delete func() error
		want   error
	}{
		"stream":   {func() error { return b.js.DeleteStream(t.Context(), "READINGS") }, ErrNoStream},
		"consumer": {func() error { return b.js.DeleteConsumer(t.Context(), "OTHER", "weather") }, ErrNoConsumer},
	} {
		name := "READINGS"
		if what == "consumer" {
			name = "OTHER"
			_, err := b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{"other"}})
			must(t, err)
		}
		consumer, err := Open(t.Context(), connect(t, b.url), Consumer{Stream: name, Name: "weather"})
		must(t, err)
		run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, consumer, w.Receiver(), Options{}) })
		brokertest.Await(t, "the first question", func() bool {
			info, err := consumer.Info(t.Context())
			return err == nil && info.NumWaiting > 0
		})
		must(t, gone.delete())
		if err := run.Ended(); !errors.Is(err, gone.want) {
			t.Errorf("a %s that is deleted gives %v", what, err)
		}
	}
}

// A closed connection, such as one after its last attempt, ends Ingest with an error.
func TestIngestClosed(t *testing.T) {
	t.Parallel()
	b, w := newBroker(t), brokertest.New(t)
	b.send(10)
	consumer, conn := b.consumer()
	run := brokertest.Go(t, func(ctx context.Context) error { return Ingest(ctx, consumer, w.Receiver(), Options{}) })
	brokertest.Await(t, "the beginning", func() bool { return w.Count() == 10 })
	conn.Close()
	if err := run.Ended(); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("got %v", err)
	}
}

// The error for a missing permission says so.
func TestIngestPermissions(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "guest", Password: "guest", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"readings.>"}}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	})
	conn, err := nats.Connect(s.ClientURL(), nats.UserInfo("guest", "guest"))
	must(t, err)
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := Open(ctx, conn, Consumer{Stream: "READINGS", Name: "weather"}); err == nil || !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("got %v", err)
	}
}
