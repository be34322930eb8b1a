// Package sdk makes the clients of the AWS SDK for DynamoDB, its streams and EventBridge Scheduler,
// so that all of them have the same options. The packages below it make the clients of other
// services, so that a program links only the services that it uses.
package sdk

import (
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/internal/sdk/options"
)

// DynamoDB returns a client with a configuration and options.
func DynamoDB(c aws.Config, more ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.NewFromConfig(c, append([]func(*dynamodb.Options){Unchecked}, more...)...)
}

// Unchecked makes a client accept answers without the header x-amz-crc32, which ScyllaDB Alternator
// does not send (scylladb/scylladb#5039). The SDK's check cannot refuse an answer, which has been
// decoded by then. It only writes a line to the log.
func Unchecked(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true }

// Streams returns a client like DynamoDB's, for the streams of tables.
func Streams(c aws.Config, more ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	return dynamodbstreams.NewFromConfig(c, more...)
}

// Scheduler returns a client like DynamoDB's, for EventBridge Scheduler.
func Scheduler(c aws.Config, more ...func(*scheduler.Options)) *scheduler.Client {
	return scheduler.NewFromConfig(c, more...)
}

// Watched returns a copy of a caller's client that logs to l, repeats calls that were answered with
// the status 429, and has more options.
func Watched(c *dynamodb.Client, l *slog.Logger, more ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(c.Options(), append([]func(*dynamodb.Options){Unchecked, func(o *dynamodb.Options) {
		o.Logger, o.Retryer = options.Logger(l), throttled(o.Retryer)
	}}, more...)...)
}

// WatchedStreams is Watched for the streams of tables.
func WatchedStreams(c *dynamodbstreams.Client, l *slog.Logger, more ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	return dynamodbstreams.New(c.Options(), append([]func(*dynamodbstreams.Options){func(o *dynamodbstreams.Options) {
		o.Logger, o.Retryer = options.Logger(l), throttled(o.Retryer)
	}}, more...)...)
}

// WatchedScheduler is Watched for EventBridge Scheduler.
func WatchedScheduler(c *scheduler.Client, l *slog.Logger, more ...func(*scheduler.Options)) *scheduler.Client {
	return scheduler.New(c.Options(), append([]func(*scheduler.Options){func(o *scheduler.Options) {
		o.Logger, o.Retryer = options.Logger(l), throttled(o.Retryer)
	}}, more...)...)
}
