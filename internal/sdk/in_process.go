package sdk

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/smithy-go/middleware"
)

// httpClient is a transport as an HTTP client of the SDK, without the additions of net/http's
// client.
type httpClient struct{ http.RoundTripper }

func (c httpClient) Do(r *http.Request) (*http.Response, error) { return c.RoundTrip(r) }

// InProcess returns the clients of a database over a transport in this process. They are safe for
// concurrent use.
func InProcess(in http.RoundTripper, region string) (*dynamodb.Client, *dynamodbstreams.Client, *scheduler.Client) {
	over := httpClient{in}
	db := dynamodb.New(dynamodb.Options{
		Region:                          region,
		HTTPClient:                      over,
		Credentials:                     aws.AnonymousCredentials{},
		Retryer:                         aws.NopRetryer{},
		DisableValidateResponseChecksum: true,
		APIOptions:                      []func(*middleware.Stack) error{dropNetworking},
	})
	streams := dynamodbstreams.New(dynamodbstreams.Options{
		Region:      region,
		HTTPClient:  over,
		Credentials: aws.AnonymousCredentials{},
		Retryer:     aws.NopRetryer{},
		APIOptions:  []func(*middleware.Stack) error{dropNetworking},
	})
	return db, streams, scheduler.New(scheduler.Options{
		Region:      region,
		HTTPClient:  over,
		Credentials: aws.AnonymousCredentials{},
		Retryer:     aws.NopRetryer{},
		APIOptions:  []func(*middleware.Stack) error{dropNetworking},
	})
}

// The SDK's middlewares for a network: user agent, endpoint, signature, compression, retries.
// Without them a call costs less than half. Everything that callers rely on stays: validation,
// serialization, interceptors, typed errors, request ids.
var (
	buildNetworking    = []string{"ClientRequestID", "UserAgent", "RecursionDetection", "SetCredentialSourceMiddleware"}
	finalizeNetworking = []string{
		"DisableAcceptEncodingGzip", "spanRetryLoop", "Retry", "RetryMetricsHeader", "ResolveAuthScheme", "GetIdentity", "ResolveEndpointV2", "disableHTTPS",
		"DiscoverEndpoint", "ComputePayloadHash", "setLegacyContextSigningOptions", "Signing",
	}
	deserializeNetworking = []string{"RecordResponseTiming"}
)

// dropNetworking removes these middlewares from an operation's stack. It ignores the error of
// Remove for a missing one, since the services differ in a few.
func dropNetworking(stack *middleware.Stack) error {
	for _, id := range buildNetworking {
		_, _ = stack.Build.Remove(id)
	}
	for _, id := range finalizeNetworking {
		_, _ = stack.Finalize.Remove(id)
	}
	for _, id := range deserializeNetworking {
		_, _ = stack.Deserialize.Remove(id)
	}
	return nil
}
