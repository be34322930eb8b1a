package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// mountedBodyMax is the size of the largest request body for a mounted API, compressed or not.
const mountedBodyMax = 1 << 20

const typeAmzJSON11 = "application/x-amz-json-1.1"

// api is the form of one mounted API on the wire: its content type, its errors and their statuses.
type api struct {
	service     string
	contentType string
	fault       string // the code of an error that the API does not define
	refused     int    // the status for a request without a valid signature
	protocol    *protocol
	writeError  func(out *Response, code, message string, status int)
}

func newRESTAPI(service string) *api {
	a := &api{service, typeJSON, "InternalServerException", http.StatusForbidden, nil, writeRESTError}
	if service == "lambda" {
		a.fault, a.writeError = "ServiceException", writeLambdaError
	}
	return a
}

func newJSONAPI(service string) *api {
	return &api{service, typeAmzJSON11, "InternalException", http.StatusBadRequest, nil, writeJSONError}
}

// refusal returns a signature error, or errNoRoom, in the API's form.
func (a *api) refusal(err error) error {
	var refused *dynamo.Error
	if !errors.As(err, &refused) {
		return err
	}
	if refused == errNoRoom {
		return &failure{http.StatusServiceUnavailable, "ServiceUnavailableException", refused.Message}
	}
	return &failure{a.refused, string(refused.Code), refused.Message}
}

const headerErrorType = "X-Amzn-Errortype"

// writeRESTError writes the code into a header and the text into the body.
func writeRESTError(out *Response, code, message string, status int) {
	out.Status = status
	out.set(headerErrorType, code)
	out.w.beginObject()
	out.w.name("Message").text(message)
	out.w.endObject()
}

// writeLambdaError also writes whether the caller or the service is at fault.
func writeLambdaError(out *Response, code, message string, status int) {
	out.Status = status
	out.set(headerErrorType, code)
	fault := "User"
	if status >= http.StatusInternalServerError {
		fault = "Service"
	}
	out.w.beginObject()
	out.w.name("Type").text(fault)
	out.w.name("Message").text(message)
	out.w.endObject()
}

// writeJSONError writes code and text into the body. The status is 400 for all errors of the
// client.
func writeJSONError(out *Response, code, message string, status int) {
	out.Status = http.StatusBadRequest
	if status >= http.StatusInternalServerError {
		out.Status = http.StatusInternalServerError
	}
	out.w.beginObject()
	out.w.name("__type").text(code)
	out.w.name("message").text(message)
	out.w.endObject()
}

// answerMounted writes the result of a Route or an Action, or its error. It returns the operation's
// name and the error's code; each is empty if there is none.
func (s *Server) answerMounted(ctx context.Context, m *match, in *Request, out *Response, body []byte, id string) (name, code string) {
	if m.op != nil {
		name = m.op.name
	}
	out.set("Content-Type", m.api.contentType)
	if _, allowed := s.allowed(in); allowed {
		out.set("Access-Control-Expose-Headers", headerErrorType+", X-Amzn-Requestid")
	}
	result, err := s.checkAndRunMounted(ctx, m, in, body)
	if err == nil {
		out.Status = m.op.status
		err = m.write(out, result, id)
	}
	if err != nil {
		f := s.mountedFailure(ctx, m, err, name, id)
		code = f.ErrorCode()
		out.w.buf = out.w.buf[:0]
		m.api.fail(out, f, id)
	}
	out.Body = out.w.buf
	return name, code
}

// checkAndRunMounted checks size, operation, signature, the encoding of path and query and the
// permission, in this order, and then runs the operation, which checks the body.
func (s *Server) checkAndRunMounted(ctx context.Context, m *match, in *Request, body []byte) (result any, err error) {
	switch {
	case max(len(in.Body), len(body)) > mountedBodyMax:
		return nil, &failure{http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException",
			"the body of a request has at most " + strconv.Itoa(mountedBodyMax) + " bytes"}
	case m.op == nil:
		return nil, &failure{http.StatusNotFound, "UnknownOperationException", unknownMounted(m, in)}
	}
	from, err := s.authenticate(in, m.api.service)
	if err != nil {
		return nil, m.api.refusal(err)
	}
	if in.unreadable != nil {
		return nil, &failure{http.StatusInternalServerError, m.api.fault, in.unreadable.Message}
	}
	call := &Call{protocol: m.api.protocol, Header: in.Header, Body: body, Region: sigv4.Region(in.Header.Get("Authorization"))}
	if call.Path, err = m.labels(); err != nil {
		return nil, err
	}
	if call.Query, err = readQuery(in.Query); err != nil {
		return nil, err
	}
	defer recovered(&err)
	if from != nil { // the resource may be in the body
		if err := from.permitAction(m.op.name, m.op.resourceOf(call)); err != nil {
			return nil, m.api.refusal(err)
		}
	}
	return m.op.do(ctx, call)
}

// unknownMounted returns the message for an unknown operation. It quotes the request, and replaces
// bytes there that are not UTF-8.
func unknownMounted(m *match, in *Request) string {
	asked := in.Method + " " + in.Path
	if in.Path == "/" {
		asked = cmp.Or(in.Header.Get("X-Amz-Target"), formAction(in))
	}
	return strings.ToValidUTF8(m.api.service+" has no operation "+asked+" here", "\uFFFD")
}

// readQuery returns the parameters of a query.
func readQuery(query string) (url.Values, error) {
	if query == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, malformed("the query is malformed: " + err.Error())
	}
	invalid := func(text string) bool { return !utf8.ValidString(text) }
	for name, all := range values {
		if invalid(name) || slices.ContainsFunc(all, invalid) {
			return nil, malformed("the query is not percent-encoded UTF-8")
		}
	}
	return values, nil
}

// mountedFailure returns the error to answer with. Like apiError, it logs an error that the API does
// not define, and the client gets the API's code for faults.
func (s *Server) mountedFailure(ctx context.Context, m *match, err error, operation, id string) Failure {
	if f, ok := errors.AsType[Failure](err); ok {
		return f
	}
	s.logFault(ctx, err, operation, id)
	return &failure{http.StatusInternalServerError, m.api.fault, errFault.Message}
}

// marshal writes a value by encoding/json's rules. nil is an empty structure.
func (w *writer) marshal(v any) error {
	if v == nil {
		w.buf = append(w.buf, "{}"...)
		return nil
	}
	to := json.NewEncoder((*jsonSink)(w))
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	w.buf = w.buf[:len(w.buf)-1] // Encode ends with a newline
	return nil
}

// jsonSink lets encoding/json write into a writer.
type jsonSink writer

func (s *jsonSink) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}
