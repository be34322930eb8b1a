package httploop

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mayflydb/mayfly/internal/front/intake"
)

// http2Limits bound the memory that an HTTP/2 connection takes before its bodies are admitted: one
// window of unread bodies, and a head of at most headerBytes for each stream. Go's defaults are a
// megabyte and 250 streams. Clients begin with 100 streams, before they know the limit; with a lower
// one the SDK for Go repeats refused requests without their bodies. A client with more requests at
// once opens further connections.
var http2Limits = http.HTTP2Config{
	MaxConcurrentStreams:          100,
	MaxReceiveBufferPerConnection: 256 << 10,
	MaxReceiveBufferPerStream:     64 << 10, // so one body that is not admitted does not delay the others
	WriteByteTimeout:              sendLimit,
}

// handshake negotiates TLS within headerLimit, and reports whether that succeeded. If not, the
// caller closes the connection. Until then the connection counts as idle: the server may close it
// for the place.
func (s *server) handshake(p *peer) (ok bool) {
	p.SetDeadline(s.Now().Add(headerLimit)) // if it fails, so does the handshake
	if err := p.secure.Handshake(); err != nil {
		// An error of a client, such as one that does not trust the certificate. Anyone can cause any
		// number of them.
		s.Logger.Debug("a TLS handshake failed", "client", p.from, "error", err)
		if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && plain.Conn != nil && isHTTP(plain.RecordHeader) {
			const head = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n"
			fmt.Fprintf(plain.Conn, head+plainBody, len(plainBody)) // if it fails, so does the next read
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			s.linger(p.transport(), intake.DrainMax)
		}
		return false
	}
	p.SetDeadline(time.Time{}) // if it fails, so does the next read
	p.since.Store(s.Now().UnixNano())
	return true
}

// isHTTP reports whether bytes in place of a TLS record begin a request of HTTP.
func isHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}

// plainBody is the answer to HTTP without TLS, in a form that SDKs can read.
const plainBody = `{"__type":"com.amazon.coral.validate#ValidationException","message":"this port speaks TLS; use https:// in the address"}` + "\n"

// linger reads so many bytes that a refused client may still send, for intake.DrainLimit at most. If
// the connection closed at once, a client that sends all of its request before it reads would not see
// why it was refused.
func (s *server) linger(c net.Conn, bytes int64) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if it fails, so do the reads
	}
	c.SetReadDeadline(s.Now().Add(intake.DrainLimit)) // if it fails, so do the reads
	_, _ = io.CopyN(io.Discard, c, bytes)             // an error ends the connection anyway
}
