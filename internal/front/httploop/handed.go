package httploop

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

// handedListener is a listener whose connections come from the loop; net/http accepts them.
type handedListener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHandedListener(addr net.Addr) *handedListener {
	return &handedListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// pass hands a connection to Accept, and waits until Accept takes it. It closes the connection if
// the listener is closed.
func (l *handedListener) pass(c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		c.Close()
	}
}

// Accept returns the next connection.
func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *handedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address of the loop's listener.
func (l *handedListener) Addr() net.Addr { return l.addr }

// handedMost is the most connections of net/http. Each may take 50 KB with a request's headers; an idle
// one of the loop takes 8.
const handedMost = 2048

// hand passes a connection to net/http. If net/http has as many as it may, a silent one of them is
// closed for it; without one, it waits as long as a client may take for a request's headers.
func (s *server) hand(p *peer, as net.Conn) {
	if s.Connections.tryHand(p) || s.waitToHand(p) {
		s.handed.pass(as)
		return
	}
	p.cut()
}

// waitToHand waits until tryHand succeeds. One connection after another looks for a place, so that a
// thousand do not search at once.
func (s *server) waitToHand(p *peer) bool {
	ctx, cancel := context.WithTimeout(s.requests, headerLimit)
	defer cancel()
	c := s.Connections
	select {
	case c.handing <- struct{}{}:
		defer func() { <-c.handing }()
	case <-ctx.Done():
	}
	for ctx.Err() == nil && p.state.Load() != closed && !s.stopping.Load() {
		if c.tryHand(p) {
			return true
		}
		if c.closeSilent(s.Now(), func(p *peer) bool { return p.handed.Load() }) == 0 {
			clock.Pause(searchPause, ctx.Done())
		}
	}
	return false
}

// tryHand counts a connection as one of net/http, unless those are too many.
func (c *Connections) tryHand(p *peer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, placed := c.mu.peers[p]; !placed || c.mu.handed >= c.handedMost {
		return false
	}
	c.mu.handed++
	p.handed.Store(true)
	return true
}

// handedConn is a connection with bytes that were read and are unread again.
type handedConn struct {
	*peer
	reader io.Reader // the unread bytes, then the connection
}

func newHandedConn(p *peer, unread []byte) net.Conn {
	c := &handedConn{p, io.MultiReader(bytes.NewReader(unread), p.Conn)}
	if p.secure != nil {
		return &secureConn{c}
	}
	return c
}

func (c *handedConn) place() *peer { return c.peer }

// secureConn is a handedConn over TLS. net/http sets Request.TLS if a connection has its method.
type secureConn struct{ *handedConn }

// ConnectionState returns the facts about the connection's TLS.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// handedState follows the state of a connection that net/http serves.
func (s *server) handedState(nc net.Conn, state http.ConnState) {
	p := s.Connections.find(nc)
	if p == nil {
		return
	}
	switch state {
	case http.StateActive:
		if p.state.CompareAndSwap(waiting, receiving) {
			p.since.Store(s.Now().UnixNano())
		}
	case http.StateIdle:
		p.state.Store(waiting)
	case http.StateClosed, http.StateHijacked:
		p.leave()
	}
}

type peerKey struct{}

// connContext lets a request find its connection.
func (s *server) connContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, s.Connections.find(nc))
}

// paced returns next with a limit on the time that a client takes to read the next part of an
// answer. The time that the handler takes does not count. paced keeps account of the state of the
// connection.
func (s *server) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &pacedWriter{ResponseWriter: w, server: s, control: http.NewResponseController(w)}
		defer out.extend()                                 // for the part that net/http sends when the handler has returned
		if r.Header.Get("Accept") == "text/event-stream" { // ends with the page: a stop would wait for it
			ctx, stop := wire.Releasing(r.Context())
			defer stop()
			r = r.WithContext(ctx)
		}
		if len(r.TransferEncoding) > 0 {
			// There may be a Content-Length too, which net/http drops. A proxy that goes by it finds the next
			// request elsewhere, so none may follow: RFC 9112, section 6.1.
			w.Header().Set("Connection", "close")
		}
		p, _ := r.Context().Value(peerKey{}).(*peer)
		if p == nil { // net/http serves the connection without the loop
			next.ServeHTTP(out, r)
			return
		}
		p.begin()
		if r.ProtoMajor == 2 {
			head := headBytes(r.Header)
			defer p.of.heads.Add(-head)
			if p.of.heads.Add(head) > p.of.headsMost {
				writeUnavailable(out)
				return
			}
		}
		if r.ProtoMajor == 1 { // HTTP/2 has several requests at once, and a stream ends at its deadline
			out.extend() // for "100 Continue"
			if r.Body != http.NoBody {
				r = r.WithContext(r.Context()) // a copy: net/http wants its own body back
				r.Body = &peerBody{r.Body, p}
			}
		}
		next.ServeHTTP(out, r)
		p.answered(s.Now(), !out.failed)
	})
}

// headsMost is the most memory of the heads of all requests over HTTP/2 that run or wait. A client
// may begin 100 requests on each connection, with 16 KB of headers each, and end none.
const headsMost = 64 << 20

// headBytes estimates the memory of a request over HTTP/2, without its body.
func headBytes(h http.Header) int64 {
	const request, field = 8 << 10, 64
	size := request
	for name, values := range h {
		for _, value := range values {
			size += field + len(name) + len(value)
		}
	}
	return int64(size)
}

// writeUnavailable answers a request for which there is no room, in a form that SDKs can read. They
// try again.
func writeUnavailable(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusServiceUnavailable)
	io.WriteString(w, `{"__type":"com.amazon.coral.service#ServiceUnavailable","message":"The server has no memory for more requests at present. Try again."}`+"\n")
}

// begin marks the connection as busy, unless it is closed already.
func (p *peer) begin() {
	if !p.state.CompareAndSwap(receiving, busy) {
		p.state.CompareAndSwap(waiting, busy)
	}
}

// peerBody is a request's body whose reader waits for the client.
type peerBody struct {
	io.ReadCloser
	peer *peer
}

func (b *peerBody) Read(p []byte) (int, error) {
	b.peer.state.CompareAndSwap(busy, receiving)
	defer b.peer.begin()
	return b.ReadCloser.Read(p)
}

// pacedWriter is a ResponseWriter whose deadline moves while the client reads.
type pacedWriter struct {
	http.ResponseWriter
	server  *server
	control *http.ResponseController
	failed  bool // the status is an error's
}

func (p *pacedWriter) extend() {
	_ = p.control.SetWriteDeadline(p.server.Now().Add(sendLimit)) // if it fails, the next write fails too
}

// WriteHeader begins the answer.
func (p *pacedWriter) WriteHeader(status int) {
	p.failed = status >= http.StatusBadRequest
	p.extend()
	p.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the answer.
func (p *pacedWriter) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, sendStep) {
		p.extend()
		m, err := p.ResponseWriter.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Unwrap lets http.ResponseController find the methods of the inner writer.
func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Read returns the unread bytes, and then further ones.
func (c *handedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// CloseWrite lets a client read its answer before the connection closes; net/http looks for this
// method.
func (c *handedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
