package bench

import (
	"context"
	"net"
	"time"
)

// conn is a minimal HTTP/1.1 connection: one request at a time.
type conn struct {
	net  net.Conn
	in   inbox
	stop func() bool
}

const dialTimeout = 5 * time.Second

// dial connects. When ctx is done, pending operations fail.
func dial(ctx context.Context, address string) (*conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return &conn{net: c, stop: stop}, nil
}

// close is safe on a nil conn.
func (c *conn) close() {
	if c == nil {
		return
	}
	if c.stop != nil {
		c.stop()
	}
	c.net.Close()
}

// call sends a whole request and reads the whole response, which is valid until the next call.
// After an error the connection is unusable.
func (c *conn) call(request []byte) (answer, error) {
	if _, err := c.net.Write(request); err != nil {
		return answer{}, err
	}
	c.in.reset()
	for {
		n, err := c.net.Read(c.in.space())
		if a, complete, wrong := c.in.read(n); complete || wrong != nil {
			return a, wrong
		}
		if err != nil {
			return answer{}, err
		}
	}
}
