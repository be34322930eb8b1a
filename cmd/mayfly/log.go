package main

import (
	"io"
	"log/slog"
)

// logFlags choose how and how much is logged. Logs go to standard error.
type logFlags struct {
	LogFormat string     `help:"Form of the log: text or json." enum:"text,json" default:"text"`
	LogLevel  slog.Level `help:"Least level that is logged: debug, info, warn or error." default:"info"`
}

func (f logFlags) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
