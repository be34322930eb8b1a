// Package options holds the options that all clients of the AWS SDK share.
package options

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/logging"
)

// Prepared returns a copy of a configuration whose clients log to l. If l is nil, they log to the
// configuration's own logger, or else to the default one.
func Prepared(c aws.Config, l *slog.Logger) aws.Config {
	switch {
	case l != nil:
		c.Logger = Logger(l)
	case c.Logger == nil:
		c.Logger = Logger(slog.Default())
	}
	return c
}

// Logger returns the SDK's form of a logger. Without one, the SDK writes lines of its own form to
// standard error, at any level.
func Logger(l *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
		level := slog.LevelDebug
		if class == logging.Warn {
			level = slog.LevelWarn
		}
		l.Log(context.Background(), level, "AWS SDK: "+fmt.Sprintf(format, args...))
	})
}
