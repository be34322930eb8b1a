package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Call is a request to a Route or an Action. Do may use it until it returns.
type Call struct {
	Path map[string]string // the unescaped text of each label in the path
	// the parameters, unescaped. Read one that is no list with Get: its first value counts
	Query  url.Values
	Header Header
	Body   []byte // decompressed; at most 1 MB
	Region string // from the signature; empty if there is none

	protocol *protocol // of the body; nil: JSON
}

// Failure is an error that is part of an API's contract, not a fault.
type Failure interface {
	error
	ErrorCode() string // "ValidationException"
	ErrorMessage() string
	HTTPStatus() int
}

// failure is a Failure that this package finds, before the operation runs.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string        { return f.code + ": " + f.message }
func (f *failure) ErrorCode() string    { return f.code }
func (f *failure) ErrorMessage() string { return f.message }
func (f *failure) HTTPStatus() int      { return f.status }

// malformed returns the error for unreadable input.
func malformed(why string) error {
	return &failure{http.StatusBadRequest, "SerializationException", why}
}

// Decode reads the body into a structure by encoding/json's rules, except that members' names are
// case-sensitive. An empty body is an empty structure. The error is a Failure, the API's
// SerializationException.
func (c *Call) Decode(into any) error {
	if len(c.Body) == 0 {
		return nil
	}
	if c.protocol != nil {
		return c.protocol.decode(c.Body, into)
	}
	err := json.Unmarshal(exactNames(c.Body, reflect.TypeOf(into)), into)
	var typ *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil && !utf8.Valid(c.Body):
		return malformed("the body is not UTF-8")
	case err == nil:
		return nil
	case errors.As(err, &typ):
		return malformed(wrongType(typ))
	case errors.As(err, &syntax):
		return malformed("the body is not valid JSON: " + syntax.Error() + ", at byte " + strconv.FormatInt(syntax.Offset, 10))
	default:
		// an error of an UnmarshalJSON method
		return malformed(strings.TrimPrefix(err.Error(), "json: "))
	}
}

// wrongType returns the message for a member of a wrong type, with the member and both types.
func wrongType(e *json.UnmarshalTypeError) string {
	found, _, _ := strings.Cut(e.Value, " ") // "number 1.5" means a number that is no integer
	if kind, known := valueNames[found]; known {
		found = kind
	}
	text := found + " cannot be converted to " + typeName(e.Type)
	if e.Field == "" {
		return text
	}
	return e.Field + ": " + text
}

var valueNames = map[string]string{
	"string": "STRING_VALUE", "number": "NUMBER_VALUE", "bool": "BOOLEAN_VALUE", "array": "LIST_VALUE", "object": "STRUCTURE_VALUE",
}

// typeName returns the name of a Go type in an API's model.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "String"
	case reflect.Bool:
		return "Boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "Integer"
	case reflect.Float32, reflect.Float64:
		return "Number"
	case reflect.Slice, reflect.Array:
		return "List"
	case reflect.Map:
		return "Map"
	default:
		return "Structure"
	}
}
