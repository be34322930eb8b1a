package conformance_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/conformance"
)

// dial makes clients of the endpoint at a URL. Nothing is retried: a call that fails is a finding.
func dial(url, region string, pair aws.CredentialsProvider) conformance.Endpoint {
	client := conformance.HTTPClient()
	return conformance.Endpoint{
		URL: url,
		DB: dynamodb.New(dynamodb.Options{
			BaseEndpoint: &url, Region: region, Credentials: pair, HTTPClient: client, Retryer: aws.NopRetryer{}}),
		Streams: dynamodbstreams.New(dynamodbstreams.Options{
			BaseEndpoint: &url, Region: region, Credentials: pair, HTTPClient: client, Retryer: aws.NopRetryer{}}),
	}
}

// dialMore adds clients of the APIs beside DynamoDB's, at the same URL.
func dialMore(e *conformance.Endpoint, url, region string, pair aws.CredentialsProvider, client aws.HTTPClient) {
	config := aws.Config{BaseEndpoint: &url, Region: region, Credentials: pair, HTTPClient: client, Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
	e.Scheduler, e.Events, e.Lambda = scheduler.NewFromConfig(config), eventbridge.NewFromConfig(config), lambda.NewFromConfig(config)
}
