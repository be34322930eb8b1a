package httploop

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/wire"
)

const (
	roomMin  = headMax                   // bytes of a connection's first buffer
	roomKept = intake.SmallMax + headMax // bytes of a pooled buffer, for a small body and its head
)

// conn is a connection that the loop serves. Only its own goroutine uses it, apart from the peer.
type conn struct {
	*peer

	small      []byte // the buffer of requests without much of a body
	in         []byte // in[start:end] has been read and is not used yet
	start, end int
	skipped    int // bytes between the previous request and this one
	head       head
	request    wire.Request
	admitted   bool         // the request's body, which does not fit into small
	hold       *intake.Hold // room for in, if that is not small
	out        []byte       // the answer's head, and its body unless that is large
	date       date

	first   bool      // no request has been answered yet
	posted  bool      // the last answered request was a POST
	last    time.Time // when the connection was accepted, or answered last
	begun   time.Time // when a request was found incomplete; zero: none was
	armed   time.Time // the deadline for reading that is set; zero: none
	sending time.Time // when the deadline for writing was set; zero: never
}

func newConn(p *peer) *conn { return &conn{peer: p, first: true, last: time.Unix(0, p.since.Load())} }

// serve answers requests until the connection is closed or passed to net/http.
func (c *conn) serve() {
	defer c.free()
	c.small = make([]byte, roomMin)
	c.in = c.small
	c.request = wire.NewRequest(c.RemoteAddr().String(), c.secure != nil)
	c.request.Header = &c.head.fields
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
		if c.head.size > 0 && !c.admitted && c.head.size+c.head.length > len(c.in) && !c.admit() {
			return false
		}
		if err := c.read(); err != nil {
			c.giveUp(err)
			return false
		}
	}
}

// drained is how much of a missing body net/http would read for the next request's sake.
const drained = 256 << 10

// giveUp ends a connection whose client sends no more. net/http knows the answer to an incomplete
// head, and how long to wait for the rest of it. A part of a body stays here: net/http would need
// room for it a second time.
func (c *conn) giveUp(err error) {
	switch late := errors.Is(err, os.ErrDeadlineExceeded); {
	case c.idle() || !late && !errors.Is(err, io.EOF):
		c.Close()
	case c.head.size > 0:
		status := http.StatusBadRequest
		if late {
			status = http.StatusRequestTimeout
		}
		missing := c.head.size + c.head.length - (c.end - c.start)
		end := late || c.head.close || missing >= drained // net/http announces the end then; it comes anyway
		_ = c.write(&wire.Response{Status: status}, end, c.server.Now())
		c.Close()
	default:
		c.handOver()
	}
}

// admit asks the server whether to read a body that does not fit into the buffer, and makes room for
// it. If not, it answers and closes the connection.
func (c *conn) admit() bool {
	c.admitted = true
	if c.server.Admit == nil {
		c.grow(c.head.size+c.head.length, nil)
		return true
	}
	c.fill()
	hold, refusal := c.server.Admit(c.server.requests, &c.request, int64(c.head.length))
	if refusal != nil {
		c.refuse(refusal)
		return false
	}
	c.grow(c.head.size+c.head.length, hold)
	return true
}

// grow replaces the buffer by one of at least so many bytes.
func (c *conn) grow(size int, hold *intake.Hold) {
	pending := c.in[c.start:c.end]
	in := newRoom(size)
	c.start, c.end = 0, copy(in, pending)
	c.free()
	c.in, c.hold = in, hold
}

// free drops a large buffer and releases the room taken for it.
func (c *conn) free() {
	if len(c.in) == roomKept {
		rooms.Put((*[roomKept]byte)(c.in))
	}
	c.in = c.small
	c.hold.Release()
}

// rooms holds buffers for bodies of middle size.
var rooms = sync.Pool{New: func() any { return new([roomKept]byte) }}

// newRoom returns a buffer of at least so many bytes, and less than twice as many: the room that was
// taken is by the size of the body.
func newRoom(size int) []byte {
	if size <= roomKept/2 || size > roomKept {
		return make([]byte, size)
	}
	return rooms.Get().(*[roomKept]byte)[:]
}

// refuse answers a request whose body has not been read, and closes the connection when the rest of
// the body has come. Meanwhile the server may close the connection like an idle one.
func (c *conn) refuse(out *wire.Response) {
	defer c.Close()
	defer out.Release()
	left := c.head.size + c.head.length - (c.end - c.start)
	if c.write(out, true, c.server.Now()) != nil {
		return
	}
	c.state.Store(waiting)
	c.server.linger(c.Conn, int64(left))
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

// skip skips line ends between a POST and the next request, as net/http does for old clients. It
// reports false if it needs more bytes to decide.
func (c *conn) skip() bool {
	pending := c.in[c.start:c.end]
	if c.first || c.skipped > 0 {
		return true
	}
	if len(pending) < peeked {
		return false
	}
	for c.posted && c.skipped < peeked && (pending[c.skipped] == '\r' || pending[c.skipped] == '\n') {
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
// close the connection meanwhile; read then returns net.ErrClosed.
func (c *conn) read() error {
	idle, state := c.idle(), receiving
	if idle {
		state = waiting
	}
	deadline := c.deadline(idle)
	c.makeRoom()
	c.state.Store(state)
	if idle && c.server.stopping.Load() {
		return net.ErrClosed
	}
	n, err := c.readUntil(deadline)
	c.end += n
	if !c.state.CompareAndSwap(state, busy) {
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
		return c.last.Add(headerLimit)
	case idle:
		return c.last.Add(idleLimit)
	}
	if c.begun.IsZero() {
		c.begun = c.server.Now()
		c.since.Store(c.begun.UnixNano())
	}
	if c.head.size > 0 {
		return c.begun.Add(requestLimit)
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

// makeRoom makes room for more bytes of a head; admit does so for a body. It drops the room of the
// previous request's body.
func (c *conn) makeRoom() {
	pending := c.in[c.start:c.end]
	switch {
	case c.head.size == 0 && len(pending) < len(c.small):
		c.start, c.end = 0, copy(c.small, pending)
		c.free()
		return
	case c.start == 0:
		return
	}
	c.end = copy(c.in, pending)
	c.start = 0
}

// answer answers the request, and reports whether another may follow. If not, the caller closes the
// connection.
func (c *conn) answer(ctx context.Context) (more bool) {
	body := c.start + c.head.size
	c.fill()
	c.request.Body = c.in[body : body+c.head.length : body+c.head.length]
	out := c.server.Do(ctx, &c.request)
	defer out.Release()
	now := c.server.Now()
	more = !c.head.close && !c.server.stopping.Load()
	if c.start = body + c.head.length; len(c.in) > roomKept {
		c.request.Body = nil
		c.free() // before the answer, which may wait long for its client
		c.start, c.end = 0, 0
	}
	if err := c.write(out, !more, now); err != nil {
		return false // the client has disconnected, or reads too slowly
	}
	c.posted = c.head.method == http.MethodPost
	c.first, c.last, c.begun, c.skipped, c.head.size, c.admitted = false, now, time.Time{}, 0, 0, false
	c.answered(now, out.Status < http.StatusBadRequest)
	return more
}

// fill fills in the request from its head.
func (c *conn) fill() {
	c.request.Method, c.request.Path, c.request.Query, c.request.Host = c.head.method, c.head.path, c.head.query, c.head.host
	c.request.Body = nil
}

// handOver passes the connection to net/http, with the unused bytes that were read from it.
func (c *conn) handOver() {
	unread := slices.Clone(c.in[c.start:c.end])
	c.free()
	c.SetDeadline(time.Time{}) // net/http sets its own; if this fails, so does the next read
	c.state.Store(receiving)
	c.server.hand(c.peer, newHandedConn(c.peer, unread))
}
