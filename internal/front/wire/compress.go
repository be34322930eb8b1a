package wire

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"
)

// decompress gives the request's body in plain; ok is false when that is too large. A body that is not what
// Content-Encoding says is given as it came: it is no JSON, and so is refused as any other body that is none.
func decompress(in *Request) (body []byte, ok bool) {
	if in.Header.Get("Content-Encoding") != "gzip" {
		return in.Body, true
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(in.Body))
	if err != nil {
		return in.Body, true
	}
	body, err = io.ReadAll(io.LimitReader(unpacker, bodyMax+1))
	if err != nil {
		return in.Body, true
	}
	return body, len(body) <= bodyMax
}

// gzipMin is the smallest body that is worth compressing: below it, the answer fits into a network packet anyway.
const gzipMin = 1024

// packers holds *gzip.Writer. They are large, so they are kept.
var packers = sync.Pool{New: func() any {
	packer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	return packer
}}

// seal does what only an answer to the network needs: it compresses the body where the client wants that and it pays, and
// adds the checksum of what is sent.
func (r *Response) seal(acceptEncoding string) {
	if len(r.Body) >= gzipMin && acceptsGzip(acceptEncoding) {
		r.Body = pack(r.Body)
		r.set("Content-Encoding", "gzip")
	}
	r.set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.Body)), 10))
}

func pack(body []byte) []byte {
	var packed bytes.Buffer
	packer := packers.Get().(*gzip.Writer)
	packer.Reset(&packed)
	packer.Write(body) // a bytes.Buffer does not fail
	packer.Close()
	packers.Put(packer)
	return packed.Bytes()
}

// acceptsGzip reads an Accept-Encoding header: gzip is listed, and not with a quality of zero.
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
