package program

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
)

// tracedError is an error as the storage engine's are: in detail it has a stack trace.
type tracedError struct{}

func (tracedError) Error() string { return "no room" }

func (tracedError) Format(s fmt.State, _ rune) {
	text := "no room"
	if s.Flag('+') {
		text += "\nstack trace"
	}
	_, _ = s.Write([]byte(text))
}

// An error is logged as its message, without a stack trace.
func TestErrorsInTheLog(t *testing.T) {
	for format, want := range map[string]string{"text": `cause="no room"`, "json": `"cause":"no room"`} {
		var logged strings.Builder
		logFlags{LogFormat: format}.logger(&logged).Warn("failed", "cause", tracedError{}, "n", 1)
		if !strings.Contains(logged.String(), want) {
			t.Errorf("%s: %s", format, logged.String())
		}
	}
}

// An error of the SDK is logged with the operation and the reason, and without the request.
func TestErrorsOfTheSDKInTheLog(t *testing.T) {
	err := fmt.Errorf("read a page: %w", &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Query", Err: fmt.Errorf("exceeded maximum number of attempts, 1: %w", &smithy.GenericAPIError{Code: "ThrottlingException", Message: "slow down"})})
	for format, want := range map[string]string{"text": `error="read a page: Query: ThrottlingException: slow down"`, "json": `"error":"read a page: Query: ThrottlingException: slow down"`} {
		var logged strings.Builder
		logFlags{LogFormat: format}.logger(&logged).Warn("failed", "error", errors.Join(err))
		if !strings.Contains(logged.String(), want) {
			t.Errorf("%s: %s", format, logged.String())
		}
	}
}
