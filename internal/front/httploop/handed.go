package httploop

import (
	"bytes"
	"io"
	"net"
	"sync"
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

// handedConn is a connection with bytes that were read and are unread again.
type handedConn struct {
	net.Conn
	reader io.Reader // the unread bytes, then the connection
}

func newHandedConn(c net.Conn, unread []byte) *handedConn {
	return &handedConn{c, io.MultiReader(bytes.NewReader(unread), c)}
}

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
