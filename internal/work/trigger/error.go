package trigger

import (
	"fmt"
	"net/http"
)

// Error is a failure that Lambda's API defines.
type Error struct {
	Code    string
	Message string
}

// The errors of the operations on event source mappings.
const (
	codeValidation = "ValidationException"            // a constraint of the API's model is broken
	codeParameter  = "InvalidParameterValueException" // a parameter is wrong for another reason
	codeNotFound   = "ResourceNotFoundException"
	codeConflict   = "ResourceConflictException"
	codeInUse      = "ResourceInUseException"
)

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ErrorCode is the error's name on the wire.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorMessage is its text.
func (e *Error) ErrorMessage() string { return e.Message }

// HTTPStatus follows from the code.
func (e *Error) HTTPStatus() int {
	switch e.Code {
	case codeNotFound:
		return http.StatusNotFound
	case codeConflict:
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

// invalid says that a parameter is wrong.
func invalid(format string, args ...any) *Error {
	return &Error{codeParameter, fmt.Sprintf(format, args...)}
}

// errNoMapping is the answer about a UUID that is nobody's.
var errNoMapping = &Error{codeNotFound, "The resource you requested does not exist."}

// inUse says that a mapping is on its way to another state. verb is "update" or "delete".
func inUse(verb string) *Error {
	return &Error{codeInUse, "Cannot " + verb + " the event source mapping because it is in use."}
}
