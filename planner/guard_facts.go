package planner

import "time"

// Figures that were measured of guard, on two cores that it shared with the endpoint. After a
// change, run the commands, take the lowest of three runs, and then
//
//	go test ./planner -run TestGuardPage -update
const (
	guardMeasured = "26 November 2026"

	// go test -run xxx -bench 'Remove/batch_0' -benchtime 20000x ./guard
	removalsPerS = 7000.0 // by one worker, over plain HTTP on the same machine

	// go test -run xxx -bench Follow -benchtime 20000x ./guard
	recordsPerS      = 5600.0  // stream records turned into rows of mayfly.deadlines, by one worker
	localRecordsPerS = 30000.0 // the same, into its own directory

	// a first scan of 600,000 items, with a row each in mayfly.deadlines: 16.2 s
	scannedPerS = 37000.0
	// a first scan of 1,000,000 items with --deadlines, 31.3 s; also taken for scans without rows
	localScannedPerS = 31900.0

	// mayfly bench --only guard: 1,000 removals a second, evenly spread
	lateP50, lateP99, lateRate = 0.0035, 0.0083, 1000.0 // seconds, seconds, a second
	// the same, with 1,000,000 deadlines armed; the bytes include the garbage collector's share
	idleBytes, armedBytes = 45e6, 260.0 // of an idle worker; of each armed deadline, besides its key
	// mayfly guard run --deadlines with 1,000,000 deadlines due within a minute: 180 MB before the
	// first is due, with 100,000 armed; and after the scan, before any was armed
	localBytes    = 120e6
	armedRowBytes = 600.0 // of each armed deadline of the stream strategy, besides its key

	// go test ./guard/internal/stream -run TestDirectoryIsSmall: its limit
	diskRowBytes = 100.0 // on disk, with a key of 20 bytes
)

// Facts about guard, from its code.
const (
	armedMax         = 2_000_000 // deadlines in a worker's memory; guard/internal/armed
	scanRoom         = 100_000   // of these, kept for near deadlines
	partitionsLeast  = 16        // of the stream strategy, by default
	partitionsMost   = 256
	keysPerMinute    = 4 // partition keys that have the deadlines of a partition and minute
	partsPerWorker   = 8 // partitions for each worker, so that shares differ by an eighth at most
	indexShardsMost  = 10_000
	singlesMost      = 4_000 // items a second up to which a worker's scan writes rows one by one; guard/internal/stream
	leasesMost       = 32    // shares of an index or a scan, hence workers; guard/internal/strategy
	guardConcurrency = 64.0
	polls            = 1.25    // of a lease, between two polls of a partition
	aheadSeconds     = 2.0     // that a poll looks ahead beyond the next one
	callsBusy        = 4.0     // calls a second of a shard with records, at an endpoint that has throttled; internal/work/consume
	saveEvery        = 0.05    // seconds between two checkpoints of a busy shard, at least; internal/work/consume
	saveShare        = 0.002   // the same, for each open shard
	localAhead       = 60.0    // seconds that a worker alone looks ahead
	aloneMax         = 150_000 // deadlines in its memory, of which it arms two thirds ahead; guard/internal/stream
	auditUnitsPerS   = 5.0
	rowBytes         = 170 // of a row of mayfly.deadlines, besides 4/3 of the key
	leaseRowBytes    = 220 // of a row of mayfly.leases
	shardDays        = 7   // rows for each open shard: it is replaced every 4 hours, and kept for a day
	takeover         = 5.0 / 3
	listEvery        = 10.0 // seconds between two listings of the stream's shards by a worker, at least
	listsOfAll       = 1.0  // calls of such listings by a fleet, a second, at most
)

// Facts about Amazon; docs/guard-sizing.md has the sources.
const (
	tableUnits = 40_000 // units a second of a table, for writes and for reads, until raised
	listsPerS  = 10.0   // DescribeStream calls a second of an account
	listPage   = 100.0  // shards in the answer
	tripP99    = 2.0    // one round trip of a hundred, in mean ones: an assumption
	busy       = 0.7    // share of a worker's speed up to which a plan loads it
)

// guardLeases are the leases among which a plan chooses.
var guardLeases = []time.Duration{
	6 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

// guardPasses are the durations of a scan's pass among which a plan chooses, in order of preference.
var guardPasses = []time.Duration{
	time.Hour, 30 * time.Minute, 10 * time.Minute, 5 * time.Minute, time.Minute, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour,
}
