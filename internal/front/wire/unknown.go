package wire

import (
	"strings"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// unknownOperations are the names of operations that clients have called and that are not served,
// each once, up to unknownMost.
type unknownOperations struct {
	mu    sync.Mutex
	names map[string]bool
}

const unknownMost = 100

// unknownOperation returns the answer to a request for an operation that is not served. target is the
// value of X-Amz-Target, such as DynamoDB_20120810.ExecuteStatement. The answer repeats it, unless it
// names no operation: then there is no message, as at AWS.
func (s *Server) unknownOperation(target string) *dynamo.Error {
	api, name, _ := strings.Cut(target, ".")
	if !isWord(api) || !isWord(name) {
		return errUnknownOperation
	}
	s.noteUnknown(name)
	return &dynamo.Error{Code: dynamo.CodeUnknownOperation, Message: "mayfly does not serve " + target + ": see docs/differences.md"}
}

// isWord reports whether s is 1 to 64 ASCII letters, digits and underscores.
func isWord(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// noteUnknown logs the first call of an operation that is not served.
func (s *Server) noteUnknown(name string) {
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
