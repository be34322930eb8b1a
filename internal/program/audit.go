package program

import (
	"log/slog"

	"github.com/mayflydb/mayfly"
	auditlog "github.com/mayflydb/mayfly/internal/front/audit"
)

// auditFlags describe a server's audit log.
type auditFlags struct {
	Audit       string   `help:"File for a line of JSON about each request: who asked for what, from where, and whether it was allowed. stderr is the standard error stream. Default: no log." placeholder:"FILE"`
	AuditKeys   string   `help:"Partition keys in the audit log: none, plain or hashed." enum:"none,plain,hashed" default:"none"`
	AuditSecret string   `help:"Secret of the hashes, at least 16 characters, so that they are the same after a restart. Prefer the environment. Default: a random one." placeholder:"SECRET" secret:""`
	AuditSize   byteSize `help:"Size at which the audit log begins a new file." default:"100MB"`
	AuditKeep   int      `help:"Older files of the audit log to keep." default:"5"`
}

// options returns the log in the library's form. mayfly.Open validates it.
func (f auditFlags) options() mayfly.Audit {
	return mayfly.Audit{Path: f.Audit, Keys: f.AuditKeys, Secret: f.AuditSecret, MaxBytes: int64(f.AuditSize), Keep: f.AuditKeep}
}

// open opens the log, or returns nil if there is none.
func (f auditFlags) open(log *slog.Logger) (*auditlog.Log, error) {
	if f.Audit == "" {
		return nil, nil
	}
	keys := auditlog.Keys(f.AuditKeys)
	if f.AuditKeys == "none" {
		keys = auditlog.KeysNone
	}
	l, err := auditlog.Open(f.Audit, auditlog.Options{
		Keys: keys, Secret: []byte(f.AuditSecret), MaxBytes: int64(f.AuditSize), Keep: f.AuditKeep,
		Failed: func(err error) { log.Error("requests are missing in the audit log", "path", f.Audit, "error", err) },
	})
	if err != nil {
		return nil, misused(err, "mayfly worker --help explains the --audit flags")
	}
	return l, nil
}
