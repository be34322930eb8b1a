// Package kinds has the kinds of targets that need the client of a broker or of a service. It links
// all of them.
package kinds

import (
	"context"

	"github.com/mayflydb/mayfly/internal/sink/aws"
	"github.com/mayflydb/mayfly/internal/sink/kafka"
	"github.com/mayflydb/mayfly/internal/sink/nats"
	"github.com/mayflydb/mayfly/internal/sink/rabbitmq"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/target"
)

// awsAtOnce is the batch limit of SQS and others.
const awsAtOnce = 10

// All are the kinds. To add one: a line here, and its name in the program's list of what only
// mayfly-full has.
var All = []targetfile.Kind{
	targetfile.NewKind("aws", awsAtOnce, func(ctx context.Context, c *aws.Config, _ *target.Limits, o targetfile.Options) (target.Target, error) {
		c.Self, c.Logger = o.Self, o.Logger
		return aws.New(ctx, *c)
	}),
	targetfile.NewKind("kafka", targetfile.ManyAtOnce, func(_ context.Context, c *kafka.Config, _ *target.Limits, _ targetfile.Options) (target.Target, error) {
		return kafka.New(*c)
	}),
	targetfile.NewKind("nats", targetfile.ManyAtOnce, func(_ context.Context, c *nats.Config, _ *target.Limits, _ targetfile.Options) (target.Target, error) {
		return nats.New(*c)
	}),
	targetfile.NewKind("rabbitmq", targetfile.ManyAtOnce, func(_ context.Context, c *rabbitmq.Config, _ *target.Limits, _ targetfile.Options) (target.Target, error) {
		return rabbitmq.New(*c)
	}),
}
