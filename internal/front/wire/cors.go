package wire

import (
	"net/http"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The requests of web pages. Package browser decides which are answered. Cross-Origin Resource
// Sharing, DynamoDB's part of it, is off unless origins or keys are configured.

// openToPages reports whether pages of all origins may call the APIs: only keys decide then. The
// owner of a server with keys can still list origins.
func (s *Server) openToPages() bool { return s.Keys != nil && len(s.Pages.Origins) == 0 }

// allowOrigin lets a page of an allowed origin read the answer.
func (s *Server) allowOrigin(in *Request, out *Response) {
	if origin, allowed := s.allowed(in); allowed {
		out.set("Access-Control-Allow-Origin", origin)
		if origin != "*" {
			out.set("Vary", "Origin")
		}
	}
}

// preflight answers a browser's preflight request. It reports false, without an answer, if the
// origin is not allowed.
func (s *Server) preflight(in *Request, out *Response) bool {
	if _, allowed := s.allowed(in); !allowed {
		return false
	}
	if headers := in.Header.Get("Access-Control-Request-Headers"); headers != "" {
		out.set("Access-Control-Allow-Headers", headers)
	}
	if methods := in.Header.Get("Access-Control-Request-Method"); methods != "" {
		out.set("Access-Control-Allow-Methods", methods)
	}
	out.set("Access-Control-Max-Age", "172800")
	return true
}

// allowed reports whether pages of the request's origin may call the APIs, and returns the value of
// Access-Control-Allow-Origin for it: the origin, or "*" if all may.
func (s *Server) allowed(in *Request) (origin string, allowed bool) {
	switch {
	case s.openToPages():
		return "*", in.Header.Get("Origin") != ""
	case len(s.Pages.Origins) == 0:
		return "", false
	}
	origin = in.Header.Get("Origin")
	allowed = s.Pages.Allows(origin)
	if slices.Contains(s.Pages.Origins, "*") {
		origin = "*"
	}
	return origin, allowed
}

// checkPage returns an error if a browser sent the request for a web page that may not use the
// server.
func (s *Server) checkPage(in *Request) error {
	if in.InProcess || s.openToPages() {
		return nil
	}
	return s.Pages.Check(in.Method, in.Host, in.Header)
}

// refusePage answers a request that checkPage refused, with AccessDeniedException in the form of the
// API that it is for. It returns the operation's name and the error's code.
func (s *Server) refusePage(in *Request, out *Response, refused error) (operation, code string) {
	id := newRequestID()
	out.set("X-Amzn-Requestid", id)
	m := s.mounted.find(in)
	switch {
	case m.api != nil:
		if m.op != nil {
			operation = m.op.name
		}
		out.set("Content-Type", m.api.contentType)
		m.api.fail(out, &failure{http.StatusForbidden, string(dynamo.CodeAccessDenied), refused.Error()}, id)
	case in.Method == http.MethodPost:
		target, _ := lookUp(in.Header.Get("X-Amz-Target"))
		operation = target.name
		contentType, _ := answerType(in.Header.Get("Content-Type"))
		out.set("Content-Type", contentType)
		out.writeError(&dynamo.Error{Code: dynamo.CodeAccessDenied, Message: refused.Error()})
	default:
		out.Status = http.StatusForbidden
		out.set("Content-Type", "text/plain; charset=utf-8")
		out.w.buf = append(out.w.buf, refused.Error()+"\n"...)
	}
	out.Body = out.w.buf
	out.seal(in)
	return operation, string(dynamo.CodeAccessDenied)
}
