package intake

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// ErrTooLarge is the error of a body beyond its limit. It has not been read to its end.
var ErrTooLarge = errors.New("the body is too large")

const (
	// FreeMax is the size in bytes of a body that needs no room: about as much as a connection
	// takes anyway.
	FreeMax = 4 << 10
	// DrainMax bounds the bytes of a refused body that are read, and DrainLimit the time.
	DrainMax   = 64 << 20
	DrainLimit = 5 * time.Second
)

// Admit decides whether so many bytes of a body are read, after a look at the request's head, and
// takes room for them.
type Admit func(bytes int64) (*Hold, error)

// ReadBody appends a request's body to b, if it has at most limit bytes and admit agrees before
// they are read. A body of unknown length is first admitted as a small one, and as one of limit
// bytes when it turns out to be larger. The caller releases the hold, also after an error. The
// error is ErrTooLarge, admit's, or one of reading: the client has disconnected, was too slow, or
// violates HTTP.
func ReadBody(b *bytes.Buffer, r *http.Request, limit int64, admit Admit) (hold *Hold, err error) {
	switch {
	case r.Body == nil || r.ContentLength == 0:
		return nil, nil
	case r.ContentLength > limit:
		return nil, ErrTooLarge
	case r.ContentLength > FreeMax:
		if hold, err = admit(r.ContentLength); err != nil {
			return nil, err
		}
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	case r.ContentLength < 0:
		return readUnknown(b, r, limit, admit)
	}
	_, err = b.ReadFrom(r.Body)
	return hold, err
}

func readUnknown(b *bytes.Buffer, r *http.Request, limit int64, admit Admit) (hold *Hold, err error) {
	if hold, err = admit(SmallMax); err != nil {
		return nil, err
	}
	if _, err = io.CopyN(b, r.Body, SmallMax+1); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return hold, err
	}
	hold.Release()
	if hold, err = admit(limit); err != nil {
		return nil, err
	}
	b.Grow(int(limit))
	if _, err = b.ReadFrom(io.LimitReader(r.Body, limit+1-int64(b.Len()))); err == nil && int64(b.Len()) > limit {
		err = ErrTooLarge
	}
	return hold, err
}

// Refuse answers a request whose body has not been read, by calling answer. Then it reads the rest
// of the body, up to DrainMax and DrainLimit from now: a client that sends all of its request before
// it reads would otherwise find the connection closed, and no answer. A client that asked whether to
// send the body (Expect: 100-continue) has its answer.
//
// An HTTP/1 connection ends with the answer. Otherwise net/http, in full duplex, would read the
// unread part of the body as the next request.
func Refuse(w http.ResponseWriter, r *http.Request, now time.Time, answer func()) {
	if r.ProtoMajor != 1 {
		answer() // HTTP/2 tells the client to stop
		return
	}
	w.Header().Set("Connection", "close")
	to := http.NewResponseController(w)
	drain := r.Header.Get("Expect") == "" && to.EnableFullDuplex() == nil
	answer()
	if drain && to.Flush() == nil && to.SetReadDeadline(now.Add(DrainLimit)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, DrainMax) // the connection ends in any case
	}
}
