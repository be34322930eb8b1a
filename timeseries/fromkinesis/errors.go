package fromkinesis

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrNoStream says that there is no such stream, or no longer.
var ErrNoStream = errors.New("stream not found")

// lastingError is of what nothing but an administrator, or another configuration, can mend.
type lastingError struct{ error }

func (e *lastingError) Unwrap() error { return e.error }

// fatal says with which errors of the leases' table, or of the list of shards, everything ends.
func fatal(err error) bool {
	var lasting *lastingError
	return errors.As(err, &lasting) || refused(err)
}

// explain says what an error of Kinesis means for the stream: a *lastingError, or err itself where it may be over after a while.
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

// refused reports whether a service has said no, and not that it is busy or failing.
func refused(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	code := api.ErrorCode()
	if _, busy := retry.DefaultThrottleErrorCodes[code]; busy {
		return false
	}
	switch code {
	case "KMSThrottlingException", "LimitExceededException", "ResourceInUseException", "RequestTimeout", "RequestTimeoutException", "RequestExpired", "ExpiredToken", "ExpiredTokenException",
		"ExpiredIteratorException", "RequestTimeTooSkewed":
		return false
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode() >= 400 && response.HTTPStatusCode() < 500
	}
	return api.ErrorFault() == smithy.FaultClient
}
