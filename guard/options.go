package guard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/target"
)

// Strategy is how guard learns of deadlines.
type Strategy string

// The strategies. Auto takes stream where the table has one with both images, else index where it has an index of deadlines, else scan.
// An index is one of deadlines where IndexName says so, or Init has made it, or it has one of the published designs.
const (
	Auto     Strategy = ""
	Stream   Strategy = "stream"
	Index    Strategy = "index"
	Schedule Strategy = "schedule"
	Scan     Strategy = "scan"
)

// Options says what is guarded, and how. DB and Table must be set.
type Options struct {
	DB      *dynamodb.Client        // the table's endpoint
	Streams *dynamodbstreams.Client // the same endpoint's streams; for the stream and schedule strategies

	Table     string // the table that is guarded
	Attribute string // its TTL attribute: a number of epoch seconds. Default: the one of the table's native TTL
	// Version names an attribute that changes with each write of the item: a removal is conditional on it too. Default: none.
	Version string

	Strategy Strategy

	// Deadlines is where the stream strategy keeps the deadlines it knows of: a client of an embedded database (mayfly.DB.DynamoDB) for one worker, or DB itself for
	// a fleet. Default: DB.
	Deadlines *dynamodb.Client

	// Scheduler is the EventBridge Scheduler that the schedule strategy makes its schedules with.
	Scheduler *scheduler.Client
	// Role is the ARN of the role that these schedules run as: it may delete the table's items. mayfly takes any.
	Role string
	// DeadLetters is the ARN of the queue of Amazon SQS that gets the deletions which these schedules could not make. Default: none.
	DeadLetters string

	// IndexName is the secondary index of the index strategy. Default: found by its shape: sort key Attribute.
	IndexName string
	// Granularity is the length of an expiration window where the index's partition key holds windows: whole seconds. Default: a minute.
	Granularity time.Duration
	// Shards is the number of shards, "0" to "n-1", that the index's partition key holds, or that end a window's name ("<window>#<shard>"). Default: 1 for windows; it must be set
	// for an index of shards.
	Shards int
	// Period is how often the index is asked, and how far ahead. Default: 5 s. Range: 1 s to an hour.
	Period time.Duration

	// Segments is into how many parts a scan is divided. Default: 4. Range: 1 to 1,000,000.
	Segments int
	// MaxRCU bounds what scans and sweeps read, in read units a second. Default: 100 for the scan strategy, else no bound.
	MaxRCU float64

	// MaxWCU bounds what this worker's removals write, in write units a second, over table and indexes; each worker of a fleet has its own. Default: no bound.
	MaxWCU float64
	// Concurrency is how many removals are under way at most. Default: 64. Range: 1 to 1,024.
	Concurrency int
	// Batch puts up to so many removals into one transaction, each conditional; 0 removes one by one. Range: 0 to 100; the published sweepers have 25.
	Batch int
	// DryRun removes nothing, and reports what would go.
	DryRun bool

	// Mark names an attribute that is set, right before the removal, to the TTL value that armed it. In the stream's REMOVE record, a mark that equals the TTL
	// tells an expiry from a deletion. Default: none.
	Mark string
	// Archive gets each item before it is removed. Default: nobody. Where an item is changed between the two and keeps its deadline, Archive gets it as it went in a final delivery, after the
	// removal: that one is lost if the process dies in between. With a Version that every write changes, such an item is not removed, and archived anew by whoever learns of its change.
	Archive target.Target

	// MaxSkew is the most by which the local clock may be away from the endpoint's. Beyond it, Run ends with an error. Default: 5 s. Range: 100 ms to an hour.
	MaxSkew time.Duration
	// Lease is the time after which a silent worker's share is taken over by the others: that takes half as long again at most. All workers have to have the same. Default: 6 s. Range: 1 s to an hour.
	Lease time.Duration
	// Owner is this worker's name among the others. It must be one process's only, and a new one's after a restart: two of a name take each other's leases for their own. Default: random.
	Owner string
	// Alone says that no other worker guards the table, so that shares are taken at once and no leases are renewed.
	Alone bool

	// Observe is told of what happens. It is called from many goroutines and must not block. Default: nobody.
	Observe func(Event)
	// Progress is told how far what takes a while is: scans, catching up. It is called for each page that is read, and must not block. Default: nobody.
	Progress func(Progress)
	Logger   *slog.Logger // Default: nothing is logged.

	clock *clock.Clock // the local clock; tests move it. nil: the machine's
	trust bool         // clock is the endpoint's: tests move both
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Deadlines == nil {
		o.Deadlines = o.DB
	}
	setDefault(&o.Granularity, time.Minute)
	setDefault(&o.Period, 5*time.Second)
	setDefault(&o.Segments, 4)
	setDefault(&o.Concurrency, 64)
	setDefault(&o.MaxSkew, 5*time.Second)
	setDefault(&o.Lease, 6*time.Second)
	if o.Owner == "" {
		o.Owner = rand.Text() // one name for all that this worker shares with others
	}
	if o.MaxRCU == 0 && o.Strategy == Scan {
		o.MaxRCU = 100
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// check reports all that is wrong with the options, which have their defaults.
func (o Options) check() error {
	var all []error
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	complain(o.DB == nil, "DB: missing client")
	complain(o.Table == "", "Table: missing")
	complain((o.Strategy == Stream || o.Strategy == Schedule) && o.Streams == nil, "Streams: the %s strategy needs a client", o.Strategy)
	complain(o.Strategy == Schedule && o.Scheduler == nil, "Scheduler: the schedule strategy needs a client")
	complain(o.Strategy == Schedule && o.Role == "", "Role: the schedule strategy needs the ARN of the role that its schedules run as")
	complain(o.Strategy == Schedule && (o.Mark != "" || o.Archive != nil), "Mark, Archive: with the schedule strategy the Scheduler deletes items and neither marks nor archives them")
	complain(o.Granularity < time.Second || o.Granularity > 24*time.Hour || o.Granularity%time.Second != 0, "Granularity: %v is not whole seconds from 1s to 24h", o.Granularity)
	complain(o.Period < time.Second || o.Period > time.Hour, "Period: %v is not between 1s and 1h", o.Period)
	complain(o.Shards < 0 || o.Shards > 10_000, "Shards: %d is not between 1 and 10,000", o.Shards)
	complain(o.Segments < 1 || o.Segments > 1_000_000, "Segments: %d is not between 1 and 1,000,000", o.Segments)
	complain(o.MaxRCU < 0, "MaxRCU: %v is negative", o.MaxRCU)
	complain(o.MaxWCU < 0, "MaxWCU: %v is negative", o.MaxWCU)
	complain(o.Concurrency < 1 || o.Concurrency > 1024, "Concurrency: %d is not between 1 and 1,024", o.Concurrency)
	complain(o.Batch < 0 || o.Batch > 100, "Batch: %d is not between 0 and 100", o.Batch)
	complain(o.Mark != "" && (o.Mark == o.Attribute || o.Mark == o.Version), "Mark: %q is an attribute with another use", o.Mark)
	complain(o.Batch > 0 && (o.Mark != "" || o.Archive != nil), "Batch: a mark or an archive needs removals one by one")
	complain(o.MaxSkew < 100*time.Millisecond || o.MaxSkew > time.Hour, "MaxSkew: %v is not between 100ms and 1h", o.MaxSkew)
	complain(o.Lease < time.Second || o.Lease > time.Hour, "Lease: %v is not between 1s and 1h", o.Lease)
	return errors.Join(all...)
}
