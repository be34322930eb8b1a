package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Consumer is an engine.Hold in the names that the API gives to streams, shards and records.
type Consumer struct {
	hold   *engine.Hold
	stream uint32
}

// Hold registers a consumer of a stream in this process. Its name is for the log.
func (s *Service) Hold(consumer, streamARN string) (*Consumer, error) {
	d, err := s.findStream(streamARN)
	if err != nil {
		return nil, err
	}
	h, err := s.engine.Hold(consumer, d.ID)
	if err != nil {
		return nil, apiError(err, streamARN)
	}
	return &Consumer{hold: h, stream: d.ID}, nil
}

// HasConsumer reports whether a consumer in this process has registered with a stream.
func (s *Service) HasConsumer(streamARN string) bool {
	d, err := s.findStream(streamARN)
	return err == nil && s.engine.HasConsumer(d.ID)
}

// Checkpoint says that the checkpoint of a shard is durable, at a sequence number: trimming may pass it. An empty one says nothing, here and below.
func (c *Consumer) Checkpoint(shard, sequence string) error {
	return c.at(shard, sequence, c.hold.Checkpoint)
}

// Passed says that all records of a shard up to a sequence number are done with.
func (c *Consumer) Passed(shard, sequence string) error {
	return c.at(shard, sequence, c.hold.Passed)
}

// Taken says that all records of a shard up to a sequence number have been taken in: Rest speaks of them too.
func (c *Consumer) Taken(shard, sequence string) error {
	return c.at(shard, sequence, c.hold.Taken)
}

func (c *Consumer) at(shard, sequence string, tell func(shard uint32, seq uint64)) error {
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
	tell(no, seq)
	return nil
}

// Rest says that what has been taken in and not passed waits for an instant, rounded up to the millisecond; the zero time: no longer.
func (c *Consumer) Rest(until time.Time) {
	if until.IsZero() {
		c.hold.Rest(0)
		return
	}
	c.hold.Rest(engine.Instant(until.Add(time.Millisecond - time.Nanosecond).UnixMilli()))
}

// Close ends the registration.
func (c *Consumer) Close() { c.hold.Close() }
