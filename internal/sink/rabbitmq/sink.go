package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/target"
)

// Sink delivers to RabbitMQ.
type Sink struct {
	config Config
	key    sink.Template
	link   sink.Lazy[*link]
}

// New checks the configuration. It connects to nothing.
func New(c Config) (*Sink, error) {
	address, key, secure, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Sink{config: c, key: key}
	s.link.Open = func(ctx context.Context) (*link, error) {
		return connect(ctx, address, c.User, c.Password, secure.Clone())
	}
	s.link.Broken = func(l *link) bool { return l.conn.IsClosed() }
	s.link.Shut = (*link).shut
	return s, nil
}

// Close closes the connection. Deliveries under way fail.
func (s *Sink) Close() error {
	s.link.Close()
	return nil
}

// Deliver publishes the deliveries.
func (s *Sink) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	results := make([]error, len(deliveries))
	var batch []*publishing
	for i, d := range deliveries {
		p, err := s.message(d)
		if results[i] = err; err == nil {
			p.result = &results[i]
			batch = append(batch, p)
		}
	}
	for len(batch) > 0 {
		n := min(len(batch), maxAtOnce)
		s.publish(ctx, batch[:n])
		batch = batch[n:]
	}
	return results
}

// publish publishes some messages and sets their results. If the broker closes the channel because
// of one message, publish sends each unconfirmed message again, alone.
func (s *Sink) publish(ctx context.Context, batch []*publishing) {
	s.publishOnce(ctx, batch)
	for _, p := range batch {
		if len(batch) > 1 && isMessageFault(*p.result) {
			s.publishOnce(ctx, []*publishing{p})
		}
		if isMessageFault(*p.result) { // the faulty message was alone by now
			target.AsError(*p.result).Permanent = true
		}
	}
}

// publishing is a message under way.
type publishing struct {
	key     string
	message amqp.Publishing
	result  *error
	confirm *amqp.DeferredConfirmation // nil until it was published
}

// publishOnce publishes some messages over one channel and sets the result of each.
func (s *Sink) publishOnce(ctx context.Context, batch []*publishing) {
	all := func(err error) {
		for _, p := range batch {
			*p.result = err
		}
	}
	l, err := s.link.Get(ctx)
	if err == nil && ctx.Err() != nil {
		err = sink.GivenUp(ctx)
	}
	if err != nil {
		all(err)
		return
	}
	if why := l.blocked.Load(); why != nil {
		all(&target.Error{Code: codeBlocked, Message: "the broker has blocked publishing: " + *why, Throttled: true})
		return
	}
	release := l.guard(ctx)
	ch, err := l.take()
	if err != nil {
		release()
		all(classify(err))
		return
	}
	settled := true
	defer func() { l.put(ch, settled) }()
	all(nil)
	for i, p := range batch {
		p.confirm, err = ch.PublishWithDeferredConfirmWithContext(ctx, s.config.Exchange, p.key, true, false, p.message)
		if err != nil {
			for _, unpublished := range batch[i:] {
				unpublished.confirm, *unpublished.result = nil, ch.failure(ctx, err)
			}
			break
		}
	}
	release()
	for _, p := range batch {
		if p.confirm != nil {
			*p.result = ch.await(ctx, p.confirm)
			settled = settled && ctx.Err() == nil
		}
	}
	ch.sortOut(batch)
}

// await waits for a confirmation. One that has arrived counts even if ctx is done.
func (ch *channel) await(ctx context.Context, confirm *amqp.DeferredConfirmation) error {
	select {
	case <-confirm.Done():
	case <-ctx.Done():
		if !confirm.Acked() {
			return sink.GivenUp(ctx)
		}
	}
	switch {
	case confirm.Acked():
		return nil
	case ch.IsClosed(): // the client then confirms all open messages negatively
		return ch.failure(ctx, amqp.ErrClosed)
	}
	return &target.Error{Code: codeNack, Message: "the broker refused the message: a queue is full or has failed", Throttled: true}
}

// failure returns the reason why nothing more can be published: the broker's reason for closing the
// channel if there is one.
func (ch *channel) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return sink.GivenUp(ctx)
	}
	if ch.why == nil && ch.IsClosed() {
		select {
		// the client reports that the channel is closed, and a moment later the reason
		case ch.why = <-ch.closed:
		case <-ctx.Done():
		}
	}
	if ch.why != nil {
		return classify(ch.why)
	}
	return classify(err)
}

// sortOut sets the failures of messages that came back without a queue. The broker returns a
// message before it confirms it.
func (ch *channel) sortOut(batch []*publishing) {
	for {
		select {
		case r, open := <-ch.returns:
			if !open {
				return
			}
			for _, p := range batch {
				if p.message.MessageId == r.MessageId && *p.result == nil {
					*p.result = &target.Error{Code: replyName(int(r.ReplyCode)), Message: fmt.Sprintf("no queue receives messages from exchange %q with the routing key %q", r.Exchange, r.RoutingKey)}
				}
			}
		default:
			return
		}
	}
}
