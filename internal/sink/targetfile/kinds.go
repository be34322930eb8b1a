package targetfile

import (
	"context"
	"strings"

	"github.com/mayflydb/mayfly/internal/sink/aws"
	"github.com/mayflydb/mayfly/internal/sink/kafka"
	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/sink/rabbitmq"
	"github.com/mayflydb/mayfly/target"
)

// entry is one target of a file. The field of its kind is set.
type entry struct {
	ARN    string
	Name   string
	Limits target.Limits

	AWS      *aws.Config
	Exec     *target.ExecOptions
	Kafka    *kafka.Config
	NATS     *nats.Config
	RabbitMQ *rabbitmq.Config `yaml:"rabbitmq"`
	Webhook  *target.WebhookOptions
}

// kind is a kind of target. To add one: a field of entry, and a line in kinds.
type kind struct {
	name string
	has  func(*entry) bool
	// make returns the target, the function that closes it, and the default of limits.batch.
	make func(context.Context, *entry, Options) (to target.Target, shut func() error, batch int, err error)
}

// manyAtOnce is the default of limits.batch for targets that deliver several in the time of one.
const manyAtOnce = 100

var kinds = []kind{
	{"aws", func(e *entry) bool { return e.AWS != nil }, func(ctx context.Context, e *entry, o Options) (target.Target, func() error, int, error) {
		e.AWS.Self = o.Self
		s, err := aws.New(ctx, *e.AWS)
		if err != nil {
			return nil, nil, 0, err
		}
		// the batch limit of SQS and others
		return s, func() error { s.Close(); return nil }, 10, nil
	}},
	{"exec", func(e *entry) bool { return e.Exec != nil }, func(_ context.Context, e *entry, _ Options) (target.Target, func() error, int, error) {
		s, err := target.NewExec(*e.Exec)
		return s, func() error { return nil }, 1, err
	}},
	{"kafka", func(e *entry) bool { return e.Kafka != nil }, func(_ context.Context, e *entry, _ Options) (target.Target, func() error, int, error) {
		s, err := kafka.New(*e.Kafka)
		return s, s.Close, manyAtOnce, err
	}},
	{"nats", func(e *entry) bool { return e.NATS != nil }, func(_ context.Context, e *entry, _ Options) (target.Target, func() error, int, error) {
		s, err := nats.New(*e.NATS)
		return s, s.Close, manyAtOnce, err
	}},
	{"rabbitmq", func(e *entry) bool { return e.RabbitMQ != nil }, func(_ context.Context, e *entry, _ Options) (target.Target, func() error, int, error) {
		s, err := rabbitmq.New(*e.RabbitMQ)
		return s, s.Close, manyAtOnce, err
	}},
	{"webhook", func(e *entry) bool { return e.Webhook != nil }, func(_ context.Context, e *entry, o Options) (target.Target, func() error, int, error) {
		e.Webhook.Now = o.Now
		s, err := target.NewWebhook(*e.Webhook)
		batch := 1
		if e.Webhook.Mode == target.Batched {
			batch = manyAtOnce
		}
		return s, s.Close, batch, err
	}},
}

// present returns the names of the kinds that an entry has.
func (e *entry) present() (names []string) {
	for _, k := range kinds {
		if k.has(e) {
			names = append(names, k.name)
		}
	}
	return names
}

func kindNames() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

func listOr(names []string, otherwise string) string {
	if len(names) == 0 {
		return otherwise
	}
	return strings.Join(names, " and ")
}
