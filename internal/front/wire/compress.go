package wire

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// decompress returns the decompressed body of a request, with room taken for it; the caller releases
// it. Beyond 64 KB it is admitted like a body of its size. The error is intake.ErrTooLarge or admit's.
//
// If the body cannot be decompressed, there is no error and no body, and in.unreadable has the
// reason: the errors of the operation's name and of the signature come first.
func (s *Server) decompress(ctx context.Context, in *Request) (body []byte, hold *intake.Hold, err error) {
	coding := in.Header.Get("Content-Encoding")
	if coding == "" || strings.EqualFold(coding, "identity") {
		return in.Body, nil, nil
	}
	unpacker, unreadable := newUnpacker(coding, in.Body)
	if unreadable != nil {
		in.unreadable = unreadable
		return nil, nil, nil
	}
	var out bytes.Buffer
	_, err = io.CopyN(&out, unpacker, intake.SmallMax)
	if err == nil {
		if hold, err = s.admit(ctx, in, bodyMax); err != nil {
			return nil, nil, err
		}
		_, err = out.ReadFrom(io.LimitReader(unpacker, bodyMax+1-intake.SmallMax))
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		in.unreadable = errUnreadable("the body is not " + strings.ToLower(coding) + ": " + err.Error())
		return nil, hold, nil
	case out.Len() > bodyMax:
		return nil, hold, intake.ErrTooLarge
	}
	return out.Bytes(), hold, nil
}

// newUnpacker returns a reader of the decompressed body, or the error about the encoding or the body's
// first bytes.
func newUnpacker(coding string, body []byte) (unpacker io.Reader, unreadable *dynamo.Error) {
	var err error
	switch {
	case len(body) == 0:
		return nil, errUnreadable("the body is empty, which Content-Encoding " + strconv.QuoteToASCII(coding) + " does not allow")
	case strings.EqualFold(coding, codingGzip):
		unpacker, err = gzip.NewReader(bytes.NewReader(body))
	case strings.EqualFold(coding, codingDeflate):
		unpacker, err = zlib.NewReader(bytes.NewReader(body))
	default:
		return nil, errUnreadable("Content-Encoding " + strconv.QuoteToASCII(coding) + " is not supported; use gzip, deflate or none")
	}
	if err != nil {
		return nil, errUnreadable("the body is not " + strings.ToLower(coding) + ": " + err.Error())
	}
	return unpacker, nil
}

// errUnreadable returns the error for a body that cannot be decompressed. For Amazon, that is the
// server's fault: the status is 500.
func errUnreadable(why string) *dynamo.Error {
	return &dynamo.Error{Code: dynamo.CodeInternal, Message: why}
}

// packMin is the size in bytes of the smallest body that is compressed.
const packMin = 4096

// seal finishes an answer for the network: it compresses the body if the client accepts that and it
// pays, and adds the checksum of the bytes sent.
func (r *Response) seal(in *Request) {
	if len(r.Body) >= packMin && !in.Local {
		if coding := chooseCoding(in.Header.Get("Accept-Encoding")); coding != "" {
			r.Body = pack(coding, r.Body)
			r.w.buf = nil // the packed answer may wait long for its client
			r.set("Content-Encoding", coding)
		}
	}
	r.checksum()
}

// checksum adds the checksum of the bytes sent.
func (r *Response) checksum() {
	r.set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.Body)), 10))
}

// packer is a *gzip.Writer or a *zlib.Writer.
type packer interface {
	io.WriteCloser
	Reset(w io.Writer)
}

// packers holds packers by their coding. They are expensive to allocate.
var packers = map[string]*sync.Pool{
	codingGzip: {New: func() any {
		p, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid, so there is no error
		return p
	}},
	codingDeflate: {New: func() any {
		p, _ := zlib.NewWriterLevel(nil, zlib.BestSpeed)
		return p
	}},
}

func pack(coding string, body []byte) []byte {
	var packed bytes.Buffer
	p := packers[coding].Get().(packer)
	p.Reset(&packed)
	p.Write(body) // a write to a bytes.Buffer cannot fail
	p.Close()
	packers[coding].Put(p)
	return packed.Bytes()
}
