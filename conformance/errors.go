package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
)

// The error types that checks name most.
const (
	validation       = "ValidationException"
	serialization    = "SerializationException"
	notFound         = "ResourceNotFoundException"
	inUse            = "ResourceInUseException"
	limitExceeded    = "LimitExceededException"
	conditionFailed  = "ConditionalCheckFailedException"
	transactCanceled = "TransactionCanceledException"
	accessDenied     = "AccessDeniedException"
)

// invalid begins many messages about parameters.
const invalid = "One or more parameter values were invalid: "

// wantError checks an error's type and its message, in which … stands for any text; an empty
// message is not compared.
func wantError(t *testing.T, err error, code, message string) {
	t.Helper()
	if problem := errorProblem(err, code, message); problem != "" {
		t.Error(problem)
	}
}

// errorProblem returns the difference between err and the wanted API error, or "".
func errorProblem(err error, code, message string) string {
	want := fmt.Sprintf("want %s: %s", code, message)
	if err == nil {
		return " got success\n" + want
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Sprintf(" got an error that is none of the API's: %v\n%s", err, want)
	}
	if api.ErrorCode() != code || message != "" && !matches(api.ErrorMessage(), message) {
		return fmt.Sprintf(" got %s: %s\n%s", api.ErrorCode(), api.ErrorMessage(), want)
	}
	return ""
}

// matches reports whether text has the form of the pattern, in which … is any text.
func matches(text, pattern string) bool {
	parts := strings.Split(pattern, "…")
	if len(parts) == 1 {
		return text == pattern
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, last)
}
