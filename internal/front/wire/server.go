package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/front/audit"
	"github.com/mayflydb/mayfly/internal/front/browser"
	"github.com/mayflydb/mayfly/internal/front/fault"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// bodyMax is the size of the largest request body, compressed or not.
const bodyMax = 16 << 20

// Options configure a Server. Service is required, and Now if Keys or Observe is set.
type Options struct {
	Service *service.Service

	// Routes and Actions are the operations of further APIs to mount on the same port.
	Routes  []Route
	Actions []Action

	// MountedOnly serves only the mounted operations: DynamoDB's are unknown then, and Service is
	// not needed.
	MountedOnly bool

	// Now returns the real time, not the database's. Calls are timed by it.
	Now func() time.Time

	// Date returns the time of the database's clock, for the Date header of answers. A client signs
	// by its own clock or, if the two differ much, by that header, as the SDKs do. So a signature
	// is valid within 15 minutes of either clock. Default: Now.
	Date func() time.Time

	// Keys are the keys that requests from the network must be signed with. nil: no checks.
	Keys *keys.Ring

	// BodyBudget is the memory in bytes for request bodies that are being read or processed, at
	// least intake.LeastBudget. Larger bodies than 64 KB wait for room, 5 seconds at most. Default
	// 128 MB.
	BodyBudget int64

	// Account is the account number in the ARNs of users. Default "000000000000".
	Account string

	// AuthForm refuses requests from the network that lack a part of a signature, without Keys to
	// check it. With Keys it has no effect: they check the form too.
	AuthForm bool

	// LikeLocal answers GET / as DynamoDB Local does: 400, with a missing authentication token. Health
	// checks written for it wait for that status.
	LikeLocal bool

	// Misplaced returns the reason why this server does not answer a request from the network, or
	// nil. Default: it answers all.
	Misplaced func(in *Request) error

	// Pages are the rules for web pages, other than the server's own, that call it. With Keys and
	// without Pages.Origins, all pages may call the APIs, as at Amazon: they need a key.
	Pages browser.Rules

	// Faults make operations fail or wait. nil: none do.
	Faults *fault.Faults

	// Audit logs the requests from the network, with the decision about each. nil: no log.
	Audit *audit.Log

	// Observe is called for every request when its answer is ready. operation is empty if the
	// request names none; a mounted one has its service, "scheduler:GetSchedule". code is the
	// error's, and empty on success.
	Observe func(operation string, status int, code string, took time.Duration)

	// Logger receives the faults. Default slog.Default().
	Logger *slog.Logger
}

// Server answers requests. It is an http.Handler, and safe for concurrent use.
type Server struct {
	Options
	mounted *mountTable
	date    date
	unknown unknownOperations

	policies resourcePolicies

	bodies  *intake.Budget // of requests
	answers *intake.Outbox
}

// New returns a server. It starts nothing. It panics after a mistake in the program: Routes or
// Actions that overlap, or one that is malformed; see newMountTable.
func New(o Options) *Server {
	o.Account = cmp.Or(o.Account, "000000000000")
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Date == nil {
		o.Date = o.Now
	}
	o.BodyBudget = cmp.Or(o.BodyBudget, intake.DefaultBudget)
	return &Server{
		Options: o, mounted: newMountTable(o.Routes, o.Actions),
		bodies: intake.NewBudget(o.BodyBudget), answers: intake.NewOutbox(intake.DefaultBudget),
	}
}

// Do returns the answer to a request, and the caller releases it. Every failure is an answer, even
// a panic of the operation.
func (s *Server) Do(ctx context.Context, in *Request) *Response {
	out := newResponse()
	in.user, in.caller, in.unreadable, in.measured = "", nil, nil, service.Measured{}
	if s.Observe == nil {
		operation, code := s.routeRequest(ctx, in, out)
		out, code = s.admitAnswer(ctx, in, out, operation, code)
		s.audit(in, out, operation, code)
		return out
	}
	start := s.Now()
	operation, code := s.routeRequest(ctx, in, out)
	out, code = s.admitAnswer(ctx, in, out, operation, code)
	s.audit(in, out, operation, code)
	took := s.Now().Sub(start)
	if code == "" {
		in.measured.Took(took)
	}
	s.Observe(operation, out.Status, code, took)
	return out
}

// routeRequest fills in the response of a request to an operation, to a Route or an Action, or to
// none. It returns the operation's name and the error's code; each is empty if there is none.
func (s *Server) routeRequest(ctx context.Context, in *Request, out *Response) (operation, code string) {
	if err := s.checkPage(in); err != nil {
		s.refuseCaller(in, err)
		return s.refusePage(in, out, err)
	}
	if s.Misplaced != nil && !in.InProcess {
		if err := s.Misplaced(in); err != nil {
			s.refuseCaller(in, err)
			s.refuse(ctx, in, out, err)
			return "", errorCode(err)
		}
	}
	body, hold, err := s.decompress(ctx, in)
	defer hold.Release()
	switch refused, ok := errors.AsType[*dynamo.Error](err); {
	case in.Oversize || len(in.Body) > bodyMax || errors.Is(err, intake.ErrTooLarge):
		out.Status = http.StatusRequestEntityTooLarge
		s.allowOrigin(in, out)
		return "", ""
	case ok:
		s.refuseCaller(in, err)
		s.refuse(ctx, in, out, refused)
		return "", string(refused.Code)
	case err != nil: // the server stops
		s.refuseCaller(in, err)
		s.refuse(ctx, in, out, err)
		return "", string(errFault.Code)
	}
	id := newRequestID()
	out.set("X-Amzn-Requestid", id)
	s.allowOrigin(in, out)
	if m := s.mounted.find(in); m.api != nil {
		return s.answerMounted(ctx, &m, in, out, body, id)
	}
	if !s.answerPlain(in, out) {
		target, failed := s.answerOperation(ctx, in, out, body, id)
		operation, code = target.name, string(failed)
	}
	if !in.InProcess {
		out.seal(in)
	}
	return operation, code
}

// localRoot is the body of DynamoDB Local's answer to GET /.
const localRoot = `{"__type":"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken","message":"Request must contain either a valid (registered) AWS access key ID or X.509 certificate."}`

// Refusal returns an error of the API, for Options.Misplaced.
func Refusal(code, message string) error {
	return &dynamo.Error{Code: dynamo.Code(code), Message: message}
}

// errorCode returns the code of an error in the API's form, or InternalServerError's for any other.
func errorCode(err error) string {
	if answer, ok := errors.AsType[*dynamo.Error](err); ok {
		return string(answer.Code)
	}
	return string(errFault.Code)
}

// answerPlain answers a request that calls no operation: a health check, a preflight or a mistake.
// It reports whether the request was one. If not, it only sets the answer's Content-Type.
func (s *Server) answerPlain(in *Request, out *Response) bool {
	contentType, known := answerType(in.Header.Get("Content-Type"))
	switch {
	case in.Method == http.MethodPost && (known || len(in.Body) == 0):
		out.set("Content-Type", contentType)
		return false
	case in.Method == http.MethodOptions && s.preflight(in, out):
		out.Status = http.StatusOK
	case foreignService(in) != "":
		out.Status = http.StatusNotFound
		writeForeign(in, out, foreignService(in))
	case in.Method == http.MethodGet && in.Path == "/" && s.LikeLocal:
		out.Status = http.StatusBadRequest
		out.set("Content-Type", typeAmzJSON)
		out.w.buf = append(out.w.buf, localRoot...)
	case in.Method == http.MethodGet && in.Path == "/":
		out.Status = http.StatusOK
		out.set("Content-Type", "text/plain")
		out.w.buf = append(out.w.buf, "healthy: "+in.Host+" "...)
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

// answerType returns the content type of the answer to a request with this content type, and
// reports whether the server supports the request's. If not, the answer is typeJSON.
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

// answerOperation writes the result of the operation that the request names, or its error.
func (s *Server) answerOperation(ctx context.Context, in *Request, out *Response, body []byte, id string) (target, dynamo.Code) {
	target, err := s.checkAndRun(ctx, in, out, body)
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
	r.Status = cmp.Or(errorForms[e.Code].status, http.StatusBadRequest)
	r.w.buf = r.w.buf[:0]
	object(&r.w, e, encodeError)
	r.Body = r.w.buf
}

// apiError returns the error to answer with. An error that the API does not define is a fault: the
// log gets its details, and the client only InternalServerError.
func (s *Server) apiError(ctx context.Context, err error, operation, id string) *dynamo.Error {
	if answer, ok := errors.AsType[*dynamo.Error](err); ok {
		return answer
	}
	s.logFault(ctx, err, operation, id)
	return errFault
}

// logFault logs an error whose details the client does not see. It skips the error of a context
// that has ended, because the client has disconnected or the server stops. It also skips an
// error that reports itself as a repetition of one logged a moment ago.
func (s *Server) logFault(ctx context.Context, err error, operation, id string) {
	var again interface{ Repeated() bool }
	if errors.As(err, &again) && again.Repeated() {
		return
	}
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		s.Logger.Error("request failed", "operation", operation, "request_id", id, "error", err)
	}
}

// checkAndRun checks the request in AWS's order and then runs the operation, which writes the
// answer's body to out.w. The target is zero if the request names no operation.
func (s *Server) checkAndRun(ctx context.Context, in *Request, out *Response, body []byte) (target target, err error) {
	target, known := lookUp(in.Header.Get("X-Amz-Target"))
	var from *caller
	if !known || s.MountedOnly {
		err = s.unknownOperation(in.Header.Get("X-Amz-Target"))
		if service := foreignService(in); service != "" {
			err = &dynamo.Error{Code: dynamo.CodeUnknownOperation, Message: foreignText(service)}
		}
	} else {
		from, err = s.authenticate(in, serviceDynamoDB)
	}
	switch {
	case err != nil && len(body) > 0 && !dynamo.ValidJSON(body):
		// Malformed JSON precedes both errors. Checking here means that only refused requests are
		// read twice.
		return target, errSerialization
	case err != nil:
		return target, err
	case in.unreadable != nil:
		return target, in.unreadable
	case len(body) == 0:
		return target, errSerialization
	}
	d := newDecoder(in, out, body)
	d.caller, d.name, d.faults = from, target.name, s.Faults
	return target, s.run(ctx, target, d, out)
}

// run runs an operation and releases the decoder. It returns a panic of the operation as an error.
func (s *Server) run(ctx context.Context, target target, d *decoder, out *Response) (err error) {
	defer d.release()
	defer d.measurePanic(s.Service)
	defer recovered(&err)
	return target.operation(ctx, s.Service, d, &out.w)
}

// recovered turns a panic of the deferring function into its error, a fault.
func recovered(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
	}
}

// serviceDynamoDB is the service in signatures for the tables' API and the streams' API.
const serviceDynamoDB = "dynamodb"

// authenticate checks that a request from the network is signed, and for this service, and returns
// its sender. It checks nothing in a request of this process. Without Keys it checks at most the form.
func (s *Server) authenticate(in *Request, service string) (*caller, error) {
	if in.InProcess {
		return nil, nil
	}
	if s.Keys == nil {
		if s.AuthForm {
			if err := sigv4.CheckForm(signed(in, service)); err != nil {
				s.refuseCaller(in, err)
				return nil, err
			}
		}
		return s.newCaller(nil, in), nil
	}
	key, err := s.Keys.Verify(signed(in, service), s.Now(), s.Date())
	if err != nil {
		s.refuseCaller(in, err)
		return nil, err
	}
	if !key.Root() || key.User != key.AccessKey {
		in.user = key.User
	}
	return s.newCaller(key, in), nil
}

// signed returns the parts of a request that its signature covers.
func signed(in *Request, service string) *sigv4.Request {
	return &sigv4.Request{
		Service: service, Method: in.Method, Path: in.Path, Query: in.Query, Host: in.Host, Headers: in.Header, Body: in.Body,
	}
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func newDecoder(in *Request, out *Response, body []byte) *decoder {
	d := decoders.Get().(*decoder)
	d.Reset(body)
	d.request, d.response, d.body = in, out, body
	return d
}

// release returns the decoder to the pool, without references to the request.
func (d *decoder) release() {
	d.Reset(nil)
	d.request, d.response, d.caller, d.body, d.running, d.arena, d.invalid = nil, nil, nil, nil, nil, nil, nil
	decoders.Put(d)
}
