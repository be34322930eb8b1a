package strict

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// answer is an endpoint's answer, or one in its place.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error // the SDK's form of an error, while the answer is unchanged
}

func (a answer) ok() bool { return a.status == http.StatusOK }

// code returns the code of an error, without its namespace. It returns "" for a success, and for an
// error that does not follow the API.
func (a answer) code() dynamo.Code {
	if a.ok() {
		return ""
	}
	var e struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(a.body, &e) != nil {
		return ""
	}
	return dynamo.Code(e.Type[strings.LastIndexByte(e.Type, '#')+1:])
}

// with returns the answer with another body. It drops err, which belongs to the unchanged answer.
func (a answer) with(body []byte) answer {
	return answer{status: a.status, header: a.header, body: body}
}

// refuse returns the error answer for a request that the endpoint does not see.
func refuse(e *dynamo.Error) answer {
	namespace, member, status := "com.amazonaws.dynamodb.v20120810#", "message", http.StatusBadRequest
	switch e.Code {
	case dynamo.CodeValidation:
		namespace = "com.amazon.coral.validate#"
	case dynamo.CodeSerialization, dynamo.CodeUnknownOperation, dynamo.CodeAccessDenied:
		namespace, member = "com.amazon.coral.service#", "Message"
	case dynamo.CodeMissingAuthToken, dynamo.CodeIncompleteSignature, dynamo.CodeInvalidSignature, dynamo.CodeUnrecognizedClient:
		namespace = "com.amazon.coral.service#"
	case dynamo.CodeInternal:
		status = http.StatusInternalServerError
	case dynamo.CodeUnavailable:
		namespace, status = "com.amazon.coral.service#", http.StatusServiceUnavailable
	}
	body := object{"__type": quoted(namespace + string(e.Code))}
	if e.Message != "" {
		body[member] = quoted(strings.ToValidUTF8(e.Message, "\uFFFD"))
	}
	return answer{status: status, header: http.Header{"Content-Type": {typeAmzJSON}}, body: body.bytes()}
}

const typeAmzJSON = "application/x-amz-json-1.0"

// wrongType returns the error for a member of another type than the API's.
func wrongType(member string) *dynamo.Error {
	return &dynamo.Error{Code: dynamo.CodeSerialization, Message: member + " does not have the type that the API defines"}
}

// refused is the error of a request that gets this error answer.
type refused struct{ answer answer }

func (r *refused) Error() string { return "strict: " + string(r.answer.body) }

// errUnreadable is the error for an endpoint's answer to the request that does not follow the API.
// It must not be passed on: it could show expired items.
var errUnreadable = errors.New("strict: the endpoint's answer does not follow the API")

// unreadable returns the error answer in place of one that does not follow the API.
func unreadable(operation string) answer {
	return refuse(&dynamo.Error{Code: dynamo.CodeInternal, Message: "strict reads: the endpoint's answer to " + operation + " does not follow the API, so it is not passed on"})
}

// named replaces errUnreadable by the error answer for an operation that the rewriter has called
// itself. It returns other errors unchanged.
func named(err error, operation string) error {
	if errors.Is(err, errUnreadable) {
		return &refused{unreadable(operation)}
	}
	return err
}

// read sends a call and reads the answer. out is nil if the endpoint refuses the call. The error is
// errUnreadable if the answer is a success without a JSON object.
func (c *call) read(ctx context.Context, operation string, body []byte) (a answer, out object, err error) {
	a, err = c.send(ctx, operation, body)
	if err != nil || !a.ok() {
		return a, nil, err
	}
	out, ok := readObject(a.body)
	if !ok {
		return a, nil, errUnreadable
	}
	return a, out, nil
}

// advised returns the endpoint's error for a call of the rewriter, with the call's purpose in its
// message. otherwise continues that text: the reason for the call, or the caller's way out without
// it. It may be "".
func advised(a answer, operation, table, otherwise string) error {
	o, ok := readObject(a.body)
	if !ok || !o.has("__type") {
		return &refused{a}
	}
	why := "strict reads of table " + table + " need " + operation
	if otherwise != "" {
		why += ", " + otherwise
	}
	return &refused{a.with(object{"__type": o["__type"], "message": quoted(why + ". The endpoint says: " + o.text("message") + o.text("Message"))}.bytes())}
}
