package sinks_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/logging"

	"github.com/mayflydb/mayfly/internal/sdk/functions"
	"github.com/mayflydb/mayfly/internal/sdk/objects"
	"github.com/mayflydb/mayfly/internal/sdk/sinks"
)

// The SDK's lines of every client have the form of our log, also if the configuration has another.
func TestClientsLogAsWeDo(t *testing.T) {
	var ours bytes.Buffer
	l := slog.New(slog.NewJSONHandler(&ours, nil))
	c := aws.Config{Region: "us-east-1", Logger: logging.Nop{}}
	for name, got := range map[string]logging.Logger{
		"s3": objects.New(c, l).Options().Logger, "lambda": functions.New(c, l).Options().Logger, "sqs": sinks.SQS(c, l).Options().Logger,
		"sns": sinks.SNS(c, l).Options().Logger, "kinesis": sinks.Kinesis(c, l).Options().Logger, "firehose": sinks.Firehose(c, l).Options().Logger,
		"eventbridge": sinks.EventBridge(c, l).Options().Logger, "sfn": sinks.StepFunctions(c, l).Options().Logger,
		"ses": sinks.SES(c, l).Options().Logger, "sesv2": sinks.SESv2(c, l).Options().Logger,
	} {
		ours.Reset()
		logging.WithContext(context.Background(), got).Logf(logging.Warn, "failed %d times", 3)
		if !strings.Contains(ours.String(), `"level":"WARN","msg":"AWS SDK: failed 3 times"`) {
			t.Errorf("%s: the log has %q", name, ours.String())
		}
	}
}
