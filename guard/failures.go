package guard

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/target"
)

// code returns the endpoint's name of an error; "" if there was no response.
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// throttling reports whether the endpoint wants to be asked less often.
func throttling(err error) bool {
	var a *archiveError
	if errors.As(err, &a) {
		return false
	}
	switch code(err) {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown", "LimitExceededException":
		return true
	}
	return false
}

// conflict reports whether another writer had the item at that moment, or the archive refused it
// for now. Neither indicates load at the endpoint.
func conflict(err error) bool {
	var a *archiveError
	if errors.As(err, &a) {
		return true
	}
	switch code(err) {
	case "TransactionConflictException", "ReplicatedWriteConflictException", "TransactionInProgressException":
		return true
	}
	return false
}

// permanent reports whether another attempt would fail as well, because the endpoint or the archive
// has rejected the request.
func permanent(err error) bool {
	var a *archiveError
	if errors.As(err, &a) {
		return a.cause.Permanent
	}
	if throttling(err) || conflict(err) {
		return false
	}
	if code(err) == "ValidationException" {
		return true
	}
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || code(err) == "" || answer.HTTPStatusCode() < 400 || answer.HTTPStatusCode() >= 500 {
		return false
	}
	return answer.HTTPStatusCode() != http.StatusRequestTimeout && answer.HTTPStatusCode() != http.StatusTooManyRequests
}

func capacity(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

func allUnits(all []types.ConsumedCapacity) (sum float64) {
	for i := range all {
		sum += capacity(&all[i])
	}
	return sum
}

// archiveError is a failure of the archive, not of the endpoint.
type archiveError struct{ cause *target.Error }

func (e *archiveError) Error() string { return "archive: " + e.cause.Error() }

func (e *archiveError) Unwrap() error { return e.cause }

// lapse is the error of a call without valid credentials, which may become valid soon. It does not
// unwrap.
type lapse struct{ cause error }

func (e *lapse) Error() string { return e.cause.Error() }
