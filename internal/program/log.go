package program

import (
	"fmt"
	"io"
	"log/slog"
)

// logFlags set the form and the level of logs. Logs go to standard error.
type logFlags struct {
	LogFormat string   `env:"log-format" help:"Format of the log: text or json." enum:"text,json" default:"text"`
	LogLevel  logLevel `env:"log-level" help:"Lowest level to log: debug, info, warn or error." default:"info"`
}

// logLevel is the value of --log-level.
type logLevel slog.Level

// UnmarshalText reads a level, such as warn.
func (l *logLevel) UnmarshalText(text []byte) error {
	if err := (*slog.Level)(l).UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is not one of debug, info, warn, error", text)
	}
	return nil
}

func (f logFlags) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(f.LogLevel), ReplaceAttr: errorText}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// errorText replaces an error by its message, without the SDK's words about the request. The text
// handler would print Pebble's errors with a stack trace in the same line.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(concise(err).Error())
	}
	return a
}
