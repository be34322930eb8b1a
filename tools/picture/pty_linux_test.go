package main

import (
	"strings"
	"testing"
)

// TestRecord: the program runs in a terminal of the size that was asked for, and its end ends the
// recording.
func TestRecord(t *testing.T) {
	output, err := record(t.Context(), []string{"sh", "-c", "stty size; test -t 1 && echo terminal; exit 0"}, 90)
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	for _, p := range output {
		printed.WriteString(p.text)
	}
	if got, want := printed.String(), "200 90\r\nterminal\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := record(t.Context(), []string{"sh", "-c", "exit 3"}, 90); err == nil {
		t.Error("a program that fails is no error")
	}
}
