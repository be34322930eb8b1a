// Package fromnats ingests readings from a stream of NATS JetStream. The durable consumer is the checkpoint: a message is acknowledged when its samples are durable, so after a
// crash it comes again, and its samples are the same items.
package fromnats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mayflydb/mayfly/timeseries"
)

const (
	batchMax = 500 // messages that are written together
	batchFor = time.Second
)

// Ingest hands a durable consumer's messages to a receiver until ctx is done, and returns nil then. It ends with an error where the series or the stream fails for longer than they are
// patient; what was not acknowledged comes again. The consumer acknowledges explicitly, and its AckWait is longer than a write takes: at least a minute.
func Ingest(ctx context.Context, consumer jetstream.Consumer, r *timeseries.Receiver) error {
	if c := consumer.CachedInfo().Config; c.AckPolicy != jetstream.AckExplicitPolicy || c.Durable == "" {
		return fmt.Errorf("the consumer %q is not durable with explicit acknowledgements: what it has read would be lost or read twice", consumer.CachedInfo().Name)
	}
	for ctx.Err() == nil {
		batch, err := consumer.Fetch(batchMax, jetstream.FetchMaxWait(batchFor))
		if err != nil {
			return fmt.Errorf("fetch messages: %w", err)
		}
		var messages []jetstream.Msg
		var texts [][]byte
		for m := range batch.Messages() {
			messages, texts = append(messages, m), append(texts, m.Data())
		}
		if err := batch.Error(); err != nil && len(messages) == 0 && ctx.Err() == nil {
			return fmt.Errorf("fetch messages: %w", err)
		}
		if _, err := r.Receive(ctx, texts...); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		var all []error
		for _, m := range messages {
			all = append(all, m.Ack())
		}
		if err := errors.Join(all...); err != nil {
			return fmt.Errorf("acknowledge messages: %w", err)
		}
	}
	return nil
}
