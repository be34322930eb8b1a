package mayfly

import (
	"log/slog"

	"github.com/mayflydb/mayfly/internal/front/audit"
)

// Audit describes a log of the requests over HTTP, as JSON lines: who asked for what, from where, and
// whether it was allowed. docs/security.md describes the lines.
type Audit struct {
	// Path is the log's file, or "stderr". Only its owner can read a new file. Default: no log.
	Path string

	// Keys says how the partition keys of items are shown: "none", "plain", or "hashed" with
	// HMAC-SHA256 and Secret. Default: "none".
	Keys string

	// Secret makes the hashes of keys the same in all processes that have it. Default: a random one
	// for each Open. At least 16 bytes.
	Secret string

	// MaxBytes is the size in bytes at which a file is renamed to <Path>.1, and the older ones to .2
	// and so on. Default: 100 MB. Range: from 64 KB.
	MaxBytes int64

	// Keep is the number of older files. Default: 5. Range: 1 to 1,000.
	Keep int
}

// open opens the log, or returns nil if there is none.
func (a Audit) open(log *slog.Logger) (*audit.Log, error) {
	if a.Path == "" {
		return nil, nil
	}
	return audit.Open(a.Path, audit.Options{
		MaxBytes: a.MaxBytes, Keep: a.Keep, Keys: auditKeys[a.Keys], Secret: []byte(a.Secret),
		Failed: func(err error) { log.Error("requests are missing in the audit log", "path", a.Path, "error", err) },
	})
}

// auditKeys are the values of Audit.Keys.
var auditKeys = map[string]audit.Keys{"": audit.KeysNone, "none": audit.KeysNone, "plain": audit.KeysPlain, "hashed": audit.KeysHashed}
