// Package fromnats ingests readings from a NATS JetStream stream. The durable consumer is the
// checkpoint: a message is acknowledged after its samples are durable. After a crash it comes again
// and makes the same items. Several processes may share a consumer: each message goes to one of
// them.
package fromnats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/timeseries"
)

// Options configure Ingest. The zero value is valid.
type Options struct {
	// UntilCaughtUp ends Ingest when every message of the stream is acknowledged. Default: Ingest
	// continues until its context is done.
	UntilCaughtUp bool
	// Acknowledged is called after each durable and acknowledged batch. Default: no calls.
	Acknowledged func()
	// Logger receives messages for operators. Default: none.
	Logger *slog.Logger
}

const (
	batchMax   = 500                    // messages per write
	batchBytes = 65 << 20               // bytes per write; more than a server's largest message
	gatherFor  = 50 * time.Millisecond  // a batch's wait for more messages
	idleFor    = 5 * time.Second        // a server's wait for a message
	lookEvery  = 500 * time.Millisecond // between checks for UntilCaughtUp
	callLimit  = 10 * time.Second       // limit for a call of the server
	beatParts  = 3                      // number of progress reports to the server per AckWait
	ackDefault = 10 * time.Second
	ackMin     = 100 * time.Millisecond
	ackMax     = time.Hour
)

// afterFailure is how soon a server that failed is asked again.
var afterFailure = retry.Policy{First: 100 * time.Millisecond, Most: 10 * time.Second}

// Consumer names a durable consumer of a stream. Names have neither spaces nor any of ".*>/\".
type Consumer struct {
	Stream string
	Name   string
	// AckWait is the time after which the messages of a dead process are delivered again, for a new
	// consumer. Default: 10 s. Range: 100 ms to an hour.
	AckWait time.Duration
}

// ErrNoStream reports that the server does not have the stream, or no longer.
var ErrNoStream = errors.New("stream not found")

// ErrNoConsumer reports that the consumer was deleted during a read.
var ErrNoConsumer = errors.New("the consumer was deleted")

// Open returns a durable consumer. It creates a missing one, which reads the whole stream. Its
// error is ErrNoStream without the stream, or says why Ingest cannot use an existing consumer.
func Open(ctx context.Context, conn *nats.Conn, c Consumer) (jetstream.Consumer, error) {
	if c.AckWait == 0 {
		c.AckWait = ackDefault
	}
	if c.AckWait < ackMin || c.AckWait > ackMax {
		return nil, fmt.Errorf("the option AckWait: %s is not between %s and %s", c.AckWait, ackMin, ackMax)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	consumer, err := js.Consumer(ctx, c.Stream, c.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = js.CreateConsumer(ctx, c.Stream, jetstream.ConsumerConfig{
			Durable: c.Name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.AckWait, Description: "readings into a series of mayfly",
		})
		if errors.Is(err, jetstream.ErrConsumerExists) { // another process was faster
			consumer, err = js.Consumer(ctx, c.Stream, c.Name)
		}
	}
	if err != nil {
		return nil, explain(conn, c, err)
	}
	return consumer, check(consumer)
}

// check refuses a consumer that cannot serve as a checkpoint, or that would lose messages.
func check(consumer jetstream.Consumer) error {
	name, c := consumer.CachedInfo().Name, consumer.CachedInfo().Config
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy || c.Durable == "":
		return fmt.Errorf("the consumer %q is not durable with explicit acknowledgements, so messages would be lost or read twice; use another --checkpoint", name)
	case c.MaxDeliver > 0:
		return fmt.Errorf("the consumer %q drops a message after %d deliveries (MaxDeliver), so messages would be lost while the series is unreachable; set MaxDeliver to -1", name, c.MaxDeliver)
	case c.HeadersOnly:
		return fmt.Errorf("the consumer %q delivers messages without their bodies (HeadersOnly)", name)
	}
	return nil
}

// explain turns an error into one about the stream and the consumer.
func explain(conn *nats.Conn, c Consumer, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: %q", ErrNoStream, c.Stream)
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrConsumerDoesNotExist), errors.Is(err, jetstream.ErrConsumerDeleted):
		return fmt.Errorf("%w: %q of the stream %q", ErrNoConsumer, c.Name, c.Stream)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("the server or this user's account has no JetStream: %w", err)
	}
	// A server ignores a call without permission, and reports it on the connection.
	if last := conn.LastError(); errors.Is(err, context.DeadlineExceeded) && last != nil && strings.Contains(strings.ToLower(last.Error()), "permissions violation") {
		return fmt.Errorf("the user may not read the stream %q: %w", c.Stream, last)
	}
	return fmt.Errorf("the stream %q: %w", c.Stream, err)
}

// Ingest passes a durable consumer's messages to a receiver. It returns nil when ctx is done, or,
// with UntilCaughtUp, when it has caught up. It waits for an absent server as long as the
// connection reconnects: by default two minutes, with nats.MaxReconnects(-1) without limit. It
// returns an error if the series fails for longer than its writer retries, the connection is
// closed, or stream or consumer are deleted; unacknowledged messages are delivered again. The
// consumer must acknowledge explicitly and redeliver without limit, like Open's.
func Ingest(ctx context.Context, consumer jetstream.Consumer, r *timeseries.Receiver, o Options) error {
	if err := check(consumer); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Acknowledged == nil {
		o.Acknowledged = func() {}
	}
	in := &ingesting{consumer: consumer, r: r, o: o, busy: true}
	for done := false; !done; {
		err := retry.Until(ctx, o.Logger, afterFailure, "read messages", func() (err error) {
			done, err = in.batch(ctx)
			return err
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type ingesting struct {
	consumer jetstream.Consumer
	r        *timeseries.Receiver
	o        Options
	busy     bool // more messages may be available
}

// fetch returns the messages that arrive within gatherFor, up to a batch, or none. After an empty
// fetch it waits for one message for idleFor, or lookEvery with UntilCaughtUp, which costs the
// server nothing.
func (in *ingesting) fetch(ctx context.Context) (all []jetstream.Msg, err error) {
	number, options := batchMax, []jetstream.FetchOpt{jetstream.FetchMaxWait(gatherFor), jetstream.FetchMaxBytes(batchBytes)}
	if !in.busy {
		wait := idleFor
		if in.o.UntilCaughtUp {
			wait = lookEvery
		}
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		number, options = 1, []jetstream.FetchOpt{jetstream.FetchContext(limited)}
	}
	batch, err := in.consumer.Fetch(number, options...)
	if err != nil {
		return nil, err
	}
	for m := range batch.Messages() {
		all = append(all, m)
	}
	in.busy = len(all) > 0
	if err := batch.Error(); err != nil && !in.busy && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return all, nil
}

// batch reads, writes and acknowledges a batch. It returns done when it has caught up, and a final
// error if another attempt would fail too.
func (in *ingesting) batch(ctx context.Context) (done bool, err error) {
	all, err := in.fetch(ctx)
	if err != nil {
		return false, in.failed(ctx, err)
	}
	if len(all) == 0 {
		return in.caughtUp(ctx)
	}
	messages := make([]timeseries.Message, len(all))
	left := uint64(0)
	for i, m := range all {
		meta, err := m.Metadata()
		if err != nil {
			return false, retry.Final(fmt.Errorf("a message of JetStream: %w", err))
		}
		left = meta.NumPending
		messages[i] = timeseries.Message{Text: m.Data(), From: fmt.Sprintf("%s %d", meta.Stream, meta.Sequence.Stream)}
	}
	end := in.beat(all)
	_, err = in.r.Receive(ctx, messages...)
	end()
	if err != nil {
		for _, m := range all {
			_ = m.Nak() // redeliver at once
		}
		return false, retry.Final(err) // its writer has retried already
	}
	if err := in.acknowledge(ctx, all); err != nil {
		return false, err
	}
	in.o.Acknowledged()
	if left == 0 {
		return in.caughtUp(ctx)
	}
	return false, nil
}

// beat reports to the server that messages are in progress, until the caller ends it.
func (in *ingesting) beat(all []jetstream.Msg) (end func()) {
	every := in.consumer.CachedInfo().Config.AckWait / beatParts
	if every <= 0 {
		every = ackDefault / beatParts
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			clock.Pause(every, stop)
			select {
			case <-stop:
				return
			default:
			}
			for _, m := range all {
				_ = m.InProgress()
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// acknowledge acknowledges messages, and waits for the server's confirmation of the last: they are
// in order on one connection, so it covers all. It works even after ctx is done, because the
// messages are durable.
func (in *ingesting) acknowledge(ctx context.Context, all []jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	last := len(all) - 1
	for _, m := range all[:last] {
		if err := m.Ack(); err != nil {
			return fmt.Errorf("acknowledge messages, which will be delivered again: %w", err)
		}
	}
	if err := all[last].DoubleAck(ctx); err != nil {
		return fmt.Errorf("acknowledge messages, which may be delivered again: %w", err)
	}
	return nil
}

// caughtUp reports whether no message is left: none is undelivered, and none awaits the
// acknowledgement of any process. It returns false without UntilCaughtUp.
func (in *ingesting) caughtUp(ctx context.Context) (bool, error) {
	if !in.o.UntilCaughtUp {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	info, err := in.consumer.Info(ctx)
	if err != nil {
		return false, in.failed(ctx, err)
	}
	return info.NumPending == 0 && info.NumAckPending == 0, nil
}

// failed interprets an error of a read: it is final if stream, consumer or connection no longer
// exist, and otherwise err itself.
func (in *ingesting) failed(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, cause := in.consumer.Info(ctx)
	info := in.consumer.CachedInfo()
	for _, gone := range []error{cause, err} {
		switch {
		case errors.Is(gone, jetstream.ErrStreamNotFound):
			return retry.Final(fmt.Errorf("%w: %q was deleted", ErrNoStream, info.Stream))
		case errors.Is(gone, jetstream.ErrConsumerNotFound), errors.Is(gone, jetstream.ErrConsumerDoesNotExist):
			return retry.Final(fmt.Errorf("%w: %q of the stream %q", ErrNoConsumer, info.Name, info.Stream))
		case errors.Is(gone, nats.ErrConnectionClosed):
			return retry.Final(fmt.Errorf("the connection to the server is closed for good: %w", gone))
		}
	}
	return err
}
