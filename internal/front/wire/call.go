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

// Call is a request as a Route or an Action gets it. It is its own until Do returns.
type Call struct {
	Path   map[string]string // what stands in the path for each label, unescaped
	Query  url.Values        // unescaped. Of a parameter that is no list the first value counts, and so Get is the way to read it
	Header Header
	Body   []byte // decompressed; at most 1 MB
	Region string // that the request says it is signed for; empty where it says none
}

// Failure is an error that an API defines: a part of its contract, and not a fault.
type Failure interface {
	error
	ErrorCode() string // "ValidationException"
	ErrorMessage() string
	HTTPStatus() int
}

// failure is what the wire itself finds wrong.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string        { return f.code + ": " + f.message }
func (f *failure) ErrorCode() string    { return f.code }
func (f *failure) ErrorMessage() string { return f.message }
func (f *failure) HTTPStatus() int      { return f.status }

// malformed answers what cannot be read.
func malformed(why string) error {
	return &failure{http.StatusBadRequest, "SerializationException", why}
}

// Decode reads the body into a structure, by encoding/json's rules, but that the names of members are exact; an empty body is an empty structure. Its error is a Failure, the API's
// SerializationException.
func (c *Call) Decode(into any) error {
	if len(c.Body) == 0 {
		return nil
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
		return malformed(strings.TrimPrefix(err.Error(), "json: ")) // of a member that reads itself
	}
}

// wrongType says which member of a body is of which type instead of which.
func wrongType(e *json.UnmarshalTypeError) string {
	found, _, _ := strings.Cut(e.Value, " ") // "number 1.5" is a number that is no integer
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

// typeName gives a Go type the name that it has in an API's model.
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
