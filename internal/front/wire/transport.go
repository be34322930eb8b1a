package wire

import (
	"io"
	"net/http"
	"strconv"
)

// Transport is an http.RoundTripper that hands requests to a Server in the same process: no socket, no signature, no
// checksum. An AWS SDK client that uses it needs credentials only because the SDK asks for some.
type Transport struct{ Server *Server }

// RoundTrip answers the request. The only errors are that of the request's body, and that of its context where that has ended
// the call.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body := newBuffer()
	defer releaseBuffer(body)
	oversize, err := readBody(body, r)
	if r.Body != nil {
		r.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	in := newRequest(r, body.Bytes(), oversize)
	in.InProcess = true
	out := t.Server.Do(r.Context(), in)
	if err := r.Context().Err(); err != nil && out.Status == http.StatusInternalServerError {
		out.Release() // the call was given up half-way
		return nil, err
	}
	answer := out.http(r)
	if t.Server.Date != nil {
		answer.Header["Date"] = t.Server.date.at(t.Server.Date())
	}
	return answer, nil
}

// http gives the response in net/http's form. It is released when its body is closed.
func (r *Response) http(to *http.Request) *http.Response {
	header := make(http.Header, len(r.Header)+1)
	values := make([]string, len(r.Header))
	for i, f := range r.Header {
		values[i] = f.Value
		header[f.Name] = values[i : i+1 : i+1]
	}
	return &http.Response{
		Status:     strconv.Itoa(r.Status) + " " + http.StatusText(r.Status),
		StatusCode: r.Status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          &responseBody{response: r, rest: r.Body},
		ContentLength: int64(len(r.Body)),
		Request:       to,
	}
}

// responseBody reads a response's body, and gives the response back when it is closed.
type responseBody struct {
	response *Response
	rest     []byte
}

func (b *responseBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *responseBody) Close() error {
	if b.response != nil {
		b.response.Release()
		b.response, b.rest = nil, nil
	}
	return nil
}
