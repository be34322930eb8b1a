package wire

import (
	"strings"
	"sync"
)

// unknownOperations are the names of operations that clients have called and that are not served,
// each once, up to unknownMost. The answer to such a call has no message, as at AWS, so the log has it.
type unknownOperations struct {
	mu    sync.Mutex
	names map[string]bool
}

const unknownMost = 100

// noteUnknown logs the first call of an operation that is not served. target is the value of
// X-Amz-Target, such as DynamoDB_20120810.ExecuteStatement.
func (s *Server) noteUnknown(target string) {
	_, name, ok := strings.Cut(target, ".")
	if !ok || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return
	}
	u := &s.unknown
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names[name] || len(u.names) >= unknownMost {
		return
	}
	if u.names == nil {
		u.names = map[string]bool{}
	}
	u.names[name] = true
	s.Logger.Warn("a client calls an operation that is not served here; further calls of it are not logged", "operation", name, "see", "docs/differences.md")
}
