package wire

import (
	"net/http"
	"slices"
	"strings"
)

// DynamoDB's part of Cross-Origin Resource Sharing. It is off unless origins are configured: a web
// page that the user of a local server happens to visit must not read the database.

// allowOrigin lets a page of a configured origin read the answer.
func (s *Server) allowOrigin(in *Request, out *Response) {
	if origin, allowed := s.allowed(in); allowed {
		out.set("Access-Control-Allow-Origin", origin)
		if origin != "*" {
			out.set("Vary", "Origin")
		}
	}
}

// preflight answers a browser's preflight request. It reports false, without an answer, if the
// origin is not configured.
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

// allowed reports whether the request's origin is a configured one, and returns the value of
// Access-Control-Allow-Origin for it: the origin, or "*" if all are configured. It never allows
// mayfly's own endpoints, such as the clock.
func (s *Server) allowed(in *Request) (origin string, allowed bool) {
	if len(s.CORS) == 0 || strings.HasPrefix(in.Path, "/_mayfly/") {
		return "", false
	}
	origin = in.Header.Get("Origin")
	switch {
	case origin == "":
		return "", false
	case slices.Contains(s.CORS, "*"):
		return "*", true
	default:
		return origin, slices.Contains(s.CORS, origin)
	}
}

// foreign reports whether a browser sends a request that can change something, on behalf of a page
// of another origin that is not configured. Browsers send some of those without a preflight, so
// hiding the answer from the page would be too late. A call of the tables' API has a header that
// forces a preflight; a POST to a path has none.
func (s *Server) foreign(in *Request) bool {
	if in.Method == http.MethodGet || in.InProcess {
		return false
	}
	if _, allowed := s.allowed(in); allowed {
		return false
	}
	switch in.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := in.Header.Get("Origin")
		_, host, _ := strings.Cut(origin, "://")
		return origin != "" && host != in.Host
	default:
		return true
	}
}
