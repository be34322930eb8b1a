package sink

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/target"
)

// Codes of failures that all brokers have.
const (
	CodeConnection = "ConnectionError" // there is no connection, or it broke
	CodeTimeout    = "Timeout"         // there was no answer in time
	CodeTooLarge   = "MessageTooLarge"
)

// ErrClosed says that a sink was closed before a delivery was begun.
var ErrClosed = &target.Error{Code: "TargetClosed", Message: "the target is being closed"}

// GivenUp is the result of what was not answered when ctx was done: a failed attempt where its time had passed, and the context's own error where the program is ending, which
// is no fault of the target.
func GivenUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &target.Error{Code: CodeTimeout, Message: "no acknowledgement before the timeout", Err: ctx.Err()}
	}
	return ctx.Err()
}

// All gives n times the same result.
func All(n int, err error) []error {
	results := make([]error, n)
	for i := range results {
		results[i] = err
	}
	return results
}
