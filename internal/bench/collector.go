package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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

// note passes each number in a body to the watches that expect it, as an item that arrived at this
// time.
func (c *collector) note(body []byte, at time.Time) {
	c.mu.Lock()
	watches := c.watches
	c.mu.Unlock()
	for _, x := range watches {
		for _, rest, found := bytes.Cut(body, x.before); found; _, rest, found = bytes.Cut(rest, x.before) {
			if n, ok := leadingNumber(rest); ok && n >= x.first && n-x.first < uint64(x.watch.plan.items) {
				x.watch.removed(int(n-x.first), at)
			}
		}
	}
}

// targetsFile returns a server's targets file for deliveries to the collector. Firings arrive as
// batches of CloudEvents, and records in Lambda's form, with a stream also over NATS.
func (c *collector) targetsFile(n *natsServer) string {
	var text strings.Builder
	text.WriteString("targets:\n")
	add := func(arn, name, batch, kind string) {
		fmt.Fprintf(&text, "  - arn: %q\n    name: %s\n    limits: {concurrency: 16, %stimeout: 10s}\n    %s\n", arn, name, batch, kind)
	}
	add(firingsARN, "firings", "batch: 100, ", fmt.Sprintf(`webhook: {url: "http://%s/firings", mode: batch}`, c.address))
	add(recordsARN, "records", "", fmt.Sprintf(`webhook: {url: "http://%s/records", mode: plain}`, c.address))
	if n != nil {
		add(natsARN, "nats", "", fmt.Sprintf("nats: {url: %q, subject: %q, stream: %q, mode: plain}", n.url, n.subject, n.name))
	}
	return text.String()
}

const arnPrefix = "arn:aws:lambda:us-east-1:000000000000:function:bench-"

const (
	firingsARN = arnPrefix + "firings"
	recordsARN = arnPrefix + "records"
	natsARN    = arnPrefix + "nats"
)
