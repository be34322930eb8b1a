package wire

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// The log names each operation that is not served once, and clients cannot fill it.
func TestUnknownOperationsAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		for _, name := range []string{"DescribeTables", "DescribeLimitsOfMars", "ListTables", "no\nname", strings.Repeat("a", 65), ""} {
			call(s, name, "{}")
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "operation=DescribeTables see=docs/differences.md") || !strings.Contains(lines[1], "operation=DescribeLimitsOfMars") {
		t.Errorf("the log has\n%s", log.String())
	}
	for i := range 1000 {
		call(s, fmt.Sprint("Operation", i), "{}")
	}
	if n := strings.Count(log.String(), "\n"); n != unknownMost {
		t.Errorf("the log has %d lines", n)
	}
}
