package trigger

import (
	"fmt"
	"net/http"
)

// Error is an error that Lambda's API defines.
type Error struct {
	Code    string
	Message string
}

// The errors of the operations on event source mappings.
const (
	codeValidation = "ValidationException"            // violates a constraint of the API's model
	codeParameter  = "InvalidParameterValueException" // a parameter is invalid for another reason
	codeNotFound   = "ResourceNotFoundException"
	codeConflict   = "ResourceConflictException"
	codeInUse      = "ResourceInUseException"
)

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ErrorCode returns the error's name on the wire.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorMessage returns the message.
func (e *Error) ErrorMessage() string { return e.Message }

// HTTPStatus returns the status for the code.
func (e *Error) HTTPStatus() int {
	switch e.Code {
	case codeNotFound:
		return http.StatusNotFound
	case codeConflict:
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

// invalid returns the error for an invalid parameter.
func invalid(format string, args ...any) *Error {
	return &Error{codeParameter, fmt.Sprintf(format, args...)}
}

// errNoMapping is the error for an unknown UUID.
var errNoMapping = &Error{codeNotFound, "The resource you requested does not exist."}

// inUse returns the error for a mapping that is changing its state. verb is "update" or "delete".
func inUse(verb string) *Error {
	return &Error{codeInUse, "Cannot " + verb + " the event source mapping because it is in use."}
}
