package guard

import (
	"cmp"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/target"
)

// Strategy is how guard learns of deadlines.
type Strategy string

// The strategies. Auto is Stream if the table has a stream with both images, else Index if it has
// an index of deadlines, else Scan. An index of deadlines is one that IndexName names, that Init
// has made, or that has a published design.
const (
	Auto     Strategy = ""
	Stream   Strategy = "stream"
	Index    Strategy = "index"
	Schedule Strategy = "schedule"
	Scan     Strategy = "scan"
)

// The names of guard's own tables, by default.
const (
	LeasesTable    = lease.TableName  // shares of the work, progress, and the workers' reports
	DeadlinesTable = stream.TableName // deadlines that the stream strategy knows
)

// Tables describe guard's own tables at the table's endpoint. All workers of a table, and Look, must
// use the same names. The other settings are for tables that guard makes; a table that exists keeps
// its own.
type Tables struct {
	Leases    string // Default: LeasesTable
	Deadlines string // Default: DeadlinesTable

	Tags   map[string]string // Default: none
	KMSKey string            // id, alias or ARN of the key of the encryption. Default: DynamoDB's own
	// provisioned capacity units of each table, both or none. Default: billed on demand
	ReadUnits, WriteUnits int64
}

// settings returns the settings of a table.
func (t Tables) settings(name string) ensure.Settings {
	return ensure.Settings{Name: name, Tags: t.Tags, KMSKey: t.KMSKey, ReadUnits: t.ReadUnits, WriteUnits: t.WriteUnits}
}

func (t Tables) withDefaults() Tables {
	t.Leases = cmp.Or(t.Leases, LeasesTable)
	t.Deadlines = cmp.Or(t.Deadlines, DeadlinesTable)
	return t
}

const (
	tagsMost     = 50 // of a table
	tagKeyMost   = 128
	tagValueMost = 256
)

// check reports all that is wrong with the tables of a guard of the named table.
func (t Tables) check(all *option.Complaints, guarded string) {
	for _, own := range []struct{ option, name string }{{"Tables.Leases", t.Leases}, {"Tables.Deadlines", t.Deadlines}} {
		all.AddIf(!constraint.IsTable(own.name), own.option, "%q is not 3 to 255 letters, digits, dots, dashes and underscores", own.name)
		all.AddIf(own.name == guarded, own.option, "%q is the guarded table", own.name)
	}
	all.AddIf(t.Leases == t.Deadlines, "Tables.Deadlines", "%q is the table of leases", t.Deadlines)
	all.AddIf(t.ReadUnits < 0 || t.WriteUnits < 0 || (t.ReadUnits == 0) != (t.WriteUnits == 0), "Tables.ReadUnits", "%d read and %d write units are not both at least 1", t.ReadUnits, t.WriteUnits)
	all.AddIf(len(t.Tags) > tagsMost, "Tables.Tags", "%d are more than %d", len(t.Tags), tagsMost)
	for _, key := range slices.Sorted(maps.Keys(t.Tags)) {
		all.AddIf(key == "" || utf8.RuneCountInString(key) > tagKeyMost || strings.HasPrefix(key, "aws:"), "Tables.Tags", "key %q is not 1 to %d characters without the prefix aws:", key, tagKeyMost)
		all.AddIf(utf8.RuneCountInString(t.Tags[key]) > tagValueMost, "Tables.Tags", "the value of %q has more than %d characters", key, tagValueMost)
	}
}

// Options configure a guard. DB and Table must be set.
type Options struct {
	DB *dynamodb.Client // the table's endpoint
	// the same endpoint's streams; for the stream and schedule strategies
	Streams *dynamodbstreams.Client

	Table string // the table that is guarded
	// its TTL attribute: a number of epoch seconds. Default: the attribute of its native TTL
	Attribute string
	// Version names an attribute that changes with each write of the item. Removals are conditional
	// on it too. Default: none.
	Version string

	Strategy Strategy

	// Deadlines is the client of the store for the stream strategy's deadlines: an embedded
	// database (mayfly.DB.DynamoDB) for one worker, or DB itself for a fleet. Default: DB.
	Deadlines *dynamodb.Client

	// Tables are guard's own tables.
	Tables Tables

	// Scheduler is the EventBridge Scheduler that the schedule strategy makes its schedules with.
	Scheduler *scheduler.Client
	// Role is the ARN of the role that these schedules run as. It may delete the table's items.
	// mayfly accepts any.
	Role string
	// DeadLetters is the ARN of the SQS queue for the deletions that these schedules could not
	// make. Default: none.
	DeadLetters string

	// IndexName is the secondary index of the index strategy. Default: the index with the sort key
	// Attribute.
	IndexName string
	// Granularity is the length of a window in the index's partition key: whole seconds. Default: a
	// minute.
	Granularity time.Duration
	// Shards is the number of shards in the index's partition key, "0" to "n-1" or
	// "<window>#<shard>". Default: 1 for windows; an index of shards needs it, unless Init has
	// stored it.
	Shards int
	// Period is how often the index is asked, and how far ahead. Default: 5 s. Range: 1 s to an
	// hour.
	Period time.Duration

	// Partitions is over how many partitions the stream strategy divides its deadlines, at least: a
	// power of two up to 256. As many workers can share them, and Amazon allows 4,000 deadlines per
	// second to be written for each one whose deadlines are in the same minute. Default: as many as
	// the table has already, or 16. The number grows while other workers run; it never shrinks.
	Partitions int

	// Segments is into how many parts a scan is divided: as many workers can share it. The stream
	// strategy divides its scan into at most 256, and a scan that has begun keeps its number. Default:
	// 32 for the stream strategy, which writes a checkpoint for each page, else 4, because a scan that
	// is repeated for ever writes one for each part every three seconds. Range: 1 to 1,000,000.
	Segments int
	// MaxRCU limits the reads of scans and sweeps, in read units per second, of all workers that share
	// the table together. Default: 100 for the scan strategy, else no limit.
	MaxRCU float64

	// AuditRCU limits the reads of the audit, in read units per second. The audit is a slow scan of
	// the whole table that finds overdue items which the strategy did not know of; see Missed. One
	// worker makes it at a time. The scan strategy needs none. Default: 5, or MaxRCU if that is
	// less. Negative: there is no audit.
	//
	// A pass reads the table once, for half a read unit for each 4 KB. With s the size of the table
	// in GB, it takes s * 131,072 / AuditRCU seconds, and a month costs at most
	//
	//	min(s * 131,072 / AuditEvery, AuditRCU) * 2,628,000 s * PriceRead / 1,000,000
	AuditRCU float64
	// AuditEvery is the least time between the beginnings of two passes of the audit. Default: 24 h.
	// Range: a minute to a year.
	AuditEvery time.Duration

	// MaxWCU limits the writes of this worker's removals, in write units per second, over table and
	// indexes. Each worker of a fleet has its own limit. Default: none.
	MaxWCU float64
	// AcceptOverdue accepts that so many items are overdue when guard begins, or any number if it is
	// negative. Without it, guard ends with a problem, ManyOverdue, before its first removal if more
	// than 1,000 items, or 10 % of those read, are overdue by more than a day, or if any are overdue
	// and the table's own TTL does not use Attribute. It counts up to 100,000 items, for up to 10 s,
	// and estimates the rest. Guard asks once for each table and attribute: it notes the answer in
	// the table mayfly.leases. StreamRecords and dry runs count nothing.
	AcceptOverdue int64
	// MaxRate limits this worker's removals per second. Default: none.
	MaxRate float64
	// MaxRemovals ends Run with a problem, Limit, once this worker has removed so many items. A
	// removal whose answer was lost counts. Default: none.
	MaxRemovals int64
	// Removals counts the removals towards MaxRemovals together with other guards. Default: each
	// guard counts its own.
	Removals *Removals
	// Concurrency is how many removals are under way at most. Default: 64. Range: 1 to 1,024.
	Concurrency int
	// Batch is how many due items a transaction removes at most, each on its condition; 0 removes one
	// by one. Range: 0 to 100, or BatchFree, which the stream strategy also applies to its own table.
	Batch int
	// DryRun removes nothing, and reports the removals that would happen.
	DryRun bool

	// Mark names an attribute that is set, right before the removal, to the TTL value that armed
	// it. In the stream's REMOVE record, a mark that equals the TTL distinguishes an expiry from a
	// deletion. Default: none.
	Mark string
	// Archive gets each item before its removal. Default: none. If an item changes between the two
	// and keeps its deadline, Archive gets its last state in a final delivery after the removal,
	// which is lost if the process dies in between. With a Version that every write changes, such
	// an item is not removed, and archived anew when a worker finds its change.
	Archive target.Target

	// Undo gets the image of each item before its removal, so that PutBack can restore it. While it
	// cannot be written, nothing is removed. Default: none.
	Undo *journal.Journal

	// MaxSkew is the maximum difference between the local clock and the endpoint's. Beyond it, Run
	// refuses to begin. Later, removals wait until the clocks agree again; see Guard.Problems. No
	// Date makes a removal earlier than that by the machine's monotonic clock. Default: 5 s. Range:
	// 100 ms to an hour.
	MaxSkew time.Duration
	// LocalClock takes this machine's clock for the endpoint's, which then needs no Date headers. If
	// the two differ, removals are early or late by the difference. If this machine's clock jumps by
	// more than MaxSkew, removals wait for 2 s.
	LocalClock bool
	// Lease is the time after which other workers take over a silent worker's share; they need up
	// to half as long again. All workers must use the same value. Default: 6 s. Range: 1 s to an
	// hour.
	Lease time.Duration
	// Owner is this worker's name, unique to the process: two workers of one name share their
	// leases by mistake, also across a restart. Default: random.
	Owner string
	// Alone promises that no other worker guards the table, so shares are taken at once and leases
	// are not renewed.
	Alone bool

	// Observe is called with each event, from many goroutines. It must not block. Default: none.
	Observe func(Event)
	// Progress is called with the progress of scans and of catching up, for each page read. It must
	// not block. Default: none.
	Progress func(Progress)
	Logger   *slog.Logger // Default: nothing is logged.

	clock *clock.Clock // the local clock; tests move it. nil: the machine's
}

// withDefaults returns the options with the default of each missing field.
func (o Options) withDefaults() Options {
	o.Deadlines = cmp.Or(o.Deadlines, o.DB)
	o.Tables = o.Tables.withDefaults()
	setDefault(&o.Granularity, time.Minute)
	setDefault(&o.Period, 5*time.Second)
	setDefault(&o.Concurrency, 64)
	setDefault(&o.MaxSkew, 5*time.Second)
	setDefault(&o.Lease, 6*time.Second)
	setDefault(&o.AuditRCU, auditUnits)
	setDefault(&o.AuditEvery, 24*time.Hour)
	o.Owner = cmp.Or(o.Owner, rand.Text()) // one name for all that this worker shares with others
	if o.Strategy == Scan {
		setDefault(&o.MaxRCU, scanUnits)
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// limited reports whether the number of removals, or their rate, has a limit.
func (o Options) limited() bool { return o.MaxRate > 0 || o.MaxRemovals > 0 }

var errScheduleLimits = &option.Error{Options: []string{"MaxRate", "MaxRemovals"}, Err: errors.New("with the schedule strategy the Scheduler deletes items, without such limits")}

const (
	scanUnits  = 100 // the default of MaxRCU for the scan strategy
	auditUnits = 5   // the default of AuditRCU
	segments   = 4   // the default of Segments, except for the stream strategy

	auditEveryMost = 365 * 24 * time.Hour
)

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// check reports all that is wrong with the options, which have their defaults.
func (o Options) check() error {
	var all option.Complaints
	all.AddIf(o.DB == nil, "DB", "missing client")
	all.AddIf(o.Table == "", "Table", "missing")
	all.AddIf((o.Strategy == Stream || o.Strategy == Schedule) && o.Streams == nil, "Streams", "the %s strategy needs a client", o.Strategy)
	all.AddIf(o.Strategy == Schedule && o.Scheduler == nil, "Scheduler", "the schedule strategy needs a client")
	all.AddIf(o.Strategy == Schedule && o.Role == "", "Role", "the schedule strategy needs the ARN of the role that its schedules run as")
	all.AddIf(o.Strategy == Schedule && o.Undo != nil, "Undo", "with the schedule strategy the Scheduler deletes items and writes no journal")
	if o.Strategy == Schedule && (o.Mark != "" || o.Archive != nil) {
		all.Join(&option.Error{Options: []string{"Mark", "Archive"}, Err: errors.New("with the schedule strategy the Scheduler deletes items and neither marks nor archives them")})
	}
	all.AddIf(o.Granularity < time.Second || o.Granularity > 24*time.Hour || o.Granularity%time.Second != 0, "Granularity", "%v is not whole seconds from 1s to 24h", o.Granularity)
	all.AddIf(o.Period < time.Second || o.Period > time.Hour, "Period", "%v is not between 1s and 1h", o.Period)
	all.AddIf(o.Shards < 0 || o.Shards > 10_000, "Shards", "%d is not between 1 and 10,000", o.Shards)
	all.AddIf(o.Partitions != 0 && !stream.ValidPartitions(o.Partitions), "Partitions", "%d is not a power of two from 1 to %d", o.Partitions, stream.PartitionsMax)
	all.AddIf(o.Segments < 0 || o.Segments > 1_000_000, "Segments", "%d is not between 1 and 1,000,000", o.Segments)
	all.AddIf(o.MaxRCU < 0, "MaxRCU", "%v is negative", o.MaxRCU)
	all.AddIf(o.AuditEvery < time.Minute || o.AuditEvery > auditEveryMost, "AuditEvery", "%v is not between 1m and 8760h", o.AuditEvery)
	all.AddIf(o.MaxWCU < 0, "MaxWCU", "%v is negative", o.MaxWCU)
	all.AddIf(o.MaxRate < 0, "MaxRate", "%v is negative", o.MaxRate)
	all.AddIf(o.MaxRemovals < 0, "MaxRemovals", "%d is negative", o.MaxRemovals)
	if o.Strategy == Schedule && o.limited() {
		all.Join(errScheduleLimits)
	}
	all.AddIf(o.Concurrency < 1 || o.Concurrency > 1024, "Concurrency", "%d is not between 1 and 1,024", o.Concurrency)
	all.AddIf(o.Batch != BatchFree && (o.Batch < 0 || o.Batch > 100), "Batch", "%d is not between 0 and 100", o.Batch)
	all.AddIf(o.Mark != "" && (o.Mark == o.Attribute || o.Mark == o.Version), "Mark", "%q is an attribute with another use", o.Mark)
	all.AddIf(o.Batch > 0 && (o.Mark != "" || o.Archive != nil), "Batch", "a mark or an archive needs removals one by one")
	all.AddIf(o.Batch > 0 && o.Undo != nil, "Undo", "a journal needs removals one by one, without Batch")
	o.Tables.check(&all, o.Table)
	all.AddIf(o.MaxSkew < 100*time.Millisecond || o.MaxSkew > time.Hour, "MaxSkew", "%v is not between 100ms and 1h", o.MaxSkew)
	all.AddIf(o.Lease < time.Second || o.Lease > time.Hour, "Lease", "%v is not between 1s and 1h", o.Lease)
	return all.Err("")
}
