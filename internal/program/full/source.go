package full

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/sink/sourcefile"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/fromkafka"
	"github.com/mayflydb/mayfly/timeseries/fromkinesis"
	"github.com/mayflydb/mayfly/timeseries/fromnats"
)

// source is a source of messages.
type source struct {
	*sourcefile.Source
	name string
}

// openSource reads an address or a file of settings. It connects to nothing.
func openSource(text string, l *slog.Logger) (program.Source, error) {
	s, name, err := sourcefile.Load(text, targetfile.Options{Logger: l})
	if err != nil {
		return nil, err
	}
	return source{s, name}, nil
}

func (s source) Name() string { return s.name }

// Checkpoint replaces what NATS does not allow in the name of a consumer.
func (s source) Checkpoint(wanted string) string {
	if s.NATS == nil {
		return wanted
	}
	return strings.NewReplacer(".", "_", " ", "_", "*", "_", ">", "_", "/", "_", `\`, "_").Replace(wanted)
}

// Ingest runs the reader of the source's broker.
func (s source) Ingest(ctx context.Context, r *timeseries.Receiver, o program.Ingest) error {
	err := s.ingest(ctx, r, o)
	switch {
	case errors.Is(err, fromnats.ErrNoStream), errors.Is(err, fromkafka.ErrNoTopic), errors.Is(err, fromkinesis.ErrNoStream):
		return program.Advise(err, "create it first, or use an existing one")
	case errors.Is(err, fromnats.ErrNoConsumer):
		return program.Advise(err, "run it again; it creates a new consumer and reads the stream from its beginning")
	}
	return err
}

func (s source) ingest(ctx context.Context, r *timeseries.Receiver, o program.Ingest) error {
	switch {
	case s.NATS != nil:
		conn, err := s.NATS.Connect()
		if err != nil {
			return err
		}
		defer conn.Close()
		consumer, err := fromnats.Open(ctx, conn, fromnats.Consumer{Stream: s.NATS.Stream, Name: o.Checkpoint, AckWait: o.Lease})
		if err != nil {
			return err
		}
		return fromnats.Ingest(ctx, consumer, r, fromnats.Options{UntilCaughtUp: o.UntilCaughtUp, Acknowledged: o.Saved, Logger: o.Logger})
	case s.Kafka != nil:
		options, err := s.Kafka.Options()
		if err != nil {
			return err
		}
		return fromkafka.Ingest(ctx, r, fromkafka.Options{
			Client: options, Topic: s.Kafka.Topic, Group: o.Checkpoint, Session: o.Lease, UntilCaughtUp: o.UntilCaughtUp, Committed: o.Saved, Lost: o.Lost, Logger: o.Logger,
		})
	}
	client, err := s.Kinesis.Client(ctx)
	if err != nil {
		return err
	}
	return fromkinesis.Ingest(ctx, r, fromkinesis.Options{
		Client: client, Stream: s.Kinesis.Stream, DB: o.DB, Name: o.Checkpoint, Lease: o.Lease, UntilCaughtUp: o.UntilCaughtUp, Saved: o.Saved, Lost: o.Lost, Logger: o.Logger,
	})
}
