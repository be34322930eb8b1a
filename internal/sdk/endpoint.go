package sdk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
)

// Endpoint is a server, or Amazon's service, with a region and credentials for it.
type Endpoint struct {
	Config aws.Config // with an HTTP client: otherwise each client of the SDK has connections of its own
	URL    string     // without a slash at the end; empty: Amazon's service
}

// IsAWS reports whether the endpoint is Amazon's service.
func (e *Endpoint) IsAWS() bool { return e.URL == "" }

// Base returns the URL for the SDK's clients. It overrides the environment.
func (e *Endpoint) Base() *string {
	if e.IsAWS() {
		return nil
	}
	return aws.String(e.URL)
}

// DynamoDB returns a client of the endpoint.
func (e *Endpoint) DynamoDB() *dynamodb.Client {
	return DynamoDB(e.Config, func(o *dynamodb.Options) { o.BaseEndpoint = e.Base() })
}

// Streams returns a client of the endpoint.
func (e *Endpoint) Streams() *dynamodbstreams.Client {
	return Streams(e.Config, func(o *dynamodbstreams.Options) { o.BaseEndpoint = e.Base() })
}

// Scheduler returns a client of the endpoint.
func (e *Endpoint) Scheduler() *scheduler.Client {
	return Scheduler(e.Config, func(o *scheduler.Options) { o.BaseEndpoint = e.Base() })
}

// Ask sends a signed request for one of mayfly's own paths. now is the instant of the signature. The
// caller closes the answer's body.
func (e *Endpoint) Ask(ctx context.Context, method, path string, body []byte, now time.Time) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	identity, err := e.Config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, identity, r, hex.EncodeToString(sum[:]), "dynamodb", e.Config.Region, now); err != nil {
		return nil, err
	}
	return e.Config.HTTPClient.Do(r)
}
