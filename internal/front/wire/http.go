package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
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

// readMin is the most space in bytes that a body gets before its first byte arrives, even if a
// longer one was announced.
const readMin = 64 << 10

// readBody reads the body into b, and reports whether it is larger than bodyMax. It reads at most
// one byte more than that, and nothing if the announced length is larger.
func readBody(b *bytes.Buffer, r *http.Request) (oversize bool, err error) {
	if r.Body == nil {
		return false, nil
	}
	if r.ContentLength > bodyMax {
		return true, nil
	}
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, readMin)) + bytes.MinRead)
	}
	_, err = b.ReadFrom(io.LimitReader(r.Body, bodyMax+1))
	return b.Len() > bodyMax, err
}

// ServeHTTP answers a request from the network.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := newBuffer()
	defer releaseBuffer(body)
	oversize, err := readBody(body, r)
	if err != nil {
		// The client has disconnected or violates HTTP.
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	out := s.Do(r.Context(), newRequest(r, body.Bytes(), oversize))
	defer out.Release()
	out.write(w)
}

func newRequest(r *http.Request, body []byte, oversize bool) *Request {
	return &Request{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Header: r.Header,
		Body: body, Oversize: oversize, Local: IsLocal(r.RemoteAddr),
	}
}

func (r *Response) write(w http.ResponseWriter) {
	header := w.Header()
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

// Signed returns a handler for endpoints that share the port, such as the clock. It passes requests
// to next if they are signed like the API's, for the service "dynamodb", and answers others as the
// API does. The body that next reads is valid until next returns. Without a Verifier, Signed
// returns next.
func (s *Server) Signed(next http.Handler) http.Handler {
	if s.Verifier == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := newBuffer()
		defer releaseBuffer(body)
		oversize, err := readBody(body, r)
		if err != nil || oversize {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		in := newRequest(r, body.Bytes(), false)
		if err := s.authenticate(in, serviceDynamoDB); err != nil {
			s.refuse(w, in, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(in.Body))
		next.ServeHTTP(w, r)
	})
}

// refuse answers a request with an error before it reaches an operation.
func (s *Server) refuse(w http.ResponseWriter, in *Request, err error) {
	out := newResponse()
	defer out.Release()
	id := newRequestID()
	out.set("X-Amzn-Requestid", id)
	contentType, _ := answerType(in.Header.Get("Content-Type"))
	out.set("Content-Type", contentType)
	out.writeError(s.apiError(context.Background(), err, "", id))
	out.checksum()
	out.write(w)
}
