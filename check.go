package mayfly

import (
	"context"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Fault is damage found by Check or Salvage: of a file, or a disagreement between parts of a
// database.
type Fault = engine.Fault

// Place is the part of a database that a Fault concerns, in DynamoDB's words.
type Place = engine.Place

// Salvaged counts the parts of a table that Salvage copied.
type Salvaged = engine.Salvaged

// Check checks a directory that no process has open, and changes nothing. It verifies every
// checksum of the files and, if the files are sound, every relation between items, index entries,
// deadlines, descriptions and stream records. It calls report for each fault, and progress as it
// goes. It returns an error if the check could not be completed, such as ErrLocked.
func Check(ctx context.Context, dir string, progress func(done, total int64), report func(Fault)) error {
	if err := engine.Check(ctx, nil, dir, progress, report); err != nil {
		return openError(err)
	}
	return nil
}

// Salvage copies all readable parts of a directory that no process has open into the directory to,
// which must be missing or empty. It does not change dir. It calls lost for each part that is
// missing in the copy, or may be old there.
func Salvage(ctx context.Context, dir, to string, progress func(done, total int64), lost func(Fault)) ([]Salvaged, error) {
	tables, err := engine.Salvage(ctx, nil, dir, to, engine.Instant(clock.New().Millis()), progress, lost)
	if err != nil {
		return nil, openError(err)
	}
	return tables, nil
}
