package reminder

import (
	"context"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
)

// Follow makes a rule follow one record of a stream.
func Follow(ctx context.Context, m *Reminders, name, stream string, record consume.Record) error {
	if _, err := ensure.Table(ctx, m.o.DB, tableSpec); err != nil {
		return err
	}
	return m.rules[name].handle(ctx, stream, []consume.Record{record})
}

// ScanAgain asks for another scan of a rule's table.
func ScanAgain(ctx context.Context, m *Reminders, name, stream string) error {
	return m.rules[name].scanAgain(ctx, stream)
}

// Scan makes a rule scan its table.
func Scan(ctx context.Context, m *Reminders, name, stream string) error {
	return m.rules[name].scan(ctx, stream, item{})
}
