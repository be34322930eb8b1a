package trigger

import (
	"fmt"
	"net/http"

	"github.com/mayflydb/mayfly/internal/work/api"
)

// Error is an error that Lambda's API defines.
type Error = api.Error

// The errors of the operations on event source mappings.
const (
	codeValidation = "ValidationException"            // violates a constraint of the API's model
	codeParameter  = "InvalidParameterValueException" // a parameter is invalid for another reason
	codeNotFound   = "ResourceNotFoundException"
	codeConflict   = "ResourceConflictException"
	codeInUse      = "ResourceInUseException"
)

// invalid returns the error for an invalid parameter.
func invalid(format string, args ...any) *Error {
	return &Error{Code: codeParameter, Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}

// errNoMapping is the error for an unknown UUID.
var errNoMapping = &Error{Code: codeNotFound, Message: "The resource you requested does not exist.", Status: http.StatusNotFound}

// inUse returns the error for a mapping that is changing its state. verb is "update" or "delete".
func inUse(verb string) *Error {
	return &Error{Code: codeInUse, Message: "Cannot " + verb + " the event source mapping because it is in use.", Status: http.StatusBadRequest}
}
