// Package functions makes the client of Lambda.
package functions

import (
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/mayflydb/mayfly/internal/sdk/options"
)

// New returns a client that logs to l; see options.Prepared.
func New(c aws.Config, l *slog.Logger, more ...func(*lambda.Options)) *lambda.Client {
	return lambda.NewFromConfig(options.Prepared(c, l), more...)
}
