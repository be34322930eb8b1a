package wire

import (
	"bytes"
	"net/http"
	"strconv"
)

// Transport is an http.RoundTripper that passes requests to a Server in the same process: no
// socket, no signature, no checksum. An AWS SDK client that uses it needs credentials only because
// the SDK insists on some.
type Transport struct {
	Server *Server
	Own    bool // see Request.Own
}

// RoundTrip answers the request. It returns only errors of the request's body, and of its context
// if that ended the call. The caller must close the answer's body, which releases its memory.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body := newBuffer()
	defer releaseBuffer(body)
	in := newRequest(r)
	in.InProcess, in.Own = true, t.Own
	_, err := t.Server.readBody(r.Context(), body, r, in)
	if r.Body != nil {
		r.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	out := t.Server.Do(r.Context(), in)
	if err := r.Context().Err(); err != nil && out.Status == http.StatusInternalServerError {
		out.Release() // the call was cancelled while it ran
		return nil, err
	}
	answer := out.http(r)
	answer.Header["Server"] = serverName
	if t.Server.Date != nil {
		answer.Header["Date"] = t.Server.date.at(t.Server.Date())
	}
	return answer, nil
}

// http returns the response in net/http's form. Closing its body releases it.
func (r *Response) http(to *http.Request) *http.Response {
	header := make(http.Header, len(r.Header)+2)
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
		Body:          &responseBody{*bytes.NewReader(r.Body), r},
		ContentLength: int64(len(r.Body)),
		Request:       to,
	}
}

// responseBody reads a response's body and releases the response when it is closed.
type responseBody struct {
	bytes.Reader
	response *Response
}

func (b *responseBody) Close() error {
	if b.response != nil {
		b.Reset(nil)
		b.response.Release()
		b.response = nil
	}
	return nil
}
