package main

import (
	"fmt"
	"strings"
	"testing"
)

// tracedError is an error as the storage engine's are: in detail it has a stack trace.
type tracedError struct{}

func (tracedError) Error() string { return "no room" }

func (tracedError) Format(s fmt.State, _ rune) {
	text := "no room"
	if s.Flag('+') {
		text += "\nstack trace"
	}
	_, _ = s.Write([]byte(text))
}

// An error is logged as its message, without a stack trace.
func TestErrorsInTheLog(t *testing.T) {
	for format, want := range map[string]string{"text": `cause="no room"`, "json": `"cause":"no room"`} {
		var logged strings.Builder
		logFlags{LogFormat: format}.logger(&logged).Warn("failed", "cause", tracedError{}, "n", 1)
		if !strings.Contains(logged.String(), want) {
			t.Errorf("%s: %s", format, logged.String())
		}
	}
}
