package rpc

import (
	"errors"
	"fmt"
	"time"
)

// Form is a protocol.
type Form int

// The protocols.
const (
	JSON  Form = iota + 1 // AWS JSON 1.0
	CBOR                  // Smithy RPC v2 CBOR
	Query                 // AWS query: a form, and XML
)

// ContentType returns the type of answers.
func (f Form) ContentType() string {
	switch f {
	case JSON:
		return "application/x-amz-json-1.0"
	case CBOR:
		return "application/cbor"
	default:
		return "text/xml"
	}
}

// Time is an instant. Messages have it as seconds since the epoch, and XML as a date and time.
type Time struct{ time.Time }

// The bounds of a message.
const (
	depthMax  = 16     // structures and lists inside each other
	valuesMax = 50_000 // values, with the structures and lists around them
)

var (
	errDeep = fmt.Errorf("more than %d levels", depthMax)
	errMany = fmt.Errorf("more than %d values", valuesMax)
	errEnds = errors.New("the message ends too early")
)

// Decode reads a request's body into a structure. An empty body is an empty structure. Unknown
// members are ignored.
func (f Form) Decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	var tree any
	var err error
	switch f {
	case JSON:
		tree, err = readJSON(body)
	case CBOR:
		tree, err = readCBOR(body)
	default:
		tree, err = readQuery(body)
	}
	if err != nil {
		return err
	}
	return bind(tree, into, f == Query)
}

// Answer is a successful answer's frame, which only XML has.
type Answer struct {
	Operation string // "GetMetricData"
	Namespace string // of the XML
	RequestID string
}

// Append appends the answer with a structure to b. nil is an empty structure.
func (f Form) Append(b []byte, a Answer, v any) []byte {
	if v == nil {
		v = struct{}{}
	}
	switch f {
	case JSON:
		return appendValue(&jsonSink{b}, v).b
	case CBOR:
		return appendValue(&cborSink{b}, v).b
	default:
		x := &xmlSink{b}
		x.b = append(x.b, "<"+a.Operation+`Response xmlns="`+a.Namespace+`"><`+a.Operation+"Result>"...)
		appendValue(x, v)
		x.b = append(x.b, "</"+a.Operation+"Result><ResponseMetadata><RequestId>"+a.RequestID+"</RequestId></ResponseMetadata></"+a.Operation+"Response>"...)
		return x.b
	}
}

// Fault is an error of the API.
type Fault struct {
	Code      string // as in the API's model: "InvalidParameterValueException"
	QueryCode string // as the query protocol spells it: "InvalidParameterValue"
	Message   string
	Server    bool   // the server is at fault
	Namespace string // of the XML
	RequestID string
}

// AppendFault appends the body of an error.
func (f Form) AppendFault(b []byte, e Fault) []byte {
	body := struct {
		Type    string `rpc:"__type"`
		Message string `rpc:"message"`
	}{e.Code, e.Message}
	switch f {
	case JSON:
		return appendValue(&jsonSink{b}, body).b
	case CBOR:
		return appendValue(&cborSink{b}, body).b
	default:
		x := &xmlSink{b}
		x.b = append(x.b, `<ErrorResponse xmlns="`+e.Namespace+`"><Error>`...)
		appendValue(x, struct{ Type, Code, Message string }{e.Side(), e.QueryCode, e.Message})
		x.b = append(x.b, "</Error><RequestId>"+e.RequestID+"</RequestId></ErrorResponse>"...)
		return x.b
	}
}

// Side returns the party at fault in the query protocol's words.
func (e Fault) Side() string {
	if e.Server {
		return "Receiver"
	}
	return "Sender"
}
