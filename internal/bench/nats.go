package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsStream is a JetStream stream for delivered records, at a server that is already running. It
// lasts as long as the run.
type natsStream struct {
	url     string
	name    string
	subject string
	conn    *natsgo.Conn
	js      jetstream.JetStream
}

const (
	natsTimeout = 10 * time.Second
	natsKept    = time.Hour // the server then deletes messages that a killed run has left
)

// openNATS creates the stream.
func openNATS(ctx context.Context, address, prefix string, allowRemote bool) (*natsStream, error) {
	u, host, err := parseAddress(address, "nats", "4222")
	if err != nil {
		return nil, err
	}
	if err := allowed(ctx, u, allowRemote); err != nil {
		return nil, err
	}
	n := &natsStream{url: "nats://" + host, name: prefix + "records", subject: prefix + "records"}
	if n.conn, err = natsgo.Connect(n.url, natsgo.Name("mayfly bench"), natsgo.Timeout(natsTimeout)); err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %s; start a server with nats-server -js", n.url, strings.TrimPrefix(err.Error(), "nats: "))
	}
	if n.js, err = jetstream.New(n.conn); err == nil {
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

// follow calls message for each message of the stream until stop.
func (n *natsStream) follow(ctx context.Context, message func(body []byte, at time.Time)) (stop func(), err error) {
	reader, err := n.js.OrderedConsumer(ctx, n.name, jetstream.OrderedConsumerConfig{})
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
func (n *natsStream) close(ctx context.Context) error {
	defer n.conn.Close()
	if err := n.js.DeleteStream(ctx, n.name); err != nil {
		return fmt.Errorf("remove the stream %s at %s: %w", n.name, n.url, err)
	}
	return nil
}

// parseAddress parses scheme://host, with or without a port. It refuses everything else: a password
// would appear in the report's command.
func parseAddress(text, scheme, port string) (u *url.URL, address string, err error) {
	u, err = url.Parse(text)
	if err != nil {
		return nil, "", &UsageError{err}
	}
	if u.Scheme != scheme || u.Host == "" || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.User != nil {
		return nil, "", &UsageError{fmt.Errorf("%q is not of the form %s://host:port", u.Redacted(), scheme)}
	}
	if u.Port() != "" {
		return u, u.Host, nil
	}
	return u, net.JoinHostPort(u.Hostname(), port), nil
}

// allowed refuses an address on another machine, unless allowRemote is set.
func allowed(ctx context.Context, u *url.URL, allowRemote bool) error {
	if allowRemote {
		return nil
	}
	local, err := onLoopback(ctx, u.Hostname())
	if err == nil && !local {
		err = fmt.Errorf("%s is %w", u.Host, ErrNotLoopback)
	}
	return err
}
