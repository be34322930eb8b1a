package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/target"
)

const (
	dialTimeout  = 3 * time.Second // to one server
	writeTimeout = 5 * time.Second
	pingInterval = 10 * time.Second
	// the client forgets an acknowledgement that has not come after this time
	ackTimeout   = time.Minute
	flushTimeout = 30 * time.Second
	maxPending   = 1 << 17 // awaited acknowledgements, over all calls
	maxSubject   = 1024    // bytes; a server drops a connection for a line of more than 4,096

	firstReconnect = 50 * time.Millisecond
	lastReconnect  = 2 * time.Second
)

// Sink delivers to NATS.
type Sink struct {
	config  Config
	servers string
	subject sink.Template
	options []natsgo.Option
	link    sink.Lazy[link]
}

// link is a connection, and JetStream over it.
type link struct {
	conn   *natsgo.Conn
	stream jetstream.JetStream
}

// New checks the configuration. It connects to nothing.
func New(c Config) (*Sink, error) {
	servers, subject, options, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Sink{config: c, servers: servers, subject: subject, options: options}
	s.link.Open = s.open
	// the client itself reconnects, until it is closed
	s.link.Broken = func(l link) bool { return l.conn.IsClosed() }
	s.link.Shut = func(l link) { l.conn.Close() }
	return s, nil
}

// Close closes the connection.
func (s *Sink) Close() error {
	s.link.Close()
	return nil
}

func (s *Sink) open(context.Context) (link, error) {
	conn, err := natsgo.Connect(s.servers, s.options...) // within dialTimeout for each server
	if err != nil {
		return link{}, &target.Error{Code: sink.CodeConnection, Message: fmt.Sprintf("%s: %v", s.servers, err), Err: err}
	}
	stream, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		conn.Close()
		return link{}, fmt.Errorf("prepare JetStream: %w", err)
	}
	return link{conn, stream}, nil
}

func reconnectDelay(attempts int) time.Duration {
	return min(lastReconnect, firstReconnect<<min(attempts, 10))
}

// Deliver publishes the deliveries.
func (s *Sink) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	l, err := s.link.Get(ctx)
	if err == nil && !l.conn.IsConnected() {
		err = notConnected(l.conn)
	}
	switch {
	case err != nil:
		return sink.All(len(deliveries), err)
	case s.config.Core:
		return s.publish(ctx, l.conn, deliveries)
	}
	return s.publishToStream(ctx, l, deliveries)
}

// publishToStream publishes all deliveries, then waits for their acknowledgements.
func (s *Sink) publishToStream(ctx context.Context, l link, deliveries []target.Delivery) []error {
	var options []jetstream.PublishOpt
	if s.config.Stream != "" {
		options = append(options, jetstream.WithExpectStream(s.config.Stream))
	}
	results := make([]error, len(deliveries))
	acks := make([]jetstream.PubAckFuture, len(deliveries))
	for i, d := range deliveries {
		message, err := s.message(d)
		if err == nil {
			acks[i], err = l.stream.PublishMsgAsync(message, options...)
		}
		results[i] = classify(l.conn, err)
	}
	for i, ack := range acks {
		if results[i] == nil {
			results[i] = classify(l.conn, await(ctx, ack))
		}
	}
	return results
}

// await waits for an acknowledgement. One that has arrived counts even if ctx is done.
func await(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return err
	case <-ctx.Done():
	}
	select {
	case <-ack.Ok():
		return nil
	default:
		return sink.GivenUp(ctx)
	}
}

// publish publishes all deliveries, then sends a ping and waits for its answer.
func (s *Sink) publish(ctx context.Context, conn *natsgo.Conn, deliveries []target.Delivery) []error {
	reconnects := conn.Stats().Reconnects
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		message, err := s.message(d)
		if err == nil {
			err = conn.PublishMsg(message)
		}
		results[i] = classify(conn, err)
	}
	limited, cancel := context.WithTimeout(ctx, flushTimeout) // the client requires a deadline
	defer cancel()
	err := conn.FlushWithContext(limited)
	if err == nil && conn.Stats().Reconnects != reconnects {
		err = natsgo.ErrDisconnected // the answer came over a newer connection than the messages
	}
	if err != nil && ctx.Err() != nil {
		err = sink.GivenUp(ctx)
	}
	for i := range results {
		if results[i] == nil {
			results[i] = classify(conn, err)
		}
	}
	return results
}

// message converts a delivery to a message.
func (s *Sink) message(d target.Delivery) (*natsgo.Msg, error) {
	subject := s.subject.Expand(d, clean)
	if len(subject) > maxSubject {
		return nil, target.Permanent(codeSubject, fmt.Sprintf("the subject has %d bytes; at most %d are allowed", len(subject), maxSubject))
	}
	m := s.config.Mode.Message(d)
	header := natsgo.Header{}
	for name, value := range m.Attributes {
		header["ce-"+name] = []string{target.HeaderValue(value)}
	}
	switch {
	case m.ContentType == "":
	// content-type would mark the event as structured
	case s.config.Mode == sink.Binary || s.config.Mode == "":
		header["ce-datacontenttype"] = []string{target.HeaderValue(m.ContentType)}
	default:
		header["content-type"] = []string{m.ContentType}
	}
	header[jetstream.MsgIDHeader] = []string{target.HeaderValue(d.ID)}
	return &natsgo.Msg{Subject: subject, Header: header, Data: m.Body}, nil
}

var clean = sink.Word(inToken)

// Codes of failures, in addition to the common ones. The code of a JetStream error is "JetStream"
// and its number.
const (
	codeSubject = "InvalidSubject"
	codeStream  = "NoStreamResponse"
	codeBusy    = "TooManyPending"
)

func notConnected(conn *natsgo.Conn) error {
	cause := cmp.Or(conn.LastError(), natsgo.ErrDisconnected)
	return &target.Error{Code: sink.CodeConnection, Message: fmt.Sprintf("not connected: %v", cause), Err: cause}
}

// classify returns the delivery's error for an error of the client.
func classify(conn *natsgo.Conn, err error) error {
	var api *jetstream.APIError
	var known *target.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &api):
		return &target.Error{
			Code: fmt.Sprintf("JetStream%d", api.ErrorCode), Message: api.Description, Err: err,
			Permanent: api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum,
			Throttled: api.Code == 503 || api.Code == 429, // a full stream, too few resources
		}
	case errors.Is(err, natsgo.ErrMaxPayload):
		return &target.Error{Code: sink.CodeTooLarge, Message: fmt.Sprintf("the server accepts messages of up to %d bytes", conn.MaxPayload()), Permanent: true, Err: err}
	case errors.Is(err, natsgo.ErrBadSubject):
		return &target.Error{Code: codeSubject, Message: err.Error(), Permanent: true, Err: err}
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return &target.Error{Code: codeStream, Message: "no stream accepts messages of this subject, or JetStream is down", Err: err}
	case errors.Is(err, jetstream.ErrTooManyStalledMsgs):
		return &target.Error{Code: codeBusy, Message: err.Error(), Throttled: true, Err: err}
	case errors.Is(err, natsgo.ErrReconnectBufExceeded), errors.Is(err, natsgo.ErrConnectionClosed), errors.Is(err, natsgo.ErrDisconnected):
		return notConnected(conn)
	}
	return &target.Error{Code: sink.CodeConnection, Message: err.Error(), Err: err}
}
