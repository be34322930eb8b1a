package program

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/sink/targetfile"
	"github.com/mayflydb/mayfly/target"
)

// targetFlags are the flags about targets of the commands that deliver.
type targetFlags struct {
	Targets  string          `help:"YAML or JSON file that maps ARNs to targets: webhooks, commands, and with mayfly-full brokers and AWS services. See docs/targets.md." placeholder:"FILE"`
	Unmapped mayfly.Unmapped `help:"Targets that the file does not name: accept (their deliveries are recorded in the table mayfly.recorded) or refuse. Default: accept for a server in memory, otherwise refuse." default:"default" placeholder:"refuse"`
}

// openTargets opens the targets of a file, for a server at the addresses self. Without a file there
// are none. The AWS SDK logs to l. The caller calls shut after the last delivery.
func openTargets(ctx context.Context, path string, l *slog.Logger, self ...string) (all []target.Mapping, shut func() error, err error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	all, shut, err = targetfile.Load(ctx, path, targetfile.Options{Kinds: parts.kinds(), Now: time.Now, Self: self, Logger: l})
	missing := (*targetfile.MissingKindError)(nil)
	switch {
	case errors.As(err, &missing):
		return nil, nil, &missingPart{"a target of the kind " + missing.Kind}
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, misused(err, "give the path of an existing file")
	case err != nil:
		return nil, nil, misused(err, "docs/targets.md explains each setting")
	}
	return all, shut, nil
}
