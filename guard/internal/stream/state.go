package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Name is the name of the strategy.
const Name = "stream"

// Strategy follows one stream.
type Strategy struct {
	*strategy.Reader // of scans

	store   *store
	set     Settings
	local   bool  // the deadline table is this worker's own, and so are its checkpoints
	alone   bool  // no other worker takes part
	horizon int64 // so far ahead an owner arms, ms
	// ms: a reader arms its deadlines this far ahead, because an owner may poll too late for them
	soon    int64
	every   time.Duration // between two polls of an owner in a fleet
	shelves [PartitionsMax]shelf
	// of watchTable: when it last tried to end the oldest division, ms, and the ended divisions whose
	// leases are still stored
	triedEnd int64
	gone     []*division
	cleaner  cleaner
	ended    *ended
	me       string        // this worker in claims
	crews    sync.Map      // by kind of leases, the short names of the workers that share them
	rescan   chan struct{} // has an element when a scan may be wanted
	lag      strategy.Lag
	inserts  *pace.Pace  // rows that scans write into a table at the endpoint
	singly   atomic.Bool // the endpoint has refused a transaction of rows
	all      sync.WaitGroup
	stop     context.CancelCauseFunc
	mu       struct {
		sync.Mutex
		known Settings // as they were last read; set stays as it was at the start
		// when an owner last wanted a scan because its watermark was old, ms; 0: never
		asked int64

		handled map[string]string // by shard, the position of the last handled record, from byOf
	}
}

// IsShare reports whether a row among the leases is of a share. Others are a reader's notes, and
// workers' own.
func IsShare(row string) bool { return consume.IsShard(row) }

// partition is a part of the deadlines as this process knows it: the rows that it has armed, as the
// part's owner or because it found them too late for the owner.
//
// The table may hold several deadlines of an item for a while, and the last is not necessarily the
// right one. A scan may have found one that is older than the stream's, or a worker may have
// written an outdated one after a pause. So all are tried in order: an item's rows are chained, and
// the first one is armed. The wrong ones are refused. A renewal removes its old deadline, so this
// usually costs nothing.
type partition struct {
	s      *Strategy
	d      *division
	number int
	wake   chan struct{} // has an element when the owner has to poll again
	held   atomic.Int64  // rows in memory
	mu     struct {
		sync.Mutex
		owned bool // this worker has the lease
		// ms: the owner has armed all deadlines before this instant, and arms new ones as they are
		// written
		loaded int64
		partly bool    // and some at it; writers arm theirs, and the next poll the others
		next   int64   // ms: when the owner polls next, unless it is woken before
		known  buckets // that are in the directory for certain
		// finished deadlines are recorded, because a query may find them once more
		track bool
		// by key and instant: finished since the owner's last poll began or found no room, and since the
		// one before
		finished [2]map[armed.Entry]finished
		// finished deadlines whose rows the cleaner still has to delete, by key and instant: the tag
		// of the row
		cleaning map[armed.Entry]int64
	}
}

// finished is which rows of a deadline need nothing more. They may still be in the table, until the
// stream shows the removal, or may have been when the table was queried.
type finished struct {
	tag int64  // the row of this record
	by  string // and the rows of records up to this one; "": none
}

// cleaner deletes finished rows from the deadline table: refused ones, inbox rows, and in a
// fleet the rows of removed items. Removals go first. If it fails or dies, the row remains, and a
// later attempt is refused and deletes it some minutes later.
type cleaner struct {
	wake chan struct{} // has an element when there is something to do
	mu   struct {
		sync.Mutex
		all []*row
	}
}

// afterFailure is how soon a deadline table that failed is asked again.
var afterFailure = retry.Policy{First: 50 * time.Millisecond, Most: 5 * time.Second}

// ahead returns how long before the end of its armed range a worker that is alone polls again.
func (s *Strategy) ahead() int64 { return s.horizon / 6 }

// problem returns the problem behind an error of the deadline table or of leases; nil for a
// transient one.
func (s *Strategy) problem(doing string, err error) *table.Problem {
	if ensure.Missing(err) {
		return &table.Problem{Code: table.Misconfigured, Message: fmt.Sprintf("the deadline table %s is gone", s.store.spec.Name),
			Next: "start guard again: it creates a new one and scans the guarded tables", Err: err}
	}
	return s.Problem(doing, err)
}

// persist retries an operation on the deadline table with growing pauses. It returns only ctx's
// error, lease.ErrLost and problems.
func (s *Strategy) persist(ctx context.Context, doing string, do func() error) error {
	return strategy.Retry(ctx, afterFailure, do, func(err error) error {
		if errors.Is(err, lease.ErrLost) {
			return err
		}
		if p := s.problem(doing+" on "+s.store.spec.Name, err); p != nil {
			return p
		}
		return nil
	}, func(err error, after time.Duration) {
		s.Log.Warn("the deadline table does not answer; trying again", "doing", doing, "error", err, "after", after)
	})
}
