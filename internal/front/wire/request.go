package wire

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// Request is an HTTP request in the form that both loops pass to the core.
type Request struct {
	Method string
	Path   string // escaped, as in the request line, without the query
	Query  string // the part after the question mark
	Host   string
	Header Header
	// as it was sent, before any decompression. It may be reused after Do has returned
	Body []byte

	// Oversize reports that the body is larger than 16 MB and was not read to its end. Body is
	// ignored then.
	Oversize bool

	// InProcess reports that the request comes from this process, not from a network. It needs no
	// signature, and the answer no checksum and no compression.
	InProcess bool
	// Own reports that the request is part of the server's own work, such as the reading of streams
	// for triggers. Rules of faults strike it only if it uses mayfly's own tables.
	Own bool
	// Local reports that the client is on this machine. The answer is not compressed, since that
	// takes longer than to send it over the loopback interface.
	Local bool
	// Secure reports that the request came over TLS.
	Secure bool
	// From is the client's address, if it is known.
	From netip.Addr

	measured service.Measured // for the latency; zero: nothing

	user       string        // the name of the user that has signed; empty: root, or nobody
	caller     *caller       // since its authentication; nil: nothing is to be decided or logged
	unreadable *dynamo.Error // the reason why Body cannot be decompressed; nil: it can, or it is not compressed
}

// NewRequest returns a request of a client with the remote address of its connection. The caller
// adds the rest.
func NewRequest(remote string, secure bool) Request {
	from := remoteAddr(remote)
	return Request{Local: from.IsLoopback(), Secure: secure, From: from}
}

// IsLocal reports whether the remote address of a connection is on this machine.
func IsLocal(remote string) bool { return remoteAddr(remote).IsLoopback() }

// remoteAddr returns the IP address in the remote address of a connection, or none.
func remoteAddr(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// Header returns request headers by name, in any case. http.Header is one. If signatures are
// checked, any other must be a sigv4.NamedHeaders too.
type Header interface {
	Get(name string) string // the first value; empty if absent
	Values(name string) []string
}

// Response is the answer to a Request. It comes from a pool; call Release after writing it out.
type Response struct {
	Status int
	Header []Field // all but Server, Date, Content-Length and Connection, which the loop adds
	Body   []byte  // valid until Release

	w    writer       // holds Body, or its uncompressed form
	hold *intake.Hold // room for Body, if it is large
}

// Field is one response header.
type Field struct{ Name, Value string }

// Unsized reports whether the answer is sent without a length: in chunks, with no chunk. DynamoDB
// sends a 413 this way.
func (r *Response) Unsized() bool {
	return r.Status == http.StatusRequestEntityTooLarge && len(r.Body) == 0
}

func (r *Response) set(name, value string) { r.Header = append(r.Header, Field{name, value}) }

var responses = sync.Pool{New: func() any { return new(Response) }}

// keepMax is the largest buffer that returns to a pool, so that one large answer does not stay in
// memory.
const keepMax = 1 << 20

func newResponse() *Response {
	r := responses.Get().(*Response)
	r.Status = 0
	r.Header = r.Header[:0]
	r.Body = nil
	r.w.buf = r.w.buf[:0]
	r.hold = nil
	return r
}

// Release returns the response and its body to the pool. Neither may be used afterwards.
func (r *Response) Release() {
	r.hold.Release()
	if cap(r.w.buf) <= keepMax {
		responses.Put(r)
	}
}
