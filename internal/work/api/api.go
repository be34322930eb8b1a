// Package api has the parts that the APIs of schedules, rules and event source mappings share: the
// table of operations, requests that become inputs, and errors.
package api

import (
	"context"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// Request is a request without its protocol.
type Request struct {
	Path   map[string]string        // unescaped segments of the path, by label
	Query  url.Values               // unescaped
	Header func(name string) string // returns the value of a header, or ""
	Decode func(into any) error     // parses the body's JSON
	Region string                   // of the signature; empty: unknown
}

// Operation is an operation of an API. An operation that requests find by name has no method and no
// path.
type Operation struct {
	Name   string
	Method string
	Path   string // a segment in braces is a label
	Status int    // of HTTP, after a success; 0: 200
	Do     func(ctx context.Context, r *Request) (any, error)
}

// Error is a failure that an API defines: code, text and status are part of its contract. Any other
// error of an operation is a fault.
type Error struct {
	Code    string
	Message string
	Status  int // of HTTP
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// ErrorCode returns the error's name on the wire.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorMessage returns the text.
func (e *Error) ErrorMessage() string { return e.Message }

// HTTPStatus returns the status of the answer.
func (e *Error) HTTPStatus() int { return e.Status }

// Bind returns an operation's Do from the method that implements it. The tag "from" of a member of
// its input names the source of the member: "path Label", "query name", "header Name" or "region".
// If there is a member without this tag, the body is decoded first.
//
// Members from the query are *string, *int or []string, and nil if the query lacks them. Those from
// other sources are strings.
func Bind[In, Out any](do func(context.Context, *In) (*Out, error)) func(context.Context, *Request) (any, error) {
	return func(ctx context.Context, r *Request) (any, error) {
		in := new(In)
		if err := r.fill(reflect.ValueOf(in)); err != nil {
			return nil, err
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

func (r *Request) fill(in reflect.Value) error {
	t, decoded := in.Elem().Type(), false
	for field := range t.Fields() {
		if field.Tag.Get("from") == "" && !decoded {
			if err := r.Decode(in.Interface()); err != nil {
				return err
			}
			decoded = true
		}
	}
	for i := range t.NumField() {
		member := in.Elem().Field(i)
		switch source, name, _ := strings.Cut(t.Field(i).Tag.Get("from"), " "); source {
		case "path":
			member.SetString(r.Path[name])
		case "header":
			member.SetString(r.Header(name))
		case "region":
			member.SetString(r.Region)
		case "query":
			if err := setQuery(member.Addr().Interface(), r.Query[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// setQuery sets a member to the values of a parameter.
func setQuery(member any, values []string) error {
	if len(values) == 0 {
		return nil
	}
	switch member := member.(type) {
	case *[]string:
		*member = values
	case **string:
		*member = &values[0]
	case **int:
		n, err := strconv.Atoi(values[0])
		if err != nil {
			// AWS's text is unknown
			return &Error{"SerializationException", values[0] + " cannot be converted to Integer", 400}
		}
		*member = &n
	default:
		panic("api: a member from the query is a *string, an *int or a []string")
	}
	return nil
}
