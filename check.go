package mayfly

import (
	"context"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Fault is damage found by Check or Salvage: of a file, or a disagreement between parts of a
// database. Its String is one line. It has the fields
//
//	File   string  // empty: the files are sound
//	Offset int64   // of the first bad byte or block in File; -1 if unknown
//	Table  string  // empty: the fault concerns no single table
//	Fault  string  // a clause that names the entry and the fault
//	Places []Place // of a damaged file: the parts that may be unreadable
type Fault = engine.Fault

// Place is the part of a database that a Fault concerns, in DynamoDB's words. Its String is one
// line. It has the fields
//
//	Table    string // empty: any table
//	What     string // "items", "stream records", "descriptions of tables", "anything"
//	From, To string // bounds, inclusive: keys as JSON, or shard and sequence number; empty: none
type Place = engine.Place

// Salvaged counts the parts of a table that Salvage copied. It has the fields
//
//	Table          string
//	Items, Records int64
type Salvaged = engine.Salvaged

// Check checks a directory that no process has open, and changes nothing. It verifies every
// checksum of the files and, if the files are sound, every relation between items, index entries,
// deadlines, descriptions and stream records. It calls report for each fault, and progress, unless it
// is nil, as it goes. It returns an error if the check could not be completed, such as ErrLocked.
func Check(ctx context.Context, dir string, progress func(done, total int64), report func(Fault)) error {
	if err := engine.Check(ctx, nil, dir, progress, report); err != nil {
		return openError(err)
	}
	return nil
}

// Salvage copies all readable parts of a directory that no process has open into the directory to,
// which must be missing or empty. It does not change dir. It calls lost for each part that is
// missing in the copy, or may be old there, and progress, unless it is nil, as it goes.
func Salvage(ctx context.Context, dir, to string, progress func(done, total int64), lost func(Fault)) ([]Salvaged, error) {
	tables, err := engine.Salvage(ctx, nil, dir, to, engine.Instant(clock.New().Millis()), progress, lost)
	if err != nil {
		return nil, openError(err)
	}
	return tables, nil
}
