package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// collector is a webhook on this machine that records the arrival of deliveries.
type collector struct {
	address string
	server  http.Server
	ended   chan error

	mu      sync.Mutex // guards the following
	watches []collected
}

// collected is the range of numbers of a watch: from first, as many as its plan has items.
type collected struct {
	before []byte // text before a number's ten digits
	first  uint64
	watch  *watch
}

const collectorBytesMax = 16 << 20 // of one request

func newCollector() (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{address: listener.Addr().String(), ended: make(chan error, 1)}
	c.server.Handler = c
	go func() { c.ended <- c.server.Serve(listener) }()
	return c, nil
}

func (c *collector) close() error {
	err := c.server.Close()
	if ended := <-c.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// expect returns a watch for numbers after a text, from first on.
func (c *collector) expect(before string, first uint64, p *plan) *watch {
	w := newWatch(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = append(c.watches, collected{[]byte(before), first, w})
	return w
}

// forget ends all watches.
func (c *collector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = nil
}

// ServeHTTP receives a delivery, or a batch of them.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, collectorBytesMax))
	at := time.Now()
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.note(body, at)
}

// note counts the numbers in a body.
func (c *collector) note(body []byte, at time.Time) {
	c.mu.Lock()
	watches := c.watches
	c.mu.Unlock()
	for _, x := range watches {
		for rest := body; ; {
			i := bytes.Index(rest, x.before)
			if i < 0 || len(rest) < i+len(x.before)+markBytes {
				break
			}
			rest = rest[i+len(x.before):]
			if n, err := parseDigits(rest[:markBytes]); err == nil && n >= x.first && n < x.first+uint64(x.watch.plan.items) {
				x.watch.removed(int(n-x.first), at)
			}
		}
	}
}

var errDigits = errors.New("no number")

// parseDigits reads the output of putDigits.
func parseDigits(digits []byte) (n uint64, err error) {
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, errDigits
		}
		n = 10*n + uint64(d-'0')
	}
	return n, nil
}

// await waits until a watch has seen everything, or a grace period after an instant.
func await(ctx context.Context, w *watch, last time.Time, grace time.Duration) error {
	limit, cancel := context.WithDeadline(ctx, last.Add(grace))
	defer cancel()
	select {
	case <-w.complete:
	case <-limit.Done():
	}
	return ctx.Err()
}

// targetsFile returns a server's targets file for deliveries to the collector. Firings arrive as
// batches of CloudEvents, and records in Lambda's form, with a stream also over NATS.
func (c *collector) targetsFile(n *natsStream) string {
	text := fmt.Sprintf(`targets:
  - arn: %q
    name: firings
    limits: {concurrency: 16, batch: 100, timeout: 10s}
    webhook: {url: "http://%s/firings", mode: batch}
  - arn: %q
    name: records
    limits: {concurrency: 16, timeout: 10s}
    webhook: {url: "http://%s/records", mode: plain}
`, firingsARN, c.address, recordsARN, c.address)
	if n != nil {
		text += fmt.Sprintf(`  - arn: %q
    name: nats
    limits: {concurrency: 16, timeout: 10s}
    nats: {url: %q, subject: %q, stream: %q, mode: plain}
`, natsARN, n.url, n.subject, n.name)
	}
	return text
}

const (
	firingsARN = "arn:aws:lambda:us-east-1:000000000000:function:bench-firings"
	recordsARN = "arn:aws:lambda:us-east-1:000000000000:function:bench-records"
	natsARN    = "arn:aws:lambda:us-east-1:000000000000:function:bench-nats"
)
