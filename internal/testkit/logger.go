package testkit

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Logger writes to the test's log as long as the test runs.
func Logger(t testing.TB) *slog.Logger {
	w := &writerTo{t: t}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
	})
	return slog.New(slog.NewTextHandler(w, nil))
}

type writerTo struct {
	mu    sync.Mutex
	t     testing.TB
	ended bool // guarded by mu
}

// Write implements io.Writer.
func (w *writerTo) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}
