// Package sinks makes the clients of the services that targets deliver to, and of Kinesis as a source.
// Each logs to l; see options.Prepared.
package sinks

import (
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/mayflydb/mayfly/internal/sdk/options"
)

// SQS returns a client for SQS.
func SQS(c aws.Config, l *slog.Logger, more ...func(*sqs.Options)) *sqs.Client {
	return sqs.NewFromConfig(options.Prepared(c, l), more...)
}

// SNS returns a client for SNS.
func SNS(c aws.Config, l *slog.Logger, more ...func(*sns.Options)) *sns.Client {
	return sns.NewFromConfig(options.Prepared(c, l), more...)
}

// Kinesis returns a client for Kinesis Data Streams.
func Kinesis(c aws.Config, l *slog.Logger, more ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.NewFromConfig(options.Prepared(c, l), more...)
}

// Firehose returns a client for Firehose.
func Firehose(c aws.Config, l *slog.Logger, more ...func(*firehose.Options)) *firehose.Client {
	return firehose.NewFromConfig(options.Prepared(c, l), more...)
}

// EventBridge returns a client for EventBridge.
func EventBridge(c aws.Config, l *slog.Logger, more ...func(*eventbridge.Options)) *eventbridge.Client {
	return eventbridge.NewFromConfig(options.Prepared(c, l), more...)
}

// StepFunctions returns a client for Step Functions.
func StepFunctions(c aws.Config, l *slog.Logger, more ...func(*sfn.Options)) *sfn.Client {
	return sfn.NewFromConfig(options.Prepared(c, l), more...)
}

// SES returns a client for SES.
func SES(c aws.Config, l *slog.Logger, more ...func(*ses.Options)) *ses.Client {
	return ses.NewFromConfig(options.Prepared(c, l), more...)
}

// SESv2 returns a client for the second version of SES.
func SESv2(c aws.Config, l *slog.Logger, more ...func(*sesv2.Options)) *sesv2.Client {
	return sesv2.NewFromConfig(options.Prepared(c, l), more...)
}
