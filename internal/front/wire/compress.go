package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// decompress returns the decompressed body of a request, with room taken for it; the caller releases
// it. Beyond 64 KB it is admitted like a body of its size. The error is intake.ErrTooLarge, admit's, or
// about the encoding.
// If the body is not gzip, as its Content-Encoding says, it is returned unchanged. It is not JSON
// then, and is refused like any other such body.
//
// A body in another encoding is refused with its name, in the API's form, which SDKs show: status 415
// would be an unknown error to them. Read as JSON it would be refused too, but without the reason.
func (s *Server) decompress(ctx context.Context, in *Request) (body []byte, hold *intake.Hold, err error) {
	switch coding := in.Header.Get("Content-Encoding"); {
	case len(in.Body) == 0 || coding == "" || strings.EqualFold(coding, "identity"):
		return in.Body, nil, nil
	case !strings.EqualFold(coding, "gzip"):
		return nil, nil, &dynamo.Error{Code: dynamo.CodeSerialization, Message: fmt.Sprintf("Content-Encoding %q is not supported; use gzip or none", coding)}
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(in.Body))
	if err != nil {
		return in.Body, nil, nil
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
		return in.Body, hold, nil
	case out.Len() > bodyMax:
		return nil, hold, intake.ErrTooLarge
	}
	return out.Bytes(), hold, nil
}

// gzipMin is the smallest body that is worth compressing: a smaller answer fits into one network
// packet anyway.
const gzipMin = 1024

// packers holds *gzip.Writer, which are expensive to allocate.
var packers = sync.Pool{New: func() any {
	// the level is valid, so there is no error
	packer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return packer
}}

// seal finishes an answer for the network: it compresses the body if the client accepts that and it
// pays, and adds the checksum.
func (r *Response) seal(in *Request) {
	if len(r.Body) >= gzipMin && !in.Local && acceptsGzip(in.Header.Get("Accept-Encoding")) {
		r.Body = pack(r.Body)
		r.w.buf = nil // the packed answer may wait long for its client
		r.set("Content-Encoding", "gzip")
	}
	r.checksum()
}

// checksum adds the checksum of the bytes sent.
func (r *Response) checksum() {
	r.set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.Body)), 10))
}

func pack(body []byte) []byte {
	var packed bytes.Buffer
	packer := packers.Get().(*gzip.Writer)
	packer.Reset(&packed)
	packer.Write(body) // a write to a bytes.Buffer cannot fail
	packer.Close()
	packers.Put(packer)
	return packed.Bytes()
}

// acceptsGzip reports whether an Accept-Encoding header lists gzip with a quality above zero.
func acceptsGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		coding, quality, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		_, q, found := strings.Cut(quality, "q=")
		weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !found || err == nil && weight > 0
	}
	return false
}
