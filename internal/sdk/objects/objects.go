// Package objects makes the client of S3.
package objects

import (
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/mayflydb/mayfly/internal/sdk/options"
)

// New returns a client that logs to l; see options.Prepared.
func New(c aws.Config, l *slog.Logger, more ...func(*s3.Options)) *s3.Client {
	return s3.NewFromConfig(options.Prepared(c, l), more...)
}
