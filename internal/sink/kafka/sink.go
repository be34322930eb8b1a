package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/target"
)

// Sink delivers to Kafka.
type Sink struct {
	config Config
	topic  sink.Template
	client sink.Lazy[*kgo.Client]
	alone  sink.Lazy[*kgo.Client] // for one record at a time; see produceAlone
	turn   chan struct{}          // holds one value while a record is produced alone
	seen   connections
}

// connections remembers the result of the last attempt to connect to a broker. The client retries
// silently.
type connections struct {
	last atomic.Pointer[error]
}

// OnBrokerConnect implements kgo.HookBrokerConnect. A broker's answer says more than a closed
// connection, so it stays until a connection succeeds.
func (c *connections) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	var now, before *kerr.Error
	if err != nil && !errors.As(err, &now) && errors.As(c.failure(), &before) {
		return
	}
	c.last.Store(&err)
}

// failure returns the error that OnBrokerConnect has stored. It returns nil if the last attempt
// succeeded, or if there was none.
func (c *connections) failure() error {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return nil
}

// New checks the configuration. It connects to nothing.
func New(c Config) (*Sink, error) {
	topic, options, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Sink{config: c, topic: topic, turn: make(chan struct{}, 1)}
	options = append(options, kgo.WithHooks(&s.seen))
	for _, client := range []*sink.Lazy[*kgo.Client]{&s.client, &s.alone} {
		// starts the client, which connects by itself
		client.Open = func(context.Context) (*kgo.Client, error) { return kgo.NewClient(options...) }
		client.Shut = func(client *kgo.Client) { client.Close() }
	}
	return s, nil
}

// Close closes the clients. Deliveries under way fail.
func (s *Sink) Close() error {
	s.client.Close()
	s.alone.Close()
	return nil
}

// Deliver produces the deliveries.
func (s *Sink) Deliver(ctx context.Context, deliveries []target.Delivery) []error {
	records, results := make([]*kgo.Record, len(deliveries)), make([]error, len(deliveries))
	for i, d := range deliveries {
		records[i], results[i] = s.record(d)
	}
	client, err := s.client.Get(ctx)
	if err != nil {
		return sink.All(len(deliveries), err)
	}
	produce(ctx, client, records, results)
	for i, err := range results {
		if isBatchFault(err) {
			results[i] = s.produceAlone(ctx, records[i])
		}
	}
	for i, err := range results {
		results[i] = s.classify(err)
	}
	return results
}

// result is the result of one record of a call.
type result struct {
	place int
	err   error
}

// produce passes the records without a result to a client and waits for their results. If ctx is
// done first, the missing results are GivenUp, although the client may still send those records.
func produce(ctx context.Context, client *kgo.Client, records []*kgo.Record, results []error) {
	// with a place for each record, so that the client never waits for an abandoned call
	done := make(chan result, len(records))
	waiting := map[int]bool{}
	for i, record := range records {
		if results[i] != nil {
			continue
		}
		waiting[i] = true
		// The context is not ctx: at the end of a call's context, the client would fail records of
		// other calls in the same batch.
		client.TryProduce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { done <- result{i, err} })
	}
	for len(waiting) > 0 {
		select {
		case r := <-done:
			results[r.place] = r.err
			delete(waiting, r.place)
		case <-ctx.Done():
			for i := range waiting {
				results[i] = sink.GivenUp(ctx)
			}
			return
		}
	}
}

// batchFaults are the errors of a whole batch of which any record may be at fault.
var batchFaults = []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.UnsupportedForMessageFormat, kerr.PolicyViolation}

func isBatchFault(err error) bool {
	return slices.ContainsFunc(batchFaults, func(e error) bool { return errors.Is(err, e) })
}

// produceAlone produces a record whose batch was refused. A batch mixes the records of many calls,
// so this record may be fine, and the batch too large only as a whole. No other record passes
// through this client meanwhile, so the broker's answer applies to this record.
func (s *Sink) produceAlone(ctx context.Context, record *kgo.Record) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return sink.GivenUp(ctx)
	}
	client, err := s.alone.Get(ctx)
	if err != nil {
		return err
	}
	again := &kgo.Record{Topic: record.Topic, Key: record.Key, Value: record.Value, Headers: record.Headers}
	results := []error{nil}
	produce(ctx, client, []*kgo.Record{again}, results)
	return results[0]
}

// record converts a delivery to a record.
func (s *Sink) record(d target.Delivery) (*kgo.Record, error) {
	topic := s.topic.Expand(d, clean)
	if !isTopic(topic) {
		return nil, target.Permanent(kerr.InvalidTopicException.Message, fmt.Sprintf("a topic's name must not exceed %d bytes, this one has %d", maxTopic, len(topic)))
	}
	m := s.config.Mode.Message(d)
	r := &kgo.Record{Topic: topic, Value: m.Body}
	if d.Key != "" {
		r.Key = []byte(d.Key)
	}
	for name, value := range m.Attributes {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "ce_" + name, Value: []byte(value)})
	}
	if m.ContentType != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "content-type", Value: []byte(m.ContentType)})
	}
	return r, nil
}

var clean = sink.Word(inTopic)

// The code for a full buffer. Other failures have the codes of all brokers or Kafka's own, such as
// "MESSAGE_TOO_LARGE".
const codeBusy = "TooManyPending"

// classify returns the delivery's error for an error of the client.
func (s *Sink) classify(err error) error {
	var known *target.Error
	var broker *kerr.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, kgo.ErrMaxBuffered):
		return &target.Error{Code: codeBusy, Message: err.Error(), Throttled: true, Err: err}
	case errors.Is(err, kgo.ErrClientClosed), errors.Is(err, kgo.ErrAborting):
		return sink.ErrClosed
	case errors.As(err, &broker):
		return &target.Error{
			Code: broker.Message, Message: broker.Description, Err: err,
			// the batch has one record by now
			Permanent: isBatchFault(err) || errors.Is(err, kerr.InvalidTopicException),
			Throttled: errors.Is(err, kerr.ThrottlingQuotaExceeded),
		}
	case errors.Is(err, kgo.ErrRecordTimeout): // no broker has given a reason
		message := fmt.Sprintf("the record could not be sent within %v", s.config.Timeout)
		if cause := s.seen.failure(); cause != nil {
			message, err = fmt.Sprintf("%s: %v", message, cause), cause
		}
		return &target.Error{Code: sink.CodeConnection, Message: message, Err: err}
	}
	return &target.Error{Code: sink.CodeConnection, Message: err.Error(), Err: err}
}
