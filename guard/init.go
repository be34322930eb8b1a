package guard

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard/internal/index"
	"github.com/mayflydb/mayfly/internal/clock"
)

// InitOptions describe the index that a table needs for the index strategy. DB and Table must be
// set.
type InitOptions struct {
	DB        *dynamodb.Client
	Table     string
	Attribute string // the TTL attribute. Default: the attribute of its native TTL
	Version   string // as in Options; the index has to project it

	// IndexName is the name of the index. Default: an existing index of the right shape, else the
	// partition key's name and "Index".
	IndexName string
	// Key is the index's partition key. Default: the key of an existing index, else
	// "expirationWindow" or "expirationShard".
	Key string
	// Granularity is the length of the windows in the partition key: whole seconds up to a day.
	// Default: none, so it holds only shards. That is the better choice: an item with a new TTL
	// needs no other window, and one query finds all missed items.
	Granularity time.Duration
	// Shards is the number of shards. Default: 4 without windows, else 1. Range: 1 to 10,000.
	Shards int

	Segments int     // into how many parts the scan is divided. Default: 4. Range: 1 to 1,000,000
	MaxRCU   float64 // read units a second that the scan consumes at most. Default: 100
	// write units a second that the backfill consumes at most, over table and index. Default: 500
	MaxWCU float64
	DryRun bool // make and write nothing, and report the changes

	Tables Tables // guard's own tables; Init uses the table of leases

	// is called with events about consumption, throttling and bad values. Default: none
	Observe func(Event)
	Logger  *slog.Logger // Default: nothing is logged

	clock *clock.Clock // as in Options
}

// InitReport is the result of Init, or in a dry run its plan. It counts only this run, even if that
// continues an earlier one.
type InitReport struct {
	Index   string // its name
	Key     string // its partition key
	Layout  string // layout of the partition key, in words
	Created bool   // the index was made
	Scanned int64  // items that were read
	Written int64  // items that got the partition key, or another value of it
	Right   int64  // items that had the right one
	Without int64  // items without TTL: they belong in no index
	Bad     int64  // items whose TTL is not epoch seconds: they are left unchanged
	Renewed int64  // items whose TTL changed before the write, and which were read again
	// items that the endpoint refuses to write, for example because they have the maximum size
	Failed int64
}

const (
	initShards     = 4
	initUnitsRead  = 100
	initUnitsWrite = 500
)

// Init prepares a table for the index strategy. It creates or checks the index, waits until it is
// active, stores its layout for the sweepers, and sets the partition key of each item with a TTL,
// unless it is right. It may run beside guard and beside the table's writers, which should set the
// attribute themselves by then (Window, Shard). An interrupted run continues from its checkpoint.
// progress, if not nil, is called by one goroutine at a time; total is the endpoint's own count.
//
// The error is a *Problem if a person has to act.
func Init(ctx context.Context, o InitOptions, progress func(done, total int64)) (InitReport, error) {
	if o.Shards == 0 && o.Granularity == 0 {
		o.Shards = initShards
	}
	setDefault(&o.Shards, 1)
	setDefault(&o.MaxRCU, initUnitsRead)
	setDefault(&o.MaxWCU, initUnitsWrite)
	g, err := New(Options{
		DB: o.DB, Table: o.Table, Attribute: o.Attribute, Version: o.Version, IndexName: o.IndexName, Granularity: o.Granularity, Shards: o.Shards, Segments: o.Segments,
		MaxRCU: o.MaxRCU, MaxWCU: o.MaxWCU, Tables: o.Tables, Alone: true, Observe: o.Observe, Logger: o.Logger, LocalClock: true, clock: o.clock,
	})
	if err != nil {
		return InitReport{}, err
	}
	if err := g.prepare(ctx); err != nil {
		return InitReport{}, err
	}
	e := g.env()
	e.DryRun = o.DryRun
	report, err := index.Init(ctx, e, index.InitOptions{
		IndexName: o.IndexName, Key: o.Key, Granularity: o.Granularity, Shards: o.Shards, MaxWCU: o.MaxWCU, Progress: progress,
	})
	return InitReport(report), err
}
