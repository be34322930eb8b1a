package trigger

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Request is a request of Lambda's API.
type Request struct {
	Path   map[string]string    // the text of each label of the path, unescaped
	Query  url.Values           // unescaped
	Decode func(into any) error // reads the body's JSON into a structure
}

// Operation is an operation on event source mappings, with its route.
type Operation struct {
	Name   string
	Method string
	Path   string // a segment in braces is a label; clients append a slash or leave it out
	Status int    // after a success
	Do     func(ctx context.Context, r *Request) (any, error)
}

// Operations returns the table of operations. To add one: a method, a file for it, a line here.
func (t *Triggers) Operations() []Operation {
	const all, one = "/2015-03-31/event-source-mappings", "/2015-03-31/event-source-mappings/{UUID}"
	return []Operation{
		{"CreateEventSourceMapping", http.MethodPost, all, http.StatusAccepted, answer(t.CreateEventSourceMapping, (*CreateEventSourceMappingInput).fill)},
		{"ListEventSourceMappings", http.MethodGet, all, http.StatusOK, answer(t.ListEventSourceMappings, (*ListEventSourceMappingsInput).fill)},
		{"GetEventSourceMapping", http.MethodGet, one, http.StatusOK, answer(t.GetEventSourceMapping, (*GetEventSourceMappingInput).fill)},
		{"UpdateEventSourceMapping", http.MethodPut, one, http.StatusAccepted, answer(t.UpdateEventSourceMapping, (*UpdateEventSourceMappingInput).fill)},
		{"DeleteEventSourceMapping", http.MethodDelete, one, http.StatusAccepted, answer(t.DeleteEventSourceMapping, (*DeleteEventSourceMappingInput).fill)},
	}
}

// answer returns the handler of an operation. fill copies the parts of the input that are not in
// the body.
func answer[In, Out any](do func(context.Context, *In) (*Out, error), fill func(*In, *Request) error) func(context.Context, *Request) (any, error) {
	return func(ctx context.Context, r *Request) (any, error) {
		in := new(In)
		if err := fill(in, r); err != nil {
			return nil, err
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// label is the name of the only label in paths.
const label = "UUID"

func (in *CreateEventSourceMappingInput) fill(r *Request) error { return r.Decode(in) }

func (in *GetEventSourceMappingInput) fill(r *Request) error {
	in.UUID = r.Path[label]
	return nil
}

func (in *DeleteEventSourceMappingInput) fill(r *Request) error {
	in.UUID = r.Path[label]
	return nil
}

func (in *UpdateEventSourceMappingInput) fill(r *Request) error {
	err := r.Decode(in)
	in.UUID = r.Path[label]
	return err
}

func (in *ListEventSourceMappingsInput) fill(r *Request) error {
	query := func(name string) *string {
		if !r.Query.Has(name) {
			return nil
		}
		v := r.Query.Get(name)
		return &v
	}
	*in = ListEventSourceMappingsInput{EventSourceArn: query("EventSourceArn"), FunctionName: query("FunctionName"), Marker: query("Marker")}
	if text := query("MaxItems"); text != nil {
		n, err := strconv.Atoi(*text)
		if err != nil {
			// AWS's text is unknown
			return &Error{"SerializationException", *text + " cannot be converted to Integer"}
		}
		in.MaxItems = &n
	}
	return nil
}
