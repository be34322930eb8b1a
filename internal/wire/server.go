package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/dynamo"
	"github.com/mayflydb/mayfly/internal/service"
	"github.com/mayflydb/mayfly/internal/sigv4"
)

// bodyMax is the size of the largest request body, compressed or not.
const bodyMax = 16 << 20

// Options are what a Server is made of. Service is required, and Now where Verifier or Observe is set.
type Options struct {
	Service *service.Service

	// Now is the real time, whatever the database's clock says: signatures age by it.
	Now func() time.Time

	// Verifier checks the signatures of requests that come over the network; nil: they are not checked.
	Verifier *sigv4.Verifier

	// Region is what GET / names. Default "us-east-1".
	Region string

	// CORS lists the origins whose pages may read answers: "https://example.org", or "*" for all. Empty: none.
	CORS []string

	// Observe is told of every request when its answer is ready: the operation (empty where none was recognized), the
	// status, the error's code (empty on success) and how long it took. nil: nobody is.
	Observe func(operation string, status int, code string, took time.Duration)

	// Logger gets the faults. Default slog.Default().
	Logger *slog.Logger
}

// Server answers requests. It is safe for concurrent use, and an http.Handler.
type Server struct {
	Options
}

// New makes a server. It starts nothing.
func New(o Options) *Server {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Server{Options: o}
}

// Do answers one request. It never fails and never panics: whatever goes wrong is an answer.
func (s *Server) Do(ctx context.Context, in *Request) *Response {
	out := newResponse()
	if s.Observe == nil {
		s.answer(ctx, in, out)
		return out
	}
	start := s.Now()
	target, code := s.answer(ctx, in, out)
	s.Observe(target.name, out.Status, string(code), s.Now().Sub(start))
	return out
}

// answer fills the response. It gives the operation that was asked for and the error that was answered, as far as there are
// such.
func (s *Server) answer(ctx context.Context, in *Request, out *Response) (target target, code dynamo.Code) {
	body, ok := decompress(in)
	if in.Oversize || len(in.Body) > bodyMax || !ok {
		out.Status = http.StatusRequestEntityTooLarge
		return target, ""
	}
	id := newRequestID()
	out.set("X-Amzn-Requestid", id)
	s.allowOrigin(in, out)
	if !s.plain(in, out) {
		target, code = s.call(ctx, in, out, body, id)
	}
	if !in.InProcess {
		out.seal(in.Header.Get("Accept-Encoding"))
	}
	return target, code
}

// plain answers what is not a call of an operation, and reports whether the request was such.
func (s *Server) plain(in *Request, out *Response) bool {
	contentType, known := answerType(in.Header.Get("Content-Type"))
	switch {
	case in.Method == http.MethodPost && (known || len(in.Body) == 0):
		out.set("Content-Type", contentType)
		return false
	case in.Method == http.MethodOptions && s.preflight(in, out):
		out.Status = http.StatusOK
	case in.Method == http.MethodGet && in.Path == "/":
		out.Status = http.StatusOK
		out.set("Content-Type", "text/plain")
		out.w.buf = append(out.w.buf, "healthy: dynamodb."+s.Region+".amazonaws.com "...)
	default:
		out.Status = http.StatusNotFound
		out.set("Content-Type", "application/xml")
		out.w.buf = append(out.w.buf, "<UnknownOperationException/>\n"...)
	}
	out.Body = out.w.buf
	return true
}

const (
	typeJSON    = "application/json"
	typeAmzJSON = "application/x-amz-json-1.0"
)

// answerType gives the content type of the answer to a request of the given one, and whether that is one we understand.
func answerType(contentType string) (answer string, known bool) {
	base, _, _ := strings.Cut(contentType, ";")
	switch strings.TrimSpace(base) {
	case typeAmzJSON:
		return typeAmzJSON, true
	case typeJSON:
		return typeJSON, true
	default:
		return typeJSON, false
	}
}

// call runs the operation that the request names and writes its answer or its error.
func (s *Server) call(ctx context.Context, in *Request, out *Response, body []byte, id string) (target, dynamo.Code) {
	target, err := s.run(ctx, in, out, body)
	if err != nil {
		answer := s.apiError(ctx, err, target.name, id)
		out.writeError(answer)
		return target, answer.Code
	}
	out.Status = http.StatusOK
	out.Body = out.w.buf
	return target, ""
}

// writeError makes an error the answer.
func (r *Response) writeError(e *dynamo.Error) {
	r.Status = status(e.Code)
	r.w.buf = r.w.buf[:0]
	encodeError(&r.w, e)
	r.Body = r.w.buf
}

// apiError gives the error to answer with. What the API does not define is a fault: the client gets to know that there was
// one, and the log gets the rest.
func (s *Server) apiError(ctx context.Context, err error, operation, id string) *dynamo.Error {
	var answer *dynamo.Error
	if errors.As(err, &answer) {
		return answer
	}
	// A context that has ended is a client that has gone: nobody's fault, and nobody reads the answer.
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		s.Logger.Error("request failed", "operation", operation, "request_id", id, "error", err)
	}
	return errFault
}

// run checks the request in AWS's order, and then calls the operation.
func (s *Server) run(ctx context.Context, in *Request, out *Response, body []byte) (target target, err error) {
	target, known := lookUp(in.Header.Get("X-Amz-Target"))
	if !known {
		err = errUnknownOperation
	} else {
		err = s.authenticate(in)
	}
	switch {
	case err != nil && len(body) > 0 && !dynamo.ValidJSON(body):
		// Malformed JSON comes before both. It is looked for here so that only refused requests are read twice.
		return target, errSerialization
	case err != nil:
		return target, err
	case len(body) == 0:
		return target, errSerialization
	}
	d := newDecoder(in, out, body)
	defer d.release()
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		}
	}()
	return target, target.run(ctx, s.Service, d, &out.w)
}

// authenticate checks the signature of a request that came over the network.
func (s *Server) authenticate(in *Request) error {
	if s.Verifier == nil || in.InProcess {
		return nil
	}
	return s.Verifier.Verify(&sigv4.Request{
		Method: in.Method, Path: in.Path, Query: in.Query, Host: in.Host, Headers: in.Header, Body: in.Body,
	}, s.Now())
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func newDecoder(in *Request, out *Response, body []byte) *decoder {
	d := decoders.Get().(*decoder)
	d.Reset(body)
	d.request, d.response, d.body = in, out, body
	return d
}

// release gives the decoder back, without anything of the request.
func (d *decoder) release() {
	d.Reset(nil)
	d.request, d.response, d.body, d.arena, d.invalid = nil, nil, nil, nil, nil
	decoders.Put(d)
}

// Operations lists the names of all operations, sorted.
func Operations() []string {
	var names []string
	for name := range operations {
		names = append(names, name)
	}
	for name := range streamOperations {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
