package sink

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/target"
)

// Codes of failures that all brokers share.
const (
	CodeConnection = "ConnectionError" // there is no connection, or it broke
	CodeTimeout    = "Timeout"         // no answer in time
	CodeTooLarge   = "MessageTooLarge"
)

// ErrClosed is the error of a delivery to a closed sink.
var ErrClosed = &target.Error{Code: "TargetClosed", Message: "the target is being closed"}

// GivenUp returns the result of a delivery without an answer when ctx was done. It is a failed
// attempt if the time limit passed. It is the context's own error if the program ends, since that
// is no fault of the target.
func GivenUp(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &target.Error{Code: CodeTimeout, Message: "no acknowledgement before the timeout", Err: ctx.Err()}
	}
	return ctx.Err()
}

// All returns the same result n times.
func All(n int, err error) []error {
	results := make([]error, n)
	for i := range results {
		results[i] = err
	}
	return results
}
