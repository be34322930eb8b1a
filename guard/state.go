package guard

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/backlog"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/clock"
)

// Guard removes the expired items of one table.
type Guard struct {
	o    Options // Run finds Attribute if it is missing
	log  *slog.Logger
	wall *clock.Clock // the machine's
	// the same, but monotonic: it does not follow steps of the machine's clock
	local     *clock.Clock
	endpoint  *endpointClock
	db        *dynamodb.Client        // watched; with the caller's retries
	once      *dynamodb.Client        // watched; without any
	streams   *dynamodbstreams.Client // watched; nil without Options.Streams
	watched   []*watchedCredentials   // of these, and of the Scheduler's client
	table     *table.Table            // found by Run
	armed     *armed.Set
	pace      *pace.Pace
	bad       *messageFilter // values that are no deadlines
	failed    *messageFilter // rejected removals that were logged
	given     *givenUp
	spared    spared
	allowance *allowance
	undo      *journal.Writer // nil without Options.Undo
	passing   oncePerMinute   // logged causes of transient failures
	counts    counts
	totals    totals
	failures  chan *Problem
	items     atomic.Int64 // of the table, as the endpoint has last counted
	waits     atomic.Int64 // ns: how long a wait GetRecords asks for at most; see boundWait

	// what answers have shown of the endpoint
	noTransactions    atomic.Bool
	free              atomic.Bool // transactions cost no more than single removals, as at a mayfly
	noConsistentReads atomic.Bool // of leases; see weak_reads.go

	readiness    readiness
	first        firstPass
	troubles     troubles
	checkEach    time.Duration  // between two checks of the table; tests change it
	countMost    backlog.Limits // tests change it
	firstPassMin time.Duration  // tests change it
	patience     time.Duration  // prepareLimit; tests change it

	outcomesDropped bool // by the journal, and that was logged; of its writer's goroutine

	// Attribute comes from the native TTL; set before a strategy runs
	attributeFound bool
}
