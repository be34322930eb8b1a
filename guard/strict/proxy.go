package strict

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/browser"
	"github.com/mayflydb/mayfly/internal/front/intake"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// ProxyOptions configure a Proxy. Endpoint, Credentials and Rules are required.
type ProxyOptions struct {
	Rules Rules

	Endpoint string // URL of the endpoint, such as https://dynamodb.eu-west-1.amazonaws.com
	// Streams is the URL of the endpoint's streams. Default: Amazon's if Endpoint is Amazon's,
	// otherwise Endpoint.
	Streams     string
	Region      string                  // the region in signatures; default: us-east-1
	Credentials aws.CredentialsProvider // the credentials for signing requests to the endpoint

	// Clients are the credentials of the proxy's clients, who must sign with one of them. Without
	// any, signatures are not checked.
	Clients []Credential

	// BodyBudget is the memory in bytes for the bodies of requests, at least 32 MB. Bodies of more
	// than 64 KB wait for room, 5 seconds at most; then the answer is ServiceUnavailable, after which
	// clients retry. Default: 128 MB.
	BodyBudget int64

	// default: a client that keeps connections, and waits at most a minute for the head of an
	// answer
	HTTP   *http.Client
	TLS    *tls.Config  // of the default client, for an endpoint with a private CA; default: Go's
	Logger *slog.Logger // for endpoints that do not answer; default: no log
}

// Credential is a key pair for signing requests, with or without a session token.
type Credential struct{ AccessKey, SecretKey, SessionToken string }

// Proxy is a reverse proxy that makes an endpoint's tables strict. It is an http.Handler, safe for
// concurrent use. Its only state is its cache of facts about tables and transactions.
type Proxy struct {
	o        ProxyOptions
	rewriter *rewriter
	verifier *sigv4.Verifier
	signer   *v4.Signer
	clock    *clock.Clock // the real time, for the age of signatures
	slots    chan struct{}
	bodies   *intake.Budget
	answers  *intake.Outbox
}

const (
	requestMax     = 16 << 20 // bytes of a request's body, DynamoDB's limit
	underWayMax    = 1024     // requests at once; others wait
	streamsPrefix  = "DynamoDBStreams_20120810."
	headerWait     = "X-Mayfly-Wait-Ms" // asks mayfly's GetRecords to wait for a record
	serviceDynamo  = "dynamodb"
	regionDefault  = "us-east-1"
	connectionsMax = 256
	answerTimeout  = time.Minute
	outliveLimit   = 5 * time.Second // for the answer to a client that has closed its side
)

// NewProxy returns a proxy after a check of its options. It does not contact the endpoint.
func NewProxy(o ProxyOptions) (*Proxy, error) {
	r, err := newRewriter(o.Rules)
	all := []error{err}
	complain := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if o.Credentials == nil {
		complain("Credentials: missing")
	}
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		complain("Endpoint: %q is not an http or https URL", o.Endpoint)
	}
	o.BodyBudget = cmp.Or(o.BodyBudget, intake.DefaultBudget)
	if o.BodyBudget < intake.LeastBudget {
		complain("BodyBudget: %d is less than 32 MB", o.BodyBudget)
	}
	if err := errors.Join(all...); err != nil {
		return nil, fmt.Errorf("strict: %w", err)
	}
	o.Streams = cmp.Or(o.Streams, streamsOf(o.Endpoint, endpoint.Host))
	o.Region = cmp.Or(o.Region, regionDefault)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.HTTP == nil {
		o.HTTP = newClient(o.TLS)
	}
	r.time.changed = func(doubt error) {
		if doubt != nil {
			o.Logger.Warn("requests for guarded tables fail", "endpoint", o.Endpoint, "error", doubt)
		} else {
			o.Logger.Info("requests for guarded tables are answered again: the clocks agree", "endpoint", o.Endpoint)
		}
	}
	p := &Proxy{
		o: o, rewriter: r, signer: v4.NewSigner(), clock: clock.New(), slots: make(chan struct{}, underWayMax),
		bodies: intake.NewBudget(o.BodyBudget), answers: intake.NewOutbox(intake.DefaultBudget),
	}
	if len(o.Clients) > 0 {
		var known []sigv4.Credential
		for _, c := range o.Clients {
			known = append(known, sigv4.Credential(c))
		}
		p.verifier = sigv4.NewVerifier(known...)
	}
	return p, nil
}

// streamsOf returns the URL of the streams of Amazon's DynamoDB, and for other endpoints their own.
func streamsOf(endpoint, host string) string {
	if strings.HasPrefix(host, "dynamodb.") && strings.Contains(host, ".amazonaws.") {
		return strings.Replace(endpoint, "//dynamodb.", "//streams.dynamodb.", 1)
	}
	return endpoint
}

func newClient(settings *tls.Config) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if settings != nil {
		t.TLSClientConfig = settings
	}
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = connectionsMax, connectionsMax
	t.ResponseHeaderTimeout = answerTimeout
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ServeHTTP answers a request: a POST with X-Amz-Target, or GET / as a health check, which
// fails while the endpoint's clock is in doubt. It refuses a body of more than 16 MB. Of more than
// 1,024 requests at once, some wait.
//
// It refuses all requests of web pages, because it would sign them with its own credentials and has
// no page of its own. The user of a browser can open the health check, at an address or localhost.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	health := r.Method == http.MethodGet && r.URL.Path == "/"
	if browser.Sent(r.Method, r.Header) && !(health && browser.Rules{}.Check(r.Method, r.Host, r.Header) == nil) {
		respond(w, refuse(&dynamo.Error{Code: dynamo.CodeAccessDenied, Message: "web pages cannot use this proxy; call it from a program"}))
		return
	}
	if health {
		w.Header().Set("Content-Type", "text/plain")
		if err := p.rewriter.time.doubt(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, err.(*dynamo.Error).Message+"\n")
			return
		}
		io.WriteString(w, "healthy: mayfly guard proxy\n")
		return
	}
	if r.Method != http.MethodPost || r.Header.Get(headerTarget) == "" {
		respond(w, refuse(&dynamo.Error{Code: dynamo.CodeUnknownOperation, Message: "a request must be a POST with " + headerTarget}))
		return
	}
	var body bytes.Buffer
	hold, err := intake.ReadBody(&body, r, requestMax, func(bytes int64) (*intake.Hold, error) { return p.admit(r, bytes) })
	defer hold.Release()
	var denied *dynamo.Error
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		intake.Refuse(w, r, p.clock.Now(), func() { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	case errors.As(err, &denied):
		intake.Refuse(w, r, p.clock.Now(), func() { respond(w, refuse(denied)) })
	case err != nil: // the client has disconnected, was too slow, or violates HTTP
		w.WriteHeader(http.StatusBadRequest)
	default:
		p.forward(w, r, body.Bytes())
	}
}

// admit decides by the head of a request whether to read its body.
func (p *Proxy) admit(r *http.Request, bytes int64) (*intake.Hold, error) {
	if p.verifier != nil && (bytes > intake.SmallMax || p.bodies.Scarce(bytes)) {
		now := p.clock.Now()
		if err := p.verifier.VerifyHead(signed(r, nil), now, now); err != nil {
			return nil, err
		}
	}
	hold, err := p.bodies.Take(r.Context(), bytes)
	if errors.Is(err, intake.ErrNoRoom) {
		err = errNoRoom
	}
	return hold, err
}

// errNoRoom answers a request for which there is no memory at present. Clients retry after it.
var errNoRoom = &dynamo.Error{Code: dynamo.CodeUnavailable, Message: "mayfly guard proxy has no memory for another large request or answer at present; retry later"}

// forward answers a request whose body has been read.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, body []byte) {
	select {
	case p.slots <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	ctx, end := outlive(r.Context())
	defer end()
	a := p.serve(r.WithContext(ctx), body)
	<-p.slots
	hold, ok := p.answers.Take(ctx, int64(len(a.body)))
	defer hold.Release()
	if _, operation, _ := strings.Cut(r.Header.Get(headerTarget), "."); !ok && intake.ReadsOnly(operation) {
		a = refuse(errNoRoom)
	}
	respond(w, a)
}

// outlive returns a context that ends outliveLimit after ctx, for a request that has been read.
// net/http ends the context of a request when the client closes its side of the connection, although
// the client may still read: one that sends no second request may close it at once. If the client is
// gone, the call of the endpoint soon ends too, and leaves its slot to others.
func outlive(ctx context.Context) (longer context.Context, end func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		limit, release := context.WithTimeout(longer, outliveLimit)
		defer release()
		<-limit.Done()
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// serve returns the answer to a request whose body has been read.
func (p *Proxy) serve(r *http.Request, body []byte) answer {
	if err := p.authenticate(r, body); err != nil {
		if refused, ok := errors.AsType[*dynamo.Error](err); ok {
			return refuse(refused)
		}
		return refuse(&dynamo.Error{Code: dynamo.CodeInternal})
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return refuse(&dynamo.Error{Code: dynamo.CodeSerialization, Message: "a compressed body is not supported: Content-Encoding " + coding})
	}
	to := &target{p, r.Header, p.o.Endpoint, targetPrefix}
	operation, ours := strings.CutPrefix(r.Header.Get(headerTarget), targetPrefix)
	var a answer
	var err error
	if ours {
		a, err = p.rewriter.exchange(r.Context(), operation, body, to.send)
	} else if operation, ours = strings.CutPrefix(operation, streamsPrefix); ours {
		to.endpoint, to.prefix = p.o.Streams, streamsPrefix
		a, err = to.send(r.Context(), operation, body)
	} else {
		return refuse(&dynamo.Error{Code: dynamo.CodeUnknownOperation})
	}
	switch {
	case err == nil:
		return a
	case r.Context().Err() != nil:
		return refuse(&dynamo.Error{Code: dynamo.CodeInternal, Message: "the client closed the connection, and mayfly guard proxy got no answer soon after"})
	}
	p.o.Logger.Warn("the endpoint did not answer", "operation", operation, "endpoint", to.endpoint, "error", err)
	return refuse(&dynamo.Error{Code: dynamo.CodeInternal, Message: "mayfly guard proxy got no answer from " + to.endpoint + ": " + cause(err)})
}

// cause returns the text of a transport error without the request's method and URL.
func cause(err error) string {
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err
	}
	return err.Error()
}

// authenticate checks a client's signature.
func (p *Proxy) authenticate(r *http.Request, body []byte) error {
	if p.verifier == nil {
		return nil
	}
	now := p.clock.Now()
	return p.verifier.Verify(signed(r, body), now, now)
}

// signed returns the parts of a request that its signature covers.
func signed(r *http.Request, body []byte) *sigv4.Request {
	return &sigv4.Request{
		Service: serviceDynamo, Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host, Headers: r.Header, Body: body,
	}
}

// target is the destination of a request's calls.
type target struct {
	*Proxy
	header   http.Header // of the request
	endpoint string
	prefix   string // of X-Amz-Target
}

// send signs a call, sends it and returns the answer.
func (t *target) send(ctx context.Context, operation string, body []byte) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.URL.Path = cmp.Or(r.URL.Path, "/")
	r.Header.Set("Content-Type", typeAmzJSON)
	r.Header.Set(headerTarget, t.prefix+operation)
	r.Header.Set("Accept-Encoding", "identity")
	if wait := t.header.Get(headerWait); wait != "" {
		r.Header.Set(headerWait, wait)
	}
	identity, err := t.o.Credentials.Retrieve(ctx)
	if err != nil {
		return answer{}, fmt.Errorf("no credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := t.signer.SignHTTP(ctx, identity, r, hex.EncodeToString(sum[:]), serviceDynamo, t.o.Region, t.clock.Now()); err != nil {
		return answer{}, err
	}
	response, err := t.o.HTTP.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	got, err := readAnswer(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{status: response.StatusCode, header: response.Header, body: got}, checkSum(response.Header, got)
}

// checkSum refuses an answer that was damaged on the way.
func checkSum(header http.Header, body []byte) error {
	text := header.Get("X-Amz-Crc32")
	if text == "" {
		return nil
	}
	if sum, err := strconv.ParseUint(text, 10, 32); err != nil || uint32(sum) != crc32.ChecksumIEEE(body) {
		return errors.New("the checksum of the answer is wrong")
	}
	return nil
}

// respond writes an answer, with its checksum.
func respond(w http.ResponseWriter, a answer) {
	header := w.Header()
	for _, name := range []string{"Content-Type", "X-Amzn-Requestid", "X-Amzn-Errortype", headerWait, "Retry-After"} {
		if values := a.header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10))
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	w.Write(a.body) // an error means that the client has disconnected, and changes nothing here
}
