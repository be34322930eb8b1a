package sim

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// mishap is what the network does to a request.
type mishap struct {
	before, after time.Duration // the delays of the request and of its answer
	unsent, lost  bool          // the request never arrives; its answer never does
	again         bool          // a second copy of the request arrives
	later         time.Duration // the second copy is so much later
}

// drawMishap returns the mishap of a request, in a network in which so many percent have one.
func drawMishap(r *rand.Rand, bad int) (m mishap) {
	if !percent(r, bad) {
		return mishap{}
	}
	most := 30 * time.Millisecond
	if percent(r, 10) {
		most = time.Second
	}
	m.before, m.after = upTo(r, most), upTo(r, most)
	switch r.IntN(6) {
	case 0:
		m.unsent = true
	case 1:
		m.lost = true
	case 2:
		m.again, m.later = true, upTo(r, most)
	}
	return m
}

// network is the way between clients and a server.
type network struct {
	to     http.RoundTripper
	copies sync.WaitGroup // requests on their way
	left   func(o *op)    // called when a copy has left the server
}

// opKey is the key of an op in a context.
type opKey struct{}

// RoundTrip sends a request. One that no op stands behind has no mishaps.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	o, _ := r.Context().Value(opKey{}).(*op)
	if o == nil || o.mishap == (mishap{}) {
		answer, err := n.to.RoundTrip(r)
		if o != nil {
			n.left(o)
		}
		return answer, err
	}
	m := o.mishap
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if m.again {
		second := r.Clone(context.WithoutCancel(r.Context()))
		second.Body = io.NopCloser(bytes.NewReader(body))
		n.copies.Go(func() {
			time.Sleep(m.before + m.later)
			if answer, err := n.to.RoundTrip(second); err == nil {
				_ = answer.Body.Close()
			}
			n.left(o)
		})
	}
	time.Sleep(m.before)
	if m.unsent {
		return nil, errReset
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, err := n.to.RoundTrip(r)
	n.left(o)
	time.Sleep(m.after)
	if m.lost && err == nil {
		_ = answer.Body.Close()
		return nil, errReset
	}
	return answer, err
}

// withOp returns a context for the calls of an op.
func withOp(ctx context.Context, o *op) context.Context { return context.WithValue(ctx, opKey{}, o) }
