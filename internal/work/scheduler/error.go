package scheduler

import (
	"errors"
	"net/http"

	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/work/api"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Error is a failure that the API defines. Any other error of an operation is a fault, an
// InternalServerException.
type Error = api.Error

// The codes of both APIs. Only the scheduler's API uses their statuses; the API of rules answers
// 400.
const (
	CodeValidation    = "ValidationException"
	CodeNotFound      = "ResourceNotFoundException"
	CodeConflict      = "ConflictException"
	CodeQuota         = "ServiceQuotaExceededException"
	CodeThrottling    = "ThrottlingException"
	CodeLimitExceeded = "LimitExceededException"
)

func invalid(message string) error {
	return &Error{Code: CodeValidation, Message: message, Status: http.StatusBadRequest}
}

func notFound(message string) error {
	return &Error{Code: CodeNotFound, Message: message, Status: http.StatusNotFound}
}

func conflict(message string) error {
	return &Error{Code: CodeConflict, Message: message, Status: http.StatusConflict}
}

func quota(message string) error {
	return &Error{Code: CodeQuota, Message: message, Status: http.StatusPaymentRequired}
}

func throttled(message string) error {
	return &Error{Code: CodeThrottling, Message: message, Status: http.StatusTooManyRequests}
}

func limitExceeded(message string) error {
	return &Error{Code: CodeLimitExceeded, Message: message, Status: http.StatusBadRequest}
}

// empty returns the results of an operation without output.
func empty(err error) (*Empty, error) {
	if err != nil {
		return nil, err
	}
	return &Empty{}, nil
}

func noSchedule(name string) error { return notFound("Schedule " + name + " does not exist.") }

func noGroup(name string) error { return notFound("Schedule group " + name + " does not exist.") }

// The codes of DynamoDB's errors that the scheduler handles.
const (
	codeTableInUse    = "ResourceInUseException"
	codeConditional   = "ConditionalCheckFailedException"
	codeTxConflict    = "TransactionConflictException"
	codeTxInProgress  = "TransactionInProgressException"
	codeThroughput    = "ProvisionedThroughputExceededException"
	codeRequestLimit  = "RequestLimitExceeded"
	codeThrottled     = "ThrottlingException"
	codeDynamoInvalid = "ValidationException"
	codeDynamoLimit   = "LimitExceededException"
)

// noTable reports whether a table does not exist.
func noTable(err error) bool { return ensure.Missing(err) }

// apiError translates errors of the tables' endpoint into errors of the scheduler's API. It returns
// faults and errors of the API unchanged.
func apiError(err error) error {
	switch retry.Code(err) {
	case codeThroughput, codeRequestLimit, codeThrottled, codeTxConflict, codeTxInProgress:
		return throttled("Rate exceeded")
	case codeDynamoLimit: // the disk is full, or too many tables are being created
		var e smithy.APIError
		errors.As(err, &e)
		return quota(e.ErrorMessage())
	}
	return err
}
