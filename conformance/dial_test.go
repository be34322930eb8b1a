package conformance_test

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/conformance"
)

// retryer retries nothing but a call that was signed by another clock than the endpoint's, once: the
// first one after the clock has moved. Any other call that fails is a finding.
var retryer = retry.NewStandard(func(o *retry.StandardOptions) {
	o.MaxAttempts = 2
	o.Retryables = []retry.IsErrorRetryable{retry.RetryableError{}} // the SDK's error about clocks is one
	o.RateLimiter = ratelimit.None
	o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
})

// dial makes clients of the endpoint at a URL.
func dial(url, region string, pair aws.CredentialsProvider) conformance.Endpoint {
	client := conformance.HTTPClient()
	return conformance.Endpoint{
		URL: url,
		DB: dynamodb.New(dynamodb.Options{
			BaseEndpoint: &url, Region: region, Credentials: pair, HTTPClient: client, Retryer: retryer}),
		Streams: dynamodbstreams.New(dynamodbstreams.Options{
			BaseEndpoint: &url, Region: region, Credentials: pair, HTTPClient: client, Retryer: retryer}),
	}
}

// dialMore adds clients of the APIs beside DynamoDB's, at the same URL.
func dialMore(e *conformance.Endpoint, url, region string, pair aws.CredentialsProvider, client aws.HTTPClient) {
	config := aws.Config{BaseEndpoint: &url, Region: region, Credentials: pair, HTTPClient: client, Retryer: func() aws.Retryer { return retryer }}
	e.CloudWatch, e.Scaling = cloudwatch.NewFromConfig(config), applicationautoscaling.NewFromConfig(config)
	e.Scheduler, e.Events, e.Lambda = scheduler.NewFromConfig(config), eventbridge.NewFromConfig(config), lambda.NewFromConfig(config)
}
