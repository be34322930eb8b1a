package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsServer is a running server with JetStream. Its stream for delivered records lasts as long as
// the run.
type natsServer struct {
	url     string
	name    string // of the stream
	subject string
	conn    *natsgo.Conn
	js      jetstream.JetStream
}

const (
	natsTimeout = 10 * time.Second
	natsKept    = time.Hour // the server then deletes messages that a killed run has left
	natsBatch   = 1000      // messages that are sent before the first is acknowledged
)

// openNATS connects, and creates the stream.
func openNATS(ctx context.Context, address, prefix string, allowRemote bool) (*natsServer, error) {
	_, host, _, err := serverAddress(ctx, address, "nats", "4222", allowRemote)
	if err != nil {
		return nil, err
	}
	n := &natsServer{url: "nats://" + host, name: prefix + "records", subject: prefix + "records"}
	if n.conn, err = natsgo.Connect(n.url, natsgo.Name("mayfly bench"), natsgo.Timeout(natsTimeout)); err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %s; start a server with nats-server -js", n.url, strings.TrimPrefix(err.Error(), "nats: "))
	}
	if n.js, err = jetstream.New(n.conn, jetstream.WithPublishAsyncMaxPending(natsBatch)); err == nil {
		_, err = n.js.CreateStream(ctx, jetstream.StreamConfig{Name: n.name, Subjects: []string{n.subject}, MaxAge: natsKept})
	}
	if err != nil {
		n.conn.Close()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, natsgo.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
			err = fmt.Errorf("%w; start the server with JetStream: nats-server -js", err)
		}
		return nil, fmt.Errorf("create a stream at %s: %w", n.url, err)
	}
	return n, nil
}

// follow calls message for each message with a subject of a stream, from its beginning until stop.
func (n *natsServer) follow(ctx context.Context, stream, subject string, message func(body []byte, at time.Time)) (stop func(), err error) {
	reader, err := n.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return nil, fmt.Errorf("read the stream at %s: %w", n.url, err)
	}
	reading, err := reader.Consume(func(m jetstream.Msg) { message(m.Data(), time.Now()) })
	if err != nil {
		return nil, fmt.Errorf("read the stream at %s: %w", n.url, err)
	}
	return func() {
		reading.Stop()
		<-reading.Closed()
	}, nil
}

// close removes the stream.
func (n *natsServer) close(ctx context.Context) error {
	defer n.conn.Close()
	if err := n.js.DeleteStream(ctx, n.name); err != nil {
		return fmt.Errorf("remove the stream %s at %s: %w", n.name, n.url, err)
	}
	return nil
}
