package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/target"
)

// Codes of failures that no API has named.
const (
	codeInvalid     = "ValidationException" // the call was refused before it was made
	codeUnsupported = "UnsupportedTarget"
	codeEndpoint    = "EndpointNotConfigured"
	codeCredentials = "CredentialsUnavailable"
	codeUnreachable = "ConnectionError"
	codeMalformed   = "MalformedAnswer"
	codeTimeout     = "Timeout"
	codeUnknown     = "UnknownError" // the SDK's name for it
	codeBehind      = "EarlierDeliveryFailed"
)

// retryAfterMax is the longest pause that a Retry-After header can set.
const retryAfterMax = 15 * time.Minute

// failure translates the SDK's errors to a *target.Error, and a cancelled context's to
// context.Canceled. It returns nil and a *target.Error unchanged. It is the only place that knows
// both vocabularies.
func failure(err error) error {
	var known *target.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &target.Error{Code: codeTimeout, Message: "no answer before the timeout", Err: err}
	case errors.Is(err, context.Canceled):
		return context.Canceled // the program is ending, which is no fault of the target
	}
	if missing, ok := errors.AsType[*credentialsError](err); ok {
		return &target.Error{Code: codeCredentials, Message: missing.Error(), Err: err}
	}
	var invalid smithy.InvalidParamsError
	var unserializable *smithy.SerializationError
	if errors.As(err, &invalid) || errors.As(err, &unserializable) {
		return &target.Error{Code: codeInvalid, Message: invalidMessage(err), Permanent: true, Err: err}
	}
	var response *smithyhttp.ResponseError
	var status int
	var after time.Duration
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
		after = retryAfter(response)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return answered(api, status, after, err)
	}
	if unsent, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return &target.Error{Code: codeUnreachable, Message: unsent.Err.Error(), Err: err}
	}
	if status >= 300 {
		return answered(&smithy.GenericAPIError{}, status, after, err)
	}
	if status != 0 {
		return &target.Error{Code: codeMalformed, Message: fmt.Sprintf("HTTP %d with an answer that does not follow this API: %v", status, response.Err), After: after, Err: err}
	}
	return target.AsError(err)
}

// answered returns the failure for an error answer with a code. The code and the status decide
// whether it is throttling, permanent or neither.
func answered(api smithy.APIError, status int, after time.Duration, cause error) error {
	e := &target.Error{Code: api.ErrorCode(), Message: api.ErrorMessage(), After: after, Err: cause}
	if e.Code == "" || e.Code == codeUnknown {
		// Something answered that is not the service: a proxy, or another program at that address.
		e.Code, e.Message = codeUnknown, fmt.Sprintf("HTTP %d with an unknown error; check that the endpoint belongs to this service", status)
	}
	if status == 0 && api.ErrorFault() == smithy.FaultClient {
		status = http.StatusBadRequest
	}
	return classified(e, status)
}

// classified sets the class of a failure by its code and status.
func classified(e *target.Error, status int) *target.Error {
	class := retry.ClassifyCode(e.Code, status)
	e.Throttled, e.Permanent = class == retry.Throttled, class == retry.Permanent
	return e
}

// invalidMessage returns the text of the SDK's check of an input, without the operation.
func invalidMessage(err error) string {
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		err = operation.Err
	}
	return err.Error()
}

// retryAfter returns the pause in a Retry-After header, in seconds. Its other form, a date, would
// need a clock; these services do not use it.
func retryAfter(response *smithyhttp.ResponseError) time.Duration {
	if response.Response == nil {
		return 0
	}
	seconds, err := strconv.Atoi(response.Response.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, retryAfterMax)
}

// entryFailure returns the failure of one entry of a batch call that was answered with success. It
// is nil if the entry has no code.
func entryFailure(code, message *string, permanent bool) error {
	e := &target.Error{Code: sdk.ToString(code), Message: sdk.ToString(message)}
	if e.Code == "" {
		return nil
	}
	status := 0
	if permanent {
		status = http.StatusBadRequest
	}
	return classified(e, status)
}

// sharedFault reports whether a permanent failure of a batch call applies to the whole batch (a
// missing queue, a missing permission) rather than to one entry.
func sharedFault(e *target.Error) bool {
	for _, part := range []string{
		"NotFound", "NonExist", "DoesNotExist", "AccessDenied", "Authorization", "Credential", "Token", "Signature", codeUnknown, "UnknownOperation", "Kms", "KMS", "OptIn", "Unrecognized",
	} {
		if strings.Contains(e.Code, part) {
			return true
		}
	}
	return false
}

// credentialsError is the error for missing credentials.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string {
	return "no credentials: " + e.err.Error() + "; set access-key and secret-key or profile in the configuration, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
}

func (e *credentialsError) Unwrap() error { return e.err }
