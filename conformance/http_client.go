package conformance

import (
	"io"
	"net/http"
)

// HTTPClient is an HTTP client for the SDK's clients of an endpoint on this machine: it survives
// answers that come at once.
func HTTPClient() *http.Client {
	return &http.Client{Transport: patient{http.DefaultTransport.(*http.Transport).Clone()}}
}

// patient is a transport that survives very early answers.
//
// The SDK closes a request's body as soon as it has the answer's header, and a closed body of the
// SDK returns io.EOF from WriteTo instead of success. At that moment net/http may still check
// whether the body is longer than announced. It takes the error for a failed request and cuts the
// connection, with the rest of the answer. If the body has no WriteTo, net/http checks its end by
// Read, which may return io.EOF. Without this, a few of a hundred large answers from the same
// machine are lost.
type patient struct{ http.RoundTripper }

func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil && request.Body != http.NoBody {
		request = request.Clone(request.Context())
		request.Body = struct{ io.ReadCloser }{request.Body}
	}
	return p.RoundTripper.RoundTrip(request)
}
