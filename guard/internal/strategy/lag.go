package strategy

import (
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/internal/work/consume"
)

// Learning is the time within which a strategy learns of a deadline after its write, with a large
// reserve, if its workers run and the endpoint answers.
const Learning = 5 * time.Minute

// lateRecord is the age in ms from which a record was read late.
const lateRecord = 60_000

// Lag knows when the records of a stream were last read late: after a pause of all workers, or when
// there are more than they can read.
type Lag struct {
	late atomic.Int64 // ms: when a late record was last read; 0: never
}

// Note notes the age of a page of records, in the order of their creation, that are read at an
// instant in ms.
func (l *Lag) Note(now int64, records []consume.Record) {
	if len(records) == 0 || records[0].Dynamodb == nil {
		return
	}
	if at := records[0].Dynamodb.ApproximateCreationDateTime; at != nil && at.UnixMilli() < now-lateRecord {
		l.late.Store(now)
	}
}

// Within reports whether a record was read late in the time before an instant in ms.
func (l *Lag) Within(span time.Duration, now int64) bool {
	late := l.late.Load()
	return late != 0 && late > now-span.Milliseconds()
}
