package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"time"
)

// conn is a minimal HTTP/1.1 connection: one request at a time. It leaves more of the CPUs to the
// servers on this machine than net/http would.
type conn struct {
	net        net.Conn
	in         *bufio.Reader // made by the first call
	head, body []byte        // of the last response
	stop       func() bool
}

// answer is an HTTP response. Its slices are valid until the connection's next call.
type answer struct {
	status int
	head   []byte // the status line and the header fields
	body   []byte
	closes bool // the server closes the connection afterwards
}

const (
	dialTimeout = 5 * time.Second
	answerMax   = 64 << 20
	headMax     = 64 << 10
	inBytes     = 16 << 10
)

var (
	errAnswerSize = errors.New("the answer is larger than expected")
	errAnswerForm = errors.New("the answer is not HTTP/1.1")
)

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
	if c.in == nil {
		c.in = bufio.NewReaderSize(c.net, inBytes)
	}
	if err := c.readHead(); err != nil {
		return answer{}, err
	}
	if len(c.head) < len("HTTP/1.1 200") || !bytes.HasPrefix(c.head, []byte("HTTP/1.")) {
		return answer{}, errAnswerForm
	}
	status, err := strconv.Atoi(string(c.head[9:12]))
	if err != nil {
		return answer{}, errAnswerForm
	}
	if err := c.readBody(); err != nil {
		return answer{}, err
	}
	closes := string(headerField(c.head, "connection")) == "close"
	return answer{status: status, head: c.head, body: c.body, closes: closes}, nil
}

// readHead reads up to the empty line.
func (c *conn) readHead() error {
	c.head = c.head[:0]
	for {
		line, err := c.in.ReadSlice('\n')
		c.head = append(c.head, line...)
		switch {
		case len(c.head) > headMax:
			return errAnswerSize
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return err
		case string(line) == "\r\n":
			return nil
		}
	}
}

// readBody reads the body that the head announces: none, one with a length, or one in chunks.
func (c *conn) readBody() (err error) {
	c.body = c.body[:0]
	if string(headerField(c.head, "transfer-encoding")) == "chunked" {
		chunks := io.LimitReader(httputil.NewChunkedReader(c.in), answerMax+1)
		if c.body, err = io.ReadAll(chunks); err == nil && len(c.body) > answerMax {
			err = errAnswerSize
		}
		if err == nil {
			_, err = c.in.Discard(len("\r\n")) // there are no trailers
		}
		return err
	}
	field := headerField(c.head, "content-length")
	if field == nil {
		return nil
	}
	n, err := strconv.ParseUint(string(field), 10, 31)
	if err != nil {
		return fmt.Errorf("%w: content length %q", errAnswerForm, field)
	}
	if n > answerMax {
		return errAnswerSize
	}
	c.body = slices.Grow(c.body, int(n))[:n]
	_, err = io.ReadFull(c.in, c.body)
	return err
}

// headerField returns the value of a header field, or nil.
func headerField(head []byte, name string) []byte {
	for line := range bytes.Lines(head) {
		if len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], []byte(name)) {
			return bytes.TrimSpace(line[len(name)+1:])
		}
	}
	return nil
}
