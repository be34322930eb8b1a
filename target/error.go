package target

import (
	"errors"
	"time"
)

// Error is a failed attempt. An error of another type may be retried, and has the code
// "TargetError".
type Error struct {
	// the error code of the target's API, such as "ResourceNotFoundException"; a dead letter's
	// ERROR_CODE
	Code    string
	Message string // the target's message; a dead letter's ERROR_MESSAGE
	// another attempt cannot succeed: the target is missing, or refuses this delivery
	Permanent bool
	Throttled bool          // the target is overloaded
	After     time.Duration // the pause that the target asked for; 0 for none
	Err       error         // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// codeUnknown is the code of an error without one.
const codeUnknown = "TargetError"

// AsError returns err as an *Error: err itself, one that it wraps, or one with the code
// "TargetError" and its text. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: codeUnknown, Message: err.Error(), Err: err}
}

// Permanent returns a failure that another attempt cannot mend.
func Permanent(code, message string) error {
	return &Error{Code: code, Message: message, Permanent: true}
}
