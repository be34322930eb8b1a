package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Consumer is an engine.Hold that takes the API's names of streams, shards and records.
type Consumer struct {
	hold   *engine.Hold
	stream uint32
}

// Hold registers a consumer of a stream in this process and returns it. Until the consumer is
// closed, the stream keeps all records after its checkpoints. Its name is for the log and metrics.
func (s *Service) Hold(consumer, streamARN string) (*Consumer, error) {
	d, err := s.findStreamOrFeed(streamARN)
	if err != nil {
		return nil, err
	}
	h, err := s.engine.Hold(consumer, d.ID)
	if err != nil {
		return nil, apiError(err, streamARN)
	}
	return &Consumer{hold: h, stream: d.ID}, nil
}

// HasConsumer reports whether a consumer in this process is registered with a stream.
func (s *Service) HasConsumer(streamARN string) bool {
	d, err := s.findStreamOrFeed(streamARN)
	return err == nil && s.engine.HasConsumer(d.ID)
}

// Checkpoint records that the checkpoint of a shard is durable at a sequence number: records up to
// and including it are done, and may be trimmed. An empty number is ignored, here and below; a
// malformed shard id or number is an error.
func (c *Consumer) Checkpoint(shard, sequence string) error {
	return c.at(shard, sequence, c.hold.Checkpoint)
}

// Passed records that all records of a shard up to and including a sequence number are done. An
// advance of the clock waits for that; trimming waits for Checkpoint.
func (c *Consumer) Passed(shard, sequence string) error {
	return c.at(shard, sequence, c.hold.Passed)
}

// Taken records that the consumer has read all records of a shard up to and including a sequence
// number. Rest covers them.
func (c *Consumer) Taken(shard, sequence string) error {
	return c.at(shard, sequence, c.hold.Taken)
}

func (c *Consumer) at(shard, sequence string, report func(shard uint32, seq uint64)) error {
	if sequence == "" {
		return nil
	}
	no, ok := parseShardID(c.stream, shard)
	if !ok {
		return errors.New("the stream has no shard of this id: " + shard)
	}
	seq, ok := parseSequence(sequence)
	if !ok {
		return fmt.Errorf("not a sequence number: %q", sequence)
	}
	report(no, seq)
	return nil
}

// Rest declares that the records taken and not passed wait for an instant, rounded up to the
// millisecond. An advance of the clock does not wait for them before, but stops at that instant.
// The zero time ends the wait; call it before the work begins.
func (c *Consumer) Rest(until time.Time) {
	if until.IsZero() {
		c.hold.Rest(0)
		return
	}
	c.hold.Rest(engine.Instant(until.Add(time.Millisecond - time.Nanosecond).UnixMilli()))
}

// Close ends the registration.
func (c *Consumer) Close() { c.hold.Close() }
