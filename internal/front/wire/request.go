package wire

import (
	"net/http"
	"sync"
)

// Request is an HTTP request as the core sees it, whichever loop has read it.
type Request struct {
	Method string
	Path   string // escaped, as in the request line, without the query
	Query  string // what follows the question mark
	Host   string
	Header Header
	Body   []byte // as it was sent, before any decompression. It may be reused when Do has returned

	// Oversize says that the body is larger than 16 MB, and was not read to its end. Body then does not count.
	Oversize bool

	// InProcess says that the request comes from this process and has crossed no network: it needs no signature, and the
	// answer no checksum and no compression.
	InProcess bool
}

// Header gives request headers by name, in any case. http.Header is one.
type Header interface {
	Get(name string) string // the first value; empty when absent
	Values(name string) []string
}

// Response is the answer to a Request. It comes from a pool: whoever has written it out calls Release.
type Response struct {
	Status int
	Header []Field // all but Date, Content-Length and Connection, which belong to the loop
	Body   []byte  // until Release

	w writer // what Body is a view of, or was before compression
}

// Field is one response header.
type Field struct{ Name, Value string }

// Unsized reports that the answer is sent without a length: in chunks, of which there are none. DynamoDB sends a 413 like that.
func (r *Response) Unsized() bool {
	return r.Status == http.StatusRequestEntityTooLarge && len(r.Body) == 0
}

func (r *Response) set(name, value string) {
	r.Header = append(r.Header, Field{name, value})
}

var responses = sync.Pool{New: func() any { return new(Response) }}

// keepMax is the largest buffer that goes back to a pool, so that one large answer does not stay in memory.
const keepMax = 1 << 20

func newResponse() *Response {
	r := responses.Get().(*Response)
	r.Status = 0
	r.Header = r.Header[:0]
	r.Body = nil
	r.w.buf = r.w.buf[:0]
	return r
}

// Release gives the response and its body back. Neither may be used afterwards.
func (r *Response) Release() {
	if cap(r.w.buf) <= keepMax {
		responses.Put(r)
	}
}
