package program

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"

	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// endpointFlags select the endpoint of a command.
type endpointFlags struct {
	Endpoint string `env:"endpoint" help:"Endpoint: http://host:port, or aws for Amazon's service. Default: AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, then http://127.0.0.1:8000." placeholder:"URL"`
	Region   string `env:"region" help:"Region. Default: from the AWS configuration, then us-east-1." placeholder:"REGION"`
	clientFlags
}

// clientFlags are the certificate that a command shows to a server that asks for one.
type clientFlags struct {
	ClientCert string `env:"client-cert" help:"PEM file with a certificate to show to a server that requires one (--tls-client-ca)." placeholder:"FILE"`
	ClientKey  string `env:"client-key" help:"PEM file with the key of --client-cert." placeholder:"FILE"`
}

// load returns the certificate as a list of one, or nothing if there is none.
func (f clientFlags) load() ([]tls.Certificate, error) {
	if f.ClientCert == "" && f.ClientKey == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.ClientCert, f.ClientKey)
	if err != nil {
		return nil, misused(fmt.Errorf("--client-cert %s with --client-key %s: %w", f.ClientCert, f.ClientKey, err), "give the PEM files of a certificate and its key")
	}
	return []tls.Certificate{pair}, nil
}

const (
	endpointAWS     = "aws" // the value of --endpoint that means Amazon's service
	endpointDefault = "http://127.0.0.1:8000"
	regionDefault   = "us-east-1"
)

// endpoint is a server with credentials for it.
type endpoint struct {
	sdk.Endpoint
	clock *endpointClock // nil before the first request for it
}

// endpointClock is a reading of an endpoint's clock.
type endpointClock struct {
	now   time.Time
	asked time.Time // by the machine's clock
	rate  float64   // seconds of the endpoint for one second of the machine
	ours  bool      // the endpoint is a mayfly server, with a clock of its own
}

// connect returns the endpoint with its region and credentials. It sends no request, unless a
// service supplies the credentials. service is the suffix of AWS_ENDPOINT_URL_….
func (f endpointFlags) connect(ctx context.Context, service string) (*endpoint, error) {
	e := &endpoint{}
	if err := e.setURL(f.url(service)); err != nil {
		return nil, err
	}
	// errors already contain the details
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if f.Region != "" {
		options = append(options, config.WithRegion(f.Region))
	}
	if e.isLoopback() {
		options = append(options,
			// a local endpoint needs no credentials from the metadata service, which may be absent
			config.WithEC2IMDSClientEnableState(imds.ClientDisabled),
			config.WithRetryMaxAttempts(1))
	}
	var err error
	if e.Config, err = config.LoadDefaultConfig(ctx, options...); err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if e.Config.HTTPClient == nil { // the SDK sets one only if the environment configures certificates
		e.Config.HTTPClient = awshttp.NewBuildableClient()
	}
	if e.isLoopback() {
		e.Config.HTTPClient = patient{e.Config.HTTPClient}
	}
	certificates, err := f.clientFlags.load()
	if err != nil {
		return nil, err
	}
	if certificates != nil || strings.HasPrefix(e.URL, "https:") {
		e.tune(func(t *http.Transport) {
			withoutHTTP2(t)
			t.TLSClientConfig.Certificates = certificates
		})
	}
	return e, e.complete(ctx)
}

// widen raises the number of reusable connections to the number of parallel calls. The SDK's client
// keeps ten.
func (e *endpoint) widen(calls int) {
	e.tune(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, calls)
		t.MaxIdleConns = max(t.MaxIdleConns, 2*calls)
	})
}

// tune changes the transport of the SDK's client, which has settings for TLS.
func (e *endpoint) tune(change func(*http.Transport)) {
	switch client := e.Config.HTTPClient.(type) {
	case *awshttp.BuildableClient:
		e.Config.HTTPClient = client.WithTransportOptions(change)
	case patient:
		if b, ok := client.HTTPClient.(*awshttp.BuildableClient); ok {
			e.Config.HTTPClient = patient{b.WithTransportOptions(change)}
		}
	}
}

// withoutHTTP2 makes a transport use HTTP/1.1. mayfly answers it faster, and if a server refuses the
// client's certificate, Go's errors for HTTP/2 lack the reason.
func withoutHTTP2(t *http.Transport) {
	t.ForceAttemptHTTP2, t.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.TLSClientConfig.NextProtos = nil // Clone has put "h2" there
}

// tls returns the settings for TLS of the SDK's client, or nil for Go's.
func (e *endpoint) tls() (settings *tls.Config) {
	e.tune(func(t *http.Transport) { settings = t.TLSClientConfig.Clone() })
	return settings
}

// patient is an HTTP client that works with immediate answers, as from this machine. The SDK closes
// the body of a request while net/http still reads it to the end. A closed body of the SDK returns
// io.EOF from WriteTo, which net/http takes for a failure, and cuts the connection with the rest of
// the answer. Without WriteTo net/http uses Read, which may return io.EOF.
type patient struct{ aws.HTTPClient }

func (p patient) Do(request *http.Request) (*http.Response, error) {
	if request.Body != nil && request.Body != http.NoBody {
		request = request.Clone(request.Context())
		request.Body = struct{ io.ReadCloser }{request.Body}
	}
	return p.HTTPClient.Do(request)
}

// errNoCredentials is the error for a machine without credentials.
var errNoCredentials = errors.New("no credentials")

// complete sets defaults that the machine's configuration lacks.
func (e *endpoint) complete(ctx context.Context) error {
	if e.Config.Region == "" {
		if e.IsAWS() {
			return misused(errors.New("no region is configured"), "set --region or AWS_REGION")
		}
		e.Config.Region = regionDefault
	}
	if _, err := e.Config.Credentials.Retrieve(ctx); err != nil {
		if !e.isLoopback() {
			// no other source was configured
			if strings.Contains(err.Error(), "no EC2 IMDS role found") {
				err = nil
			}
			return advise(noCredentials(e.name(), err), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
		}
		e.Config.Credentials = credentials.NewStaticCredentialsProvider("any", "any", "")
	}
	return nil
}

// noCredentials returns the error for an endpoint without credentials. why may be nil.
func noCredentials(endpoint string, why error) error {
	if why == nil {
		return fmt.Errorf("%w for %s", errNoCredentials, endpoint)
	}
	return fmt.Errorf("%w for %s: %w", errNoCredentials, endpoint, concise(why))
}

// url returns the URL of --endpoint. Without it, url returns the one in AWS's environment variables,
// which all AWS clients read, and otherwise the default address of mayfly serve.
func (f endpointFlags) url(service string) string {
	for _, s := range []string{f.Endpoint, os.Getenv("AWS_ENDPOINT_URL_" + service), os.Getenv("AWS_ENDPOINT_URL")} {
		if s != "" {
			return s
		}
	}
	return endpointDefault
}

func (e *endpoint) setURL(text string) error {
	if text == endpointAWS {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !isPort(u.Port()) {
		return misused(fmt.Errorf("invalid endpoint %q", option.Address(text)), "use a URL such as %s, or %s for Amazon's service", endpointDefault, endpointAWS)
	}
	if u.User != nil {
		return misused(fmt.Errorf("endpoint %s has a user or a password, which requests signed for AWS cannot carry", option.Address(text)), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the endpoint's credentials")
	}
	e.URL = strings.TrimRight(text, "/")
	return nil
}

// isPort reports whether a URL may have this port; "" is the scheme's default.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

func (e *endpoint) isLoopback() bool {
	u, err := url.Parse(e.URL)
	return err == nil && e.URL != "" && isLoopback(u.Hostname())
}

// name returns the endpoint's name in messages.
func (e *endpoint) name() string {
	if e.IsAWS() {
		return "Amazon's service in " + e.Config.Region
	}
	return e.URL
}

// now returns the time of the endpoint's clock. mayfly's clock may have been moved; other endpoints
// have the machine's time.
func (e *endpoint) now(ctx context.Context) time.Time {
	e.askClock(ctx)
	passed := float64(time.Since(e.clock.asked)) * e.clock.rate
	return e.clock.now.Add(time.Duration(passed)).UTC()
}

// isMayfly reports whether the endpoint supports mayfly's additions to the AWS APIs.
func (e *endpoint) isMayfly(ctx context.Context) bool {
	e.askClock(ctx)
	return e.clock.ours
}

// askClock reads the endpoint's clock once. Without an answer the machine's clock is used.
func (e *endpoint) askClock(ctx context.Context) {
	if e.clock != nil {
		return
	}
	now := time.Now()
	e.clock = &endpointClock{now: now, asked: now, rate: 1}
	if e.IsAWS() {
		return
	}
	if c, err := e.getClock(ctx); err == nil {
		e.clock = c
	}
}

// getClock reads /_mayfly/clock, with a signed request if credentials are configured.
func (e *endpoint) getClock(ctx context.Context) (*endpointClock, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := e.Ask(ctx, http.MethodGet, "/_mayfly/clock", nil, time.Now())
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var state struct {
		NowMS  int64   `json:"now_ms"`
		Frozen bool    `json:"frozen"`
		Rate   float64 `json:"rate"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 64<<10)).Decode(&state); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK || state.NowMS == 0 {
		return nil, fmt.Errorf("cannot read the endpoint's clock: it answered %s", answer.Status)
	}
	if state.Frozen {
		state.Rate = 0
	}
	return &endpointClock{now: time.UnixMilli(state.NowMS), asked: time.Now(), rate: state.Rate, ours: true}, nil
}
