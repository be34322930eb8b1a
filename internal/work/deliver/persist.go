package deliver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	againFirst = 50 * time.Millisecond // after which an endpoint that failed is asked again
	againMost  = 10 * time.Second
)

// final is an error that another try does not mend.
type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// persist does something until it succeeds, with growing pauses, and logs what goes wrong. Its errors are that of ctx and final ones.
func persist(ctx context.Context, log *slog.Logger, what string, do func() error) error {
	for wait := againFirst; ; wait = min(2*wait, againMost) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := do()
		var f *final
		if err == nil || errors.As(err, &f) {
			return err
		}
		if ctx.Err() == nil {
			log.Warn("failed; trying again", "what", what, "error", err, "after", wait)
		}
		clock.Pause(wait, ctx.Done())
	}
}

// gone reports whether an error says that a table, a stream or a shard does not exist.
func gone(err error) bool {
	var noTable *dynamodbtypes.ResourceNotFoundException
	var noStream *types.ResourceNotFoundException
	return errors.As(err, &noTable) || errors.As(err, &noStream)
}

// stopped reports whether a channel is closed; a nil one is not.
func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
