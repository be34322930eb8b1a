package httploop

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

const (
	roomMin  = 4 << 10  // bytes of a connection's first buffer
	roomKept = 64 << 10 // a larger buffer is replaced after the request that needed it
)

// The states of a connection.
const (
	waiting int32 = iota // for the first byte of a request: the server may close it at any moment
	busy                 // with a request
	closed               // while waiting, because the server stops
)

// conn is a connection that the loop serves. Only its own goroutine uses it, except that the server
// reads and sets state, and closes the connection when it stops.
type conn struct {
	net.Conn
	server *server
	state  atomic.Int32

	in         []byte // in[start:end] has been read and is not used yet
	start, end int
	skipped    int // bytes between the previous request and this one
	head       head
	request    wire.Request
	out        []byte // the answer's head, and its body unless that is large
	date       date

	first bool      // no request has been answered yet
	since time.Time // when the connection was accepted, or answered last
	begun time.Time // when a request was found incomplete; zero: none was
	armed time.Time // the deadline that is set; zero: none
}

func newConn(s *server, nc net.Conn) *conn {
	return &conn{Conn: nc, server: s, first: true, since: s.Now()}
}

// serve answers requests until the connection is closed or passed to net/http.
func (c *conn) serve() {
	defer c.server.forget(c)
	defer func() {
		// Do recovers by itself, so this is a fault of the loop. It costs one connection, not the
		// server.
		if fault := recover(); fault != nil {
			c.server.Logger.Error("a connection has failed", "panic", fault, "stack", string(debug.Stack()))
			c.Close()
		}
	}()
	if _, ok := c.Conn.(*tls.Conn); ok {
		c.server.handed.pass(c.Conn) // TLS is expensive anyway, and may become HTTP/2
		return
	}
	c.in = make([]byte, roomMin)
	c.request = wire.Request{Header: &c.head.fields, Local: wire.IsLocal(c.RemoteAddr().String())}
	for c.next() {
		if !c.answer(c.server.requests) {
			c.Close()
			return
		}
	}
}

// next reads until there is a whole request. It reports false if there will be none, because the
// connection has been passed to net/http or closed.
func (c *conn) next() bool {
	for {
		verdict := c.judge()
		if verdict == plain {
			return true
		}
		if verdict == doubtful {
			c.handOver()
			return false
		}
		if err := c.read(); err != nil {
			// An incomplete request is not dropped: net/http knows the answer, and how long to
			// wait.
			if !c.idle() && (errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded)) {
				c.handOver()
			} else {
				c.Close()
			}
			return false
		}
	}
}

// judge returns the verdict on the bytes read so far. It is plain only if they have the whole
// request, and partial also before a request begins. judge fills in c.head as soon as the head is
// complete, and reads it only once.
func (c *conn) judge() verdict {
	if c.head.size == 0 {
		if !c.skip() {
			return partial
		}
		if verdict := c.head.read(c.in[c.start:c.end], c.server.Routed); verdict != plain {
			return verdict
		}
	}
	if c.end-c.start < c.head.size+c.head.length {
		return partial
	}
	return plain
}

// peeked is the number of bytes that net/http inspects before it assumes another request.
const peeked = 4

// skip skips line ends between two requests, as net/http does for old clients. It reports false if
// it needs more bytes to decide.
func (c *conn) skip() bool {
	pending := c.in[c.start:c.end]
	if c.first || c.skipped > 0 {
		return true
	}
	if len(pending) < peeked {
		return false
	}
	for c.skipped < peeked && (pending[c.skipped] == '\r' || pending[c.skipped] == '\n') {
		c.skipped++
	}
	c.start += c.skipped
	return true
}

// idle reports whether net/http would not yet see the beginning of a request in the bytes read.
func (c *conn) idle() bool {
	pending := c.end - c.start
	return pending == 0 || !c.first && c.skipped+pending < peeked
}

// read waits for more bytes, until the deadline, and returns nil if there are some. The server may
// close an idle connection meanwhile; read then returns net.ErrClosed.
func (c *conn) read() error {
	idle := c.idle()
	if idle {
		c.state.Store(waiting)
		if c.server.stopping.Load() {
			return net.ErrClosed
		}
	}
	c.makeRoom()
	n, err := c.readUntil(c.deadline(idle))
	c.end += n
	if idle && !c.state.CompareAndSwap(waiting, busy) {
		return net.ErrClosed
	}
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// deadline returns the instant at which a wait that begins now ends. An idle connection's limit
// counts from its acceptance or last answer; the first wait for the rest of a request starts the
// clock for that request, c.begun.
func (c *conn) deadline(idle bool) time.Time {
	switch {
	case idle && c.first:
		return c.since.Add(headerLimit)
	case idle:
		return c.since.Add(idleLimit)
	}
	if c.begun.IsZero() {
		c.begun = c.server.Now()
	}
	return c.begun.Add(wholeLimit)
}

// readUntil reads once. If an earlier deadline is set, it stays until it expires. So a busy
// connection sets its deadline only once in minutes.
func (c *conn) readUntil(deadline time.Time) (n int, err error) {
	if c.armed.IsZero() || c.armed.After(deadline) {
		c.arm(deadline)
	}
	for {
		n, err = c.Conn.Read(c.in[c.end:])
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.server.Now().Before(deadline) {
			return n, err
		}
		c.arm(deadline)
	}
}

func (c *conn) arm(deadline time.Time) {
	c.armed = deadline
	c.SetReadDeadline(deadline) // if it fails, the next read fails too
}

// makeRoom makes room for more bytes. The buffer grows with the bytes received, not with the
// announced length, so that memory costs a client as many bytes sent.
func (c *conn) makeRoom() {
	pending := c.in[c.start:c.end]
	switch {
	case len(pending) == 0 && len(c.in) > roomKept:
		c.in = make([]byte, roomMin)
	case len(pending) == len(c.in):
		c.in = make([]byte, min(len(c.in)*2, max(c.head.size+c.head.length, headMax)))
	}
	c.end = copy(c.in, pending)
	c.start = 0
}

// answer answers the request, and reports whether another may follow. If not, the caller closes the
// connection.
func (c *conn) answer(ctx context.Context) (more bool) {
	body := c.start + c.head.size
	c.request.Method, c.request.Path, c.request.Query, c.request.Host = c.head.method, c.head.path, c.head.query, c.head.host
	c.request.Body = c.in[body : body+c.head.length : body+c.head.length]
	out := c.server.Do(ctx, &c.request)
	defer out.Release()
	now := c.server.Now()
	more = !c.head.close && !c.server.stopping.Load()
	if err := c.write(out, !more); err != nil {
		return false // the client has disconnected
	}
	c.start = body + c.head.length
	c.first, c.since, c.begun, c.skipped, c.head.size = false, now, time.Time{}, 0, 0
	return more
}

// handOver passes the connection to net/http, with the unused bytes that were read from it.
func (c *conn) handOver() { c.server.handed.pass(newHandedConn(c.Conn, c.in[c.start:c.end])) }

// closeIdle closes the connection if it waits for a request.
func (c *conn) closeIdle() {
	if c.state.CompareAndSwap(waiting, closed) {
		c.Close()
	}
}
