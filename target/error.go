package target

import (
	"errors"
	"time"
)

// Error is a failed attempt. An error of another type is one that is worth another attempt, with the code "TargetError".
type Error struct {
	Code      string        // what the target's API calls it, such as "ResourceNotFoundException"; a dead letter's ERROR_CODE
	Message   string        // what it said; a dead letter's ERROR_MESSAGE
	Permanent bool          // another attempt cannot succeed: the target is gone, or refuses this delivery
	Throttled bool          // the target has too much to do
	After     time.Duration // the target asked to be left alone for so long; 0 where it did not
	Err       error         // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// codeUnknown is the code of an error that has none.
const codeUnknown = "TargetError"

// AsError is err as an *Error: itself, one that it wraps, or one with the code "TargetError" and its text. It is nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: codeUnknown, Message: err.Error(), Err: err}
}

// Permanent is a failure that another attempt cannot mend.
func Permanent(code, message string) error {
	return &Error{Code: code, Message: message, Permanent: true}
}
