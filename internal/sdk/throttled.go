package sdk

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// throttledRetryer is a caller's retryer that also repeats a call with the status 429. Gateways
// answer with it, and need not send a code that the SDK knows.
type throttledRetryer struct{ aws.Retryer }

// throttled returns a retryer that repeats such calls as often as r repeats others.
func throttled(r aws.Retryer) aws.Retryer {
	if r == nil {
		return nil // the SDK's default
	}
	return throttledRetryer{r}
}

// IsErrorRetryable implements aws.Retryer.
func (r throttledRetryer) IsErrorRetryable(err error) bool {
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && answer.HTTPStatusCode() == http.StatusTooManyRequests || r.Retryer.IsErrorRetryable(err)
}

// GetAttemptToken implements aws.RetryerV2.
func (r throttledRetryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	if v2, ok := r.Retryer.(aws.RetryerV2); ok {
		return v2.GetAttemptToken(ctx)
	}
	return r.Retryer.GetInitialToken(), nil
}
