package retry

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Class is what an error of an AWS API means for another attempt.
type Class int

const (
	// another attempt may succeed: no answer, a fault of the server, or a conflict
	Passing   Class = iota
	Throttled       // another attempt may succeed, later and at a lower rate
	// the endpoint has understood the request and refuses it: another attempt fails too
	Permanent
)

// classes are the codes with a known class for any HTTP status.
var classes = map[string]Class{
	"ValidationException": Permanent,

	"BandwidthLimitExceeded": Throttled, "EC2ThrottledException": Throttled, "KMSThrottlingException": Throttled,
	"KmsThrottled": Throttled, "LimitExceededException": Throttled, "OverLimit": Throttled,
	"PriorRequestNotComplete": Throttled, "ProvisionedThroughputExceededException": Throttled,
	"RequestLimitExceeded": Throttled, "RequestThrottled": Throttled, "RequestThrottledException": Throttled,
	"SlowDown": Throttled, "Throttled": Throttled, "ThrottledException": Throttled, "Throttling": Throttled,
	"ThrottlingException": Throttled, "TooManyRequestsException": Throttled,

	// Another writer was first.
	"ConcurrentAccess": Passing, "ConcurrentModificationException": Passing, "ReplicatedWriteConflictException": Passing,
	"TransactionConflictException": Passing, "TransactionInProgressException": Passing,
	// The next attempt is signed anew.
	"ExpiredToken": Passing, "ExpiredTokenException": Passing, "RequestExpired": Passing, "RequestTimeTooSkewed": Passing,
	// The function is being created or changed.
	"ResourceConflictException": Passing, "ResourceNotReadyException": Passing, "SnapStartNotReadyException": Passing,
	// The server is at fault.
	"InternalFailure": Passing, "InternalServerError": Passing, "RequestTimeout": Passing, "RequestTimeoutException": Passing,
	"ServiceUnavailable": Passing, "ServiceUnavailableException": Passing,
}

// Code returns the API's name of an error, or "" if the endpoint has not answered.
func Code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// Invalid reports whether the endpoint refuses a call as invalid: it would refuse it again.
func Invalid(err error) bool { return Code(err) == "ValidationException" }

// Classify returns the class of an error of the SDK.
func Classify(err error) Class {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return Passing
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && Cancelled(cancelled.CancellationReasons) {
		return Passing
	}
	status := 0
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status = answer.HTTPStatusCode()
	}
	if status == 0 && api.ErrorFault() == smithy.FaultClient {
		status = http.StatusBadRequest
	}
	return ClassifyCode(api.ErrorCode(), status)
}

// ClassifyCode returns the class of an error's code. The HTTP status decides about a code that is
// not known; 0 means that there is none, and then the error is passing.
func ClassifyCode(code string, status int) Class {
	class, known := classes[code]
	switch {
	case status == http.StatusTooManyRequests:
		return Throttled
	case known:
		return class
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return Permanent
	}
	return Passing
}

// Cancelled reports whether the same transaction may succeed at another attempt: conflicts and
// throttling are the only reasons of its cancellation.
func Cancelled(reasons []types.CancellationReason) bool {
	passing := false
	for _, r := range reasons {
		switch {
		case r.Code == nil || *r.Code == "" || *r.Code == "None":
		case *r.Code == "TransactionConflict" || *r.Code == "ThrottlingError" || *r.Code == "ProvisionedThroughputExceeded":
			passing = true
		default:
			return false
		}
	}
	return passing
}
