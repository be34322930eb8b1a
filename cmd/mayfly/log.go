package main

import (
	"io"
	"log/slog"
)

// logFlags choose how and how much is logged. Logs go to standard error.
type logFlags struct {
	LogFormat string     `help:"Format of the log: text or json." enum:"text,json" default:"text"`
	LogLevel  slog.Level `help:"Lowest level to log: debug, info, warn or error." default:"info"`
}

func (f logFlags) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	options.ReplaceAttr = errorText
	return slog.New(slog.NewTextHandler(w, options))
}

// errorText replaces an error by its message. The text handler would print Pebble's errors with a stack trace in the same line.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}
