package httploop

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/front/wire"
)

// joinMax is the largest body that is copied to follow its head. A larger one is written from its
// own buffer.
const joinMax = 16 << 10

// write sends the answer, in one system call unless it is large. If it is the connection's last, it
// says so in a Connection header; the caller closes the connection. A large body is sent without a
// copy.
func (c *conn) write(r *wire.Response, last bool, now time.Time) error {
	b := appendStatus(c.out[:0], r.Status)
	for _, f := range r.Header {
		b = append(append(append(append(b, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	b = append(append(append(b, "Server: Server\r\nDate: "...), c.date.at(c.server.Date())...), "\r\n"...)
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	body := r.Body
	if r.Unsized() {
		b = append(b, "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"...)
		body = nil
	} else {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10)
		b = append(b, "\r\n\r\n"...)
	}
	c.extend(now)
	if len(body) <= joinMax {
		c.out = append(b, body...)
		_, err := c.Write(c.out)
		return err
	}
	c.out = b
	first := body[:min(len(body), sendStep)]
	buffers := net.Buffers{b, first}
	_, err := buffers.WriteTo(c.Conn)
	for part := range slices.Chunk(body[len(first):], sendStep) {
		if err != nil {
			break
		}
		c.extend(c.server.Now())
		_, err = c.Write(part)
	}
	return err
}

// extend lets the client take sendLimit for the next bytes, and at most twice as long. Setting a
// deadline costs something, so a busy connection does not set it for every answer.
func (c *conn) extend(now time.Time) {
	if now.Sub(c.sending) > sendLimit {
		c.sending = now
		c.SetWriteDeadline(now.Add(2 * sendLimit)) // if it fails, the next write fails too
	}
}

func appendStatus(b []byte, status int) []byte {
	if status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	return append(append(append(b, ' '), http.StatusText(status)...), "\r\n"...)
}

// date caches the Date header's value, which changes once a second. The result of at is valid until
// the next call.
type date struct {
	second int64
	text   []byte
}

func (d *date) at(now time.Time) []byte {
	if second := now.Unix(); second != d.second || d.text == nil {
		d.second, d.text = second, now.UTC().AppendFormat(d.text[:0], http.TimeFormat)
	}
	return d.text
}
