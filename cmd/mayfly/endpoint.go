package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/logging"
)

// endpointFlags say which endpoint a command talks to.
type endpointFlags struct {
	Endpoint string `help:"Endpoint: http://host:port, or aws for Amazon's service. Default: AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, then http://127.0.0.1:8000." placeholder:"URL"`
	Region   string `help:"Region. Default: from the AWS configuration, then us-east-1." placeholder:"REGION"`
}

const (
	endpointAWS     = "aws" // the value of --endpoint that means Amazon's service
	endpointDefault = "http://127.0.0.1:8000"
	regionDefault   = "us-east-1"
)

// endpoint is what a command talks to, and as whom.
type endpoint struct {
	url    string // without a slash at its end; empty for Amazon's service
	config aws.Config
	clock  *endpointClock // what it said of its clock; nil until it was asked
}

// endpointClock is the clock of an endpoint, and when that was asked for.
type endpointClock struct {
	now   time.Time
	asked time.Time // by the machine's clock
	rate  float64   // seconds that pass there in a second of the machine's
	ours  bool      // the endpoint is mayfly's, and has a clock of its own
}

// connect settles endpoint, region and credentials. It talks to nobody yet, unless the credentials are kept elsewhere. service is what AWS_ENDPOINT_URL_… has in
// its name.
func (f endpointFlags) connect(ctx context.Context, service string) (*endpoint, error) {
	e := &endpoint{}
	if err := e.setURL(f.url(service)); err != nil {
		return nil, err
	}
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // what fails is in the errors
	if f.Region != "" {
		options = append(options, config.WithRegion(f.Region))
	}
	if e.isLoopback() {
		options = append(options,
			config.WithEC2IMDSClientEnableState(imds.ClientDisabled), // who talks to this machine need not be asked by a service that may not be there
			config.WithRetryMaxAttempts(1))
	}
	var err error
	if e.config, err = config.LoadDefaultConfig(ctx, options...); err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if e.isLoopback() {
		if e.config.HTTPClient == nil { // as it is unless the environment says something of certificates
			e.config.HTTPClient = awshttp.NewBuildableClient()
		}
		e.config.HTTPClient = patient{e.config.HTTPClient}
	}
	return e, e.complete(ctx)
}

// widen lets so many calls go on at once without a connection being made for each: the SDK's client keeps ten of them.
func (e *endpoint) widen(calls int) {
	wider := func(b *awshttp.BuildableClient) *awshttp.BuildableClient {
		return b.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, calls)
			t.MaxIdleConns = max(t.MaxIdleConns, 2*calls)
		})
	}
	switch client := e.config.HTTPClient.(type) {
	case nil:
		e.config.HTTPClient = wider(awshttp.NewBuildableClient())
	case *awshttp.BuildableClient:
		e.config.HTTPClient = wider(client)
	case patient:
		if b, ok := client.HTTPClient.(*awshttp.BuildableClient); ok {
			e.config.HTTPClient = patient{wider(b)}
		}
	}
}

// patient is a client that survives answers that come at once, as they do from this machine: the SDK then closes a request's body while net/http still looks for
// its end, and a closed body of the SDK's gives io.EOF from WriteTo, where success is expected; net/http cuts the connection, with the rest of the answer on it. Read by
// Read alone, the body may say io.EOF.
type patient struct{ aws.HTTPClient }

func (p patient) Do(request *http.Request) (*http.Response, error) {
	if request.Body != nil && request.Body != http.NoBody {
		request = request.Clone(request.Context())
		request.Body = struct{ io.ReadCloser }{request.Body}
	}
	return p.HTTPClient.Do(request)
}

// errNoCredentials says that nothing on this machine tells who asks.
var errNoCredentials = errors.New("no credentials")

// complete fills in what the machine's configuration lacks, where it can be done without.
func (e *endpoint) complete(ctx context.Context) error {
	if e.config.Region == "" {
		if e.isAWS() {
			return misused(errors.New("no region is configured"), "set --region or AWS_REGION")
		}
		e.config.Region = regionDefault
	}
	if _, err := e.config.Credentials.Retrieve(ctx); err != nil {
		if !e.isLoopback() {
			if strings.Contains(err.Error(), "no EC2 IMDS role found") { // nothing else was configured
				err = nil
			}
			return advise(noCredentials(e.name(), err), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
		}
		e.config.Credentials = credentials.NewStaticCredentialsProvider("any", "any", "")
	}
	return nil
}

// noCredentials is the error for an endpoint. why may be nil.
func noCredentials(endpoint string, why error) error {
	if why == nil {
		return fmt.Errorf("%w for %s", errNoCredentials, endpoint)
	}
	return fmt.Errorf("%w for %s: %w", errNoCredentials, endpoint, briefly(why))
}

// url is the endpoint that is meant: what the flag says, then the environment as every client of AWS reads it, then where mayfly serve listens.
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
		return misused(fmt.Errorf("invalid endpoint %q", text), "use a URL such as %s, or %s for Amazon's service", endpointDefault, endpointAWS)
	}
	e.url = strings.TrimRight(text, "/")
	return nil
}

// isPort reports whether a URL may have this port; "" is the scheme's own.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

func (e *endpoint) isAWS() bool { return e.url == "" }

func (e *endpoint) isLoopback() bool {
	u, err := url.Parse(e.url)
	return err == nil && e.url != "" && isLoopback(u.Hostname())
}

// name is what messages call the endpoint.
func (e *endpoint) name() string {
	if e.isAWS() {
		return "Amazon's service in " + e.config.Region
	}
	return e.url
}

// base is the endpoint as the SDK's clients take it. It overrules what they find in the environment.
func (e *endpoint) base() *string {
	if e.isAWS() {
		return nil
	}
	return aws.String(e.url)
}

func (e *endpoint) scheduler() *scheduler.Client {
	return scheduler.NewFromConfig(e.config, func(o *scheduler.Options) { o.BaseEndpoint = e.base() })
}

func (e *endpoint) dynamodb() *dynamodb.Client {
	return dynamodb.NewFromConfig(e.config, func(o *dynamodb.Options) { o.BaseEndpoint = e.base() })
}

func (e *endpoint) streams() *dynamodbstreams.Client {
	return dynamodbstreams.NewFromConfig(e.config, func(o *dynamodbstreams.Options) { o.BaseEndpoint = e.base() })
}

// now is the present instant of the endpoint's clock: mayfly has one of its own, which may have been moved; elsewhere it is the machine's.
func (e *endpoint) now(ctx context.Context) time.Time {
	e.askClock(ctx)
	passed := float64(time.Since(e.clock.asked)) * e.clock.rate
	return e.clock.now.Add(time.Duration(passed)).UTC()
}

// isMayfly reports whether the endpoint takes what mayfly adds to AWS's APIs.
func (e *endpoint) isMayfly(ctx context.Context) bool {
	e.askClock(ctx)
	return e.clock.ours
}

// askClock asks once. An endpoint that has no clock, or does not tell it to this caller, goes by the machine's.
func (e *endpoint) askClock(ctx context.Context) {
	if e.clock != nil {
		return
	}
	now := time.Now()
	e.clock = &endpointClock{now: now, asked: now, rate: 1}
	if e.isAWS() {
		return
	}
	if c, err := e.getClock(ctx); err == nil {
		e.clock = c
	}
}

// getClock reads /_mayfly/clock, which wants to be signed where credentials are configured.
func (e *endpoint) getClock(ctx context.Context) (*endpointClock, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/_mayfly/clock", nil)
	if err != nil {
		return nil, err
	}
	identity, err := e.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	empty := sha256.Sum256(nil)
	if err := v4.NewSigner().SignHTTP(ctx, identity, r, hex.EncodeToString(empty[:]), "dynamodb", e.config.Region, time.Now()); err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
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
