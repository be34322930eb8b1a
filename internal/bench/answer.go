package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// answer is an HTTP response. Its slices are valid until the connection's next call.
type answer struct {
	status int
	head   []byte // the status line and the header fields
	body   []byte
	closes bool // the server closes the connection afterwards
}

const (
	answerMax  = 64 << 20
	headMax    = 64 << 10
	inboxStart = 8 << 10
)

var (
	errAnswerSize = errors.New("the answer is larger than expected")
	errAnswerForm = errors.New("the answer is not HTTP/1.1")
)

// inbox assembles a response from reads of a connection. Requests are never pipelined, so nothing
// follows a response. The zero value is ready.
type inbox struct {
	buf     []byte
	n       int // bytes of buf in use
	end     int // length of the head; 0 while it is incomplete
	length  int // length of the body, unless it is chunked
	chunked bool
	answer  answer
	joined  []byte // a chunked body without its framing
}

// reset forgets the previous response.
func (in *inbox) reset() { in.n, in.end = 0, 0 }

// space returns room for the next read; it is never empty.
func (in *inbox) space() []byte {
	switch {
	case in.buf == nil:
		in.buf = make([]byte, inboxStart)
	case in.end > 0 && in.end+in.length > len(in.buf):
		in.buf = append(in.buf, make([]byte, in.end+in.length-len(in.buf))...)
	case in.n == len(in.buf):
		in.buf = append(in.buf, make([]byte, len(in.buf))...)
	}
	return in.buf[in.n:]
}

// read accepts n bytes that were read into space, and reports whether the response is complete.
func (in *inbox) read(n int) (a answer, complete bool, err error) {
	in.n += n
	if in.end == 0 {
		if err := in.readHead(); err != nil || in.end == 0 {
			return answer{}, false, err
		}
	}
	a = in.answer
	a.head = in.buf[:in.end]
	if in.chunked {
		a.body, complete, err = in.readChunks()
		return a, complete, err
	}
	if in.n < in.end+in.length {
		return answer{}, false, nil
	}
	a.body = in.buf[in.end : in.end+in.length]
	return a, true, nil
}

// readHead looks for the end of the head, and parses it.
func (in *inbox) readHead() error {
	i := bytes.Index(in.buf[:in.n], []byte("\r\n\r\n"))
	if i < 0 {
		if in.n > headMax {
			return errAnswerSize
		}
		return nil
	}
	head := in.buf[:i+4]
	if len(head) < len("HTTP/1.1 200") || string(head[:len("HTTP/1.")]) != "HTTP/1." {
		return errAnswerForm
	}
	status, err := strconv.Atoi(string(head[9:12]))
	if err != nil {
		return errAnswerForm
	}
	in.answer = answer{status: status, closes: string(headerField(head, "connection")) == "close"}
	in.length, in.chunked, err = bodyForm(head)
	if err == nil && in.length > answerMax {
		err = errAnswerSize
	}
	in.end = len(head)
	return err
}

// bodyForm returns the length of the body, or reports that it is chunked. Without either there is
// no body.
func bodyForm(head []byte) (length int, chunked bool, err error) {
	if string(headerField(head, "transfer-encoding")) == "chunked" {
		return 0, true, nil
	}
	field := headerField(head, "content-length")
	if field == nil {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(string(field), 10, 31)
	if err != nil {
		return 0, false, fmt.Errorf("%w: content length %q", errAnswerForm, field)
	}
	return int(n), false, nil
}

// readChunks assembles a chunked body, each time from its beginning: endpoints use such bodies
// rarely, and for short answers. It expects no trailers.
func (in *inbox) readChunks() (body []byte, complete bool, err error) {
	in.joined = in.joined[:0]
	for rest := in.buf[in.end:in.n]; ; {
		line := bytes.Index(rest, []byte("\r\n"))
		if line < 0 {
			return nil, false, in.boundChunks()
		}
		size, _, _ := bytes.Cut(rest[:line], []byte(";"))
		length, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil {
			return nil, false, errAnswerForm
		}
		rest = rest[line+2:]
		if len(rest) < int(length)+2 {
			return nil, false, in.boundChunks()
		}
		if length == 0 {
			return in.joined, true, nil
		}
		in.joined = append(in.joined, rest[:length]...)
		rest = rest[length+2:]
	}
}

func (in *inbox) boundChunks() error {
	if in.n > answerMax {
		return errAnswerSize
	}
	return nil
}

// headerField returns the value of a header field, or nil. The name is in lower case.
func headerField(head []byte, name string) []byte {
	for {
		_, rest, ok := bytes.Cut(head, []byte("\r\n"))
		if !ok || len(rest) < len(name)+1 {
			return nil
		}
		if rest[len(name)] == ':' && equalFold(rest[:len(name)], name) {
			value, _, _ := bytes.Cut(rest[len(name)+1:], []byte("\r\n"))
			return bytes.TrimSpace(value)
		}
		head = rest
	}
}

// equalFold compares ASCII; lower is in lower case.
func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
