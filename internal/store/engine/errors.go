package engine

import (
	"errors"
	"fmt"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// Facts that the engine reports. The service translates them into errors of the API.
var (
	ErrTableExists   = errors.New("a table of that name exists")
	ErrTableNotFound = errors.New("no such table")
	// ErrTableCreating matches ErrTableNotFound: only descriptions show the table.
	ErrTableCreating   = fmt.Errorf("%w yet: it is being restored or imported", ErrTableNotFound)
	ErrBackupNotFound  = errors.New("no such backup")
	ErrBackupInUse     = errors.New("a table is being restored from the backup")
	ErrTooManyBackups  = fmt.Errorf("there are %d backups, the most that a database can have", backupsMax)
	ErrTooManyRestores = fmt.Errorf("%d tables are being restored, the most at once", restoresMax)
	ErrJobNotFound     = errors.New("no such export or import")
	ErrTooManyJobs     = fmt.Errorf("there are %d exports and imports in progress, the most that a database can remember", jobsMax)
	ErrNoHistory       = errors.New("the table has no history: point-in-time recovery is off")
	ErrRestoreInstant  = errors.New("the instant lies outside of the table's history")
	ErrCollectionFull  = errors.New("the item collection would exceed its greatest size")
	ErrRefused         = errors.New("a write of the batch was refused") // see each Write's Err
	ErrSameKey         = errors.New("two writes of one batch have the same key")
	ErrStreamNotFound  = errors.New("no such stream")
	ErrShardNotFound   = errors.New("no such shard")
	ErrTrimmed         = errors.New("the position has been trimmed")
	ErrIndexesUsedUp   = errors.New("the table has had 65,535 indexes, the most that one can have in its life")
	ErrDiskFull        = errors.New("the disk is full: only deletes are accepted until space is freed")
	ErrClosed          = errors.New("the database is closed")
	ErrStopped         = errors.New("the store has stopped after a failed write")
	ErrFormat          = errors.New("unknown storage format")
	ErrCorrupt         = errors.New("corrupt store")
	ErrAhead           = errors.New("the last time on disk is ahead of the machine's clock")
)

// KeyProblem is a class of invalid key attributes.
type KeyProblem int

const (
	KeyMissing          KeyProblem = iota // the attribute is not in the item
	KeyWrongType                          // its kind is not the schema's
	KeyEmpty                              // an empty string or binary
	KeyPartitionTooLong                   // a partition key over 2,048 bytes
	KeySortTooLong                        // a sort key over 1,024 bytes
)

// KeyError reports a key that its schema does not allow.
type KeyError struct {
	Attribute string
	Index     string // the secondary index whose key it is; empty: the table's
	Problem   KeyProblem
	Want, Got dynamo.Kind // for KeyWrongType and KeyEmpty
}

func (e *KeyError) Error() string {
	subject := "key"
	if e.Index != "" {
		subject = "key of index " + e.Index
	}
	switch e.Problem {
	case KeyMissing:
		return fmt.Sprintf("%s: attribute %s is missing", subject, e.Attribute)
	case KeyWrongType:
		return fmt.Sprintf("%s: attribute %s has kind %v, not %v", subject, e.Attribute, e.Got, e.Want)
	case KeyEmpty:
		return fmt.Sprintf("%s: attribute %s is empty", subject, e.Attribute)
	case KeyPartitionTooLong:
		return fmt.Sprintf("%s: the partition key is too long", subject)
	default:
		return fmt.Sprintf("%s: the sort key is too long", subject)
	}
}

// IndexError reports a read of an index that has been removed or is still under construction.
type IndexError struct {
	Index    string
	Building bool
}

func (e *IndexError) Error() string {
	if e.Building {
		return fmt.Sprintf("index %s is still being built", e.Index)
	}
	return fmt.Sprintf("there is no index %s", e.Index)
}

// corrupt returns an error that marks the store's own data as wrong.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
