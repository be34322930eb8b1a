package fromkinesis

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

// ErrNoStream reports that the stream does not exist, or no longer.
var ErrNoStream = errors.New("stream not found")

// lastingError marks an error that needs an administrator, or another configuration.
type lastingError struct{ error }

func (e *lastingError) Unwrap() error { return e.error }

// fatal reports whether an error of the leases' table, or of the list of shards, ends Ingest.
func fatal(err error) bool {
	var lasting *lastingError
	return errors.As(err, &lasting) || refused(err)
}

// explain turns an error of Kinesis into one about the stream. It returns a *lastingError, or err
// itself if it may be temporary.
func (in *ingesting) explain(err error) error {
	var gone *types.ResourceNotFoundException
	switch {
	case errors.As(err, &gone):
		return &lastingError{fmt.Errorf("%w: %q: %w", ErrNoStream, in.o.Stream, err)}
	case refused(err):
		return &lastingError{fmt.Errorf("the stream %q cannot be read: %w", in.o.Stream, err)}
	}
	return err
}

// refused reports whether a service refuses a call for good, and is not just busy or failing.
func refused(err error) bool {
	switch retry.Code(err) {
	case "ResourceInUseException", "ExpiredIteratorException":
		return false
	}
	return retry.Classify(err) == retry.Permanent
}
