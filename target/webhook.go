package target

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
)

// WebhookMode is the form of requests.
type WebhookMode string

// The modes of webhooks, from the HTTP binding of CloudEvents 1.0, and the bare body.
const (
	// one delivery a request, the whole event as JSON: application/cloudevents+json
	Structured WebhookMode = "structured"
	// one delivery a request, its body unchanged, the event's attributes in ce- headers
	Binary WebhookMode = "binary"
	// several deliveries a request: application/cloudevents-batch+json
	Batched WebhookMode = "batch"
	// one delivery a request, its body unchanged, no CloudEvent
	Plain WebhookMode = "plain"
)

// WebhookOptions configure a webhook. Only URL and Now are required.
type WebhookOptions struct {
	URL    string      // http or https. A user and password in it are sent as basic authentication
	Method string      // Default: POST
	Mode   WebhookMode // Default: Structured
	// "whsec_" and 24 to 64 bytes in base64; each makes a signature, so that secrets can be
	// rotated. At most 10. Default: none, unsigned
	Secrets []string
	// sent with every request: at most 50, with values of up to 8 KB. Headers of the modes, of the
	// signatures and of HTTP itself (Content-Length, Connection, …) are not allowed
	Headers map[string]string

	// of one request with its answer. Default: 30 s. Range: 10 ms to 15 minutes
	Timeout time.Duration
	// largest request in Batched mode; a single delivery may be larger. Default: 1 MB. Range: 1 KB
	// to 64 MB
	BatchBytes int
	// in the other modes: concurrent requests of one call of Deliver; deliveries of one key still
	// go one after another. Default: 8. Range: 1 to 100
	Parallel int

	// the time in signatures, and the start of a Retry-After date. Receivers compare it with their
	// clocks, so it is real time
	Now func() time.Time
	// Default: HTTP/1.1 and HTTP/2 with kept connections, through the environment's proxy
	Transport http.RoundTripper
}

// Webhook delivers by HTTP requests.
//
// An answer from 200 to 299 means delivered. 408, 425, 429 and from 500 on may be retried, after
// the time in a Retry-After header, in seconds or as a date, but after 24 hours at most; 429 and
// 503 mean that the receiver throttles. Redirects are not followed: 302, 303 and 307 may be
// retried, and all others are permanent failures. All other answers from 400 to 499 are permanent
// failures, including 410 Gone. If no status arrives before the timeout, or the answer is not HTTP,
// the delivery may be retried. Once there is a status, it counts even if the body ends early; only
// Batched mode retries after a success whose body ends early.
//
// In Batched mode the receiver may accept some deliveries and not others. It answers from 200 to
// 299 with a JSON object like the answer of an AWS Lambda function,
//
//	{"batchItemFailures": [{"itemIdentifier": "the id of an event"}]}
//
// and receives only those again. Any other body means that all arrived. If the list of failures is
// broken, too long, or names an ID that was not in the request, all count as failed: as with
// Lambda, a garbled answer loses nothing.
//
// Requests carry the headers of Standard Webhooks: webhook-id (the delivery's ID, the same in every
// attempt; in Batched mode a hash of the IDs), webhook-timestamp, and with secrets
// webhook-signature.
type Webhook struct {
	options WebhookOptions
	url     *url.URL
	keys    [][]byte
	headers http.Header
	host    string // of the Host header; empty: the URL's
	client  http.Client
}

const (
	defaultBatchBytes = 1 << 20
	maxBatchBytes     = 64 << 20
	defaultParallel   = 8
	maxParallel       = 100
	maxSecrets        = 10
	maxHeaders        = 50
	maxHeaderBytes    = 8 << 10
	defaultTimeout    = 30 * time.Second
	minTimeout        = 10 * time.Millisecond
	maxTimeout        = 15 * time.Minute
)

// NewWebhook checks the options and connects to nothing. It reports all faults together, without
// quoting a secret.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	o.setDefaults()
	w := &Webhook{options: o, headers: http.Header{}}
	var wrong option.Complaints

	var err error
	w.url, err = parseWebhookURL(o.URL)
	wrong.Join(err)
	if !isToken(o.Method) || o.Method == http.MethodConnect {
		wrong.Add("method", "must be one with a body, such as POST or PUT")
	}
	if !slices.Contains([]WebhookMode{Structured, Binary, Batched, Plain}, o.Mode) {
		wrong.Add("mode", "%q is not one of structured, binary, batch, plain", o.Mode)
	}
	if len(o.Secrets) > maxSecrets {
		wrong.Add("secrets", "%d are too many; the limit is %d", len(o.Secrets), maxSecrets)
	}
	for i, secret := range o.Secrets {
		key, err := parseSecret(secret)
		if err != nil {
			wrong.Add("secrets", "number %d %w", i+1, err)
		}
		w.keys = append(w.keys, key)
	}
	wrong.Join(w.setHeaders(o.Headers))
	if o.Timeout < minTimeout || o.Timeout > maxTimeout {
		wrong.Add("timeout", "%v is not between %v and %v", o.Timeout, minTimeout, maxTimeout)
	}
	if o.BatchBytes < 1<<10 || o.BatchBytes > maxBatchBytes {
		wrong.Add("batch-bytes", "%d is not between %d and %d", o.BatchBytes, 1<<10, maxBatchBytes)
	}
	if o.Parallel < 1 || o.Parallel > maxParallel {
		wrong.Add("parallel", "%d is not between 1 and %d", o.Parallel, maxParallel)
	}
	if o.Now == nil {
		wrong.Add("", "a webhook needs a clock: set Now, for instance to time.Now")
	}
	if err := wrong.Err(""); err != nil {
		return nil, err
	}
	w.client = http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w, nil
}

func (o *WebhookOptions) setDefaults() {
	setDefault(&o.Method, http.MethodPost)
	setDefault(&o.Mode, Structured)
	setDefault(&o.Timeout, defaultTimeout)
	setDefault(&o.BatchBytes, defaultBatchBytes)
	setDefault(&o.Parallel, defaultParallel)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// newTransport returns a transport that keeps as many connections as a lane may use, all to one
// host.
func newTransport() http.RoundTripper {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t = standard.Clone()
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1000
	t.MaxResponseHeaderBytes = 64 << 10
	t.DisableCompression = true // so that the limit of an answer bounds the bytes read
	return t
}

func parseWebhookURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		// the URL may contain a password
		return nil, option.Errorf("url", "must have the form https://example.com/path, with http or https, a host and no fragment")
	}
	return u, nil
}

// setHeaders checks and stores the configured headers.
func (w *Webhook) setHeaders(headers map[string]string) error {
	var wrong option.Complaints
	if len(headers) > maxHeaders {
		wrong.Add("headers", "%d are too many; the limit is %d", len(headers), maxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, lower := headers[name], strings.ToLower(name)
		switch {
		case !isToken(name):
			wrong.Add("headers", "%q is not a header name", name)
		case slices.Contains(ownHeaders, lower) || strings.HasPrefix(lower, "ce-") || strings.HasPrefix(lower, "webhook-"):
			wrong.Add("headers", "%s is set by the webhook itself", name)
		case w.headers[http.CanonicalHeaderKey(name)] != nil:
			wrong.Add("headers", "%s is given twice", name)
		case len(value) > maxHeaderBytes || strings.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0:
			// the value may be a password
			wrong.Add("headers", "the value of %s has a control character or more than %d bytes", name, maxHeaderBytes)
		case lower == "host":
			w.host = value
		default:
			w.headers.Set(name, value)
		}
	}
	return wrong.Err("")
}

// ownHeaders cannot be configured.
var ownHeaders = []string{
	"content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
}

// isToken reports whether s is a valid name of a header or a method.
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	}) < 0
}

// Close closes idle connections.
func (w *Webhook) Close() error {
	w.client.CloseIdleConnections()
	return nil
}

// Deliver sends the deliveries. In Batched mode it sends as few requests as BatchBytes allows, one
// after another. In the other modes each delivery has a request, and up to Parallel are concurrent.
func (w *Webhook) Deliver(ctx context.Context, deliveries []Delivery) []error {
	results := make([]error, len(deliveries))
	if w.options.Mode == Batched {
		w.deliverBatches(ctx, deliveries, results)
		return results
	}
	queues := perKey(deliveries)
	inTurn := make(chan []int, len(queues))
	for _, queue := range queues {
		inTurn <- queue
	}
	close(inTurn)
	var group sync.WaitGroup
	for range min(w.options.Parallel, len(queues)) {
		group.Go(func() {
			for queue := range inTurn {
				for _, i := range queue {
					results[i] = w.deliverOne(ctx, deliveries[i])
				}
			}
		})
	}
	group.Wait()
	return results
}

// perKey returns the positions of the deliveries of each key, which must go one after another. Each
// delivery without a key has a queue of its own.
func perKey(deliveries []Delivery) (queues [][]int) {
	queueOf := map[string]int{}
	for i, d := range deliveries {
		q, known := queueOf[d.Key]
		if !known || d.Key == "" {
			q = len(queues)
			queues = append(queues, nil)
			queueOf[d.Key] = q
		}
		queues[q] = append(queues[q], i)
	}
	return queues
}
