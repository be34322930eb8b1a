package targetfile

import (
	"context"

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
	name  string
	batch int // the default of limits.batch
	make  func(context.Context, *entry, Options) (target.Target, error)
}

const (
	manyAtOnce = 100 // for targets that deliver several in the time of one
	awsAtOnce  = 10  // the batch limit of SQS and others
)

var kinds = []kind{
	{"aws", awsAtOnce, func(ctx context.Context, e *entry, o Options) (target.Target, error) {
		e.AWS.Self, e.AWS.Logger = o.Self, o.Logger
		return aws.New(ctx, *e.AWS)
	}},
	{"exec", 1, func(_ context.Context, e *entry, _ Options) (target.Target, error) {
		return target.NewExec(*e.Exec)
	}},
	{"kafka", manyAtOnce, func(_ context.Context, e *entry, _ Options) (target.Target, error) {
		return kafka.New(*e.Kafka)
	}},
	{"nats", manyAtOnce, func(_ context.Context, e *entry, _ Options) (target.Target, error) {
		return nats.New(*e.NATS)
	}},
	{"rabbitmq", manyAtOnce, func(_ context.Context, e *entry, _ Options) (target.Target, error) {
		return rabbitmq.New(*e.RabbitMQ)
	}},
	{"webhook", 1, func(_ context.Context, e *entry, o Options) (target.Target, error) {
		e.Webhook.Now = o.Now
		if e.Webhook.Mode == target.Batched && e.Limits.Batch == 0 {
			e.Limits.Batch = manyAtOnce
		}
		return target.NewWebhook(*e.Webhook)
	}},
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}
