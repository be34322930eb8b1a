package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// buffers holds request bodies.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newBuffer() *bytes.Buffer {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

func releaseBuffer(b *bytes.Buffer) {
	if b.Cap() <= keepMax {
		buffers.Put(b)
	}
}

// readBody appends the body of a request to b, as far as the server admits it, and makes it the
// request's. The caller releases the hold. Without an error, the request is ready for Do.
func (s *Server) readBody(ctx context.Context, b *bytes.Buffer, r *http.Request, in *Request) (*intake.Hold, error) {
	hold, err := intake.ReadBody(b, r, bodyMax, func(bytes int64) (*intake.Hold, error) { return s.admit(ctx, in, bytes) })
	if errors.Is(err, intake.ErrTooLarge) {
		in.Oversize, err = true, nil
	}
	in.Body = b.Bytes()
	return hold, err
}

// ServeHTTP answers a request from the network.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func(in *Request) {
		out := s.Do(r.Context(), in)
		defer out.Release()
		out.write(w)
	})
}

// time returns the real time, and the zero time if the server has no clock.
func (s *Server) time() (now time.Time) {
	if s.Now != nil {
		now = s.Now()
	}
	return now
}

// serve reads a request from the network and calls answer for it, or answers it itself if the body
// is not admitted or does not arrive.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, answer func(in *Request)) {
	body := newBuffer()
	defer releaseBuffer(body)
	in := newRequest(r)
	hold, err := s.readBody(r.Context(), body, r, in)
	defer hold.Release()
	var refused *dynamo.Error
	switch {
	case in.Oversize:
		intake.Refuse(w, r, s.time(), func() { answer(in) })
	case errors.As(err, &refused):
		intake.Refuse(w, r, s.time(), func() {
			out := s.turnAway(r.Context(), in, err)
			defer out.Release()
			out.write(w)
		})
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.WriteHeader(http.StatusRequestTimeout)
	case err != nil: // the client has disconnected or violates HTTP
		w.WriteHeader(http.StatusBadRequest)
	default:
		answer(in)
	}
}

// newRequest returns a request without its body.
func newRequest(r *http.Request) *Request {
	in := NewRequest(r.RemoteAddr, r.TLS != nil)
	in.Method, in.Path, in.Query, in.Host, in.Header = r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, r.Header
	return &in
}

func (r *Response) write(w http.ResponseWriter) {
	header := w.Header()
	header["Server"] = serverName
	for _, f := range r.Header {
		header[f.Name] = []string{f.Value}
	}
	if r.Unsized() {
		w.WriteHeader(r.Status)
		http.NewResponseController(w).Flush()
		return
	}
	header["Content-Length"] = []string{strconv.Itoa(len(r.Body))}
	w.WriteHeader(r.Status)
	w.Write(r.Body) // an error means that the client has disconnected, and changes nothing here
}

// Permitted returns a handler for endpoints that share the port, such as the clock. It passes requests
// to next if their key allows the action, such as "mayfly:MoveClock", and answers others as the API
// does. They are signed like the API's, for the service "dynamodb", or have the access key and its
// secret as user and password: scrapers of metrics cannot sign. The body that next reads is valid
// until next returns. Without keys, Permitted returns next.
func (s *Server) Permitted(action string, next http.Handler) http.Handler {
	if s.Keys == nil {
		return next
	}
	return s.before(action, next, func(r *http.Request, in *Request) error {
		from, err := s.identify(r, in)
		if err == nil {
			err = from.permitAction(action, "*")
		}
		return err
	})
}

// Noted writes each request for an action into the audit log and passes it to next, as Permitted does
// for servers with keys. Without an audit log, Noted returns next.
func (s *Server) Noted(action string, next http.Handler) http.Handler {
	if s.Audit == nil {
		return next
	}
	return s.before(action, next, func(*http.Request, *Request) error { return nil })
}

// before calls check with each request and writes the request into the audit log. It passes those
// without an error to next.
func (s *Server) before(action string, next http.Handler, check func(*http.Request, *Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, func(in *Request) {
			if in.Oversize {
				s.audit(in, &Response{Status: http.StatusRequestEntityTooLarge}, action, "")
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			if err := check(r, in); err != nil {
				out := s.refusal(r.Context(), in, err)
				defer out.Release()
				s.audit(in, out, action, codeOf(err))
				out.write(w)
				return
			}
			s.audit(in, &Response{}, action, "")
			r.Body = io.NopCloser(bytes.NewReader(in.Body))
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, in.caller)))
		})
	})
}

// callerKey is the context key of the caller whose request a handler gets from Permitted.
type callerKey struct{}

// MayScan reports whether the key of a request that Permitted passed on allows a Scan of a table's
// items. Handlers beside the API ask it before they show keys of items.
func (s *Server) MayScan(ctx context.Context, table string) bool {
	from, _ := ctx.Value(callerKey{}).(*caller)
	if from == nil || !from.limited() {
		return true
	}
	asks := *from // the audit log has the request's own action already
	return asks.permit("Scan", &service.ScanInput{TableName: service.Some(table)}) == nil
}

// errPlainPassword refuses a password that others on the network could read.
var errPlainPassword = &dynamo.Error{Code: dynamo.CodeAccessDenied, Message: "A password is accepted over TLS or from this machine only. Sign the request, or serve TLS."}

// identify is authenticate for endpoints that also take a password.
func (s *Server) identify(r *http.Request, in *Request) (*caller, error) {
	accessKey, secret, ok := r.BasicAuth()
	switch {
	case !ok:
		return s.authenticate(in, serviceDynamoDB)
	case !in.Secure && !in.Local:
		s.refuseCaller(in, errPlainPassword)
		return nil, errPlainPassword
	}
	key, err := s.Keys.Password(accessKey, secret, s.Now())
	if err != nil {
		s.refuseCaller(in, err)
		return nil, err
	}
	return s.newCaller(key, in), nil
}
