package targetfile

import (
	"context"
	"fmt"

	"github.com/mayflydb/mayfly/target"
)

// Kind is a kind of target that a file can name. Without make it is known only by its name: see
// MissingKindError.
type Kind struct {
	Name     string
	batch    int // the default of limits.batch
	settings func() any
	make     func(ctx context.Context, settings any, limits *target.Limits, o Options) (target.Target, error)
}

// ManyAtOnce is the default of limits.batch for targets that deliver several in the time of one.
const ManyAtOnce = 100

// NewKind returns a kind whose settings in a file are the fields of S, and whose targets make makes.
// batch is the default of limits.batch.
func NewKind[S any](name string, batch int, make func(context.Context, *S, *target.Limits, Options) (target.Target, error)) Kind {
	return Kind{
		name, batch,
		func() any { return new(S) },
		func(ctx context.Context, settings any, limits *target.Limits, o Options) (target.Target, error) {
			return make(ctx, settings.(*S), limits, o)
		},
	}
}

// MissingKindError is the error for a file that names a kind of target which this program knows only
// by its name.
type MissingKindError struct{ Kind string }

func (e *MissingKindError) Error() string {
	return fmt.Sprintf("this program has no targets of the kind %s", e.Kind)
}

// ownKinds are the kinds that every program has: they need no client of a broker or a service.
var ownKinds = []Kind{
	NewKind("exec", 1, func(_ context.Context, s *target.ExecOptions, _ *target.Limits, _ Options) (target.Target, error) {
		return target.NewExec(*s)
	}),
	NewKind("webhook", 1, func(_ context.Context, s *target.WebhookOptions, limits *target.Limits, o Options) (target.Target, error) {
		s.Now = o.Now
		if s.Mode == target.Batched && limits.Batch == 0 {
			limits.Batch = ManyAtOnce
		}
		return target.NewWebhook(*s)
	}),
}
