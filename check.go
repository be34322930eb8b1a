package mayfly

import (
	"context"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Fault is damage that Check or Salvage found: of a file, or a disagreement between the parts of a database.
type Fault = engine.Fault

// Place is a part of a database that a Fault concerns, in DynamoDB's words.
type Place = engine.Place

// Salvaged is how much of a table Salvage copied.
type Salvaged = engine.Salvaged

// Check checks a directory that no process has open: every checksum of its files and, if the files are sound, every relation between items,
// index entries, deadlines, descriptions and stream records. It changes nothing. report gets each fault. progress gets how
// much of the work is done. The error says why the check could not be carried to its end, such as ErrLocked.
func Check(ctx context.Context, dir string, progress func(done, total int64), report func(Fault)) error {
	if err := engine.Check(ctx, nil, dir, progress, report); err != nil {
		return openError(err)
	}
	return nil
}

// Salvage copies everything that can be read of a directory that no process has open into a new one, which must be missing or empty. The
// directory itself is not changed. lost gets each part that is missing in the new directory or may be old there.
func Salvage(ctx context.Context, dir, to string, progress func(done, total int64), lost func(Fault)) ([]Salvaged, error) {
	tables, err := engine.Salvage(ctx, nil, dir, to, engine.Instant(clock.New().Millis()), progress, lost)
	if err != nil {
		return nil, openError(err)
	}
	return tables, nil
}
