package conformance

import (
	"io"
	"net/http"
)

// HTTPClient is an HTTP client for the SDK's clients of an endpoint on this machine: it survives answers that come at once.
func HTTPClient() *http.Client {
	return &http.Client{Transport: patient{http.DefaultTransport.(*http.Transport).Clone()}}
}

// patient is a transport that survives answers that come at once.
//
// The SDK closes a request's body as soon as the answer's header is there, and a closed body of the SDK's gives io.EOF from WriteTo, where
// success is expected. net/http may at that moment still be about to see whether the body has more than it said; it takes the
// error for a failed request and cuts the connection, with the rest of the answer on it. Hidden from WriteTo, it reads the body's
// end by Read, which is allowed to say io.EOF. Without this, a few of a hundred large answers from the same machine are lost.
type patient struct{ http.RoundTripper }

func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil && request.Body != http.NoBody {
		request = request.Clone(request.Context())
		request.Body = struct{ io.ReadCloser }{request.Body}
	}
	return p.RoundTripper.RoundTrip(request)
}
