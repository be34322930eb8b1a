package guard

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/guard/journal"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/option"
	"github.com/mayflydb/mayfly/internal/sdk"
)

// TTLChange is the TTL of an item that is put back. There is no default: with its old TTL the item
// would be removed again at once, and an item without TTL stays forever.
type TTLChange string

// The changes.
const (
	KeepTTL   TTLChange = "keep"   // the old value
	RemoveTTL TTLChange = "remove" // none
	ExtendTTL TTLChange = "extend" // PutBackOptions.Extend from now on
)

// PutBackOptions say which items PutBack restores, and how. DB, Table, Journal, To and TTL must be
// set.
type PutBackOptions struct {
	DB      *dynamodb.Client
	Table   string
	Journal *journal.Journal // the Undo of the guards that removed the items

	// From and To bound the instants of the removals by the endpoint's clock; To is exclusive.
	From, To time.Time

	TTL    TTLChange
	Extend time.Duration // with ExtendTTL: the time from now until the new deadline

	// MaxWCU limits the writes in write units a second, over table and indexes. Default: 500.
	MaxWCU float64
	DryRun bool // write nothing, and read whether each key is free

	// Found is called with each item that is put back, or would be, from many goroutines. Default:
	// none.
	Found  func(Restored)
	Logger *slog.Logger // Default: nothing is logged.

	clock     *clock.Clock // as in Options
	notesMost int          // notesMost; tests change it
}

// Restored is an item that PutBack has put back, or would put back.
type Restored struct {
	Key       string    // as JSON
	Removed   time.Time // when it was removed
	Deadline  time.Time // its old deadline; zero if the journal has lost it
	Confirmed bool      // the journal has the outcome of the removal
}

// PutBackReport counts items, unless stated otherwise.
type PutBackReport struct {
	PutBack int64 `json:"put_back"` // in a dry run: that would be put back
	// the part of them whose removal has no outcome in the journal: a worker died, or the endpoint did
	// not answer. Their keys were free, so they were removed, by guard or by another client.
	Unconfirmed int64 `json:"unconfirmed"`
	InUse       int64 `json:"in_use"`  // their keys have an item again, which stays
	Failed      int64 `json:"failed"`  // the endpoint refuses to write them
	Lost        int64 `json:"lost"`    // their image is in a damaged part of the journal
	Older       int64 `json:"older"`   // earlier removals of the same keys
	Damaged     int64 `json:"damaged"` // damaged parts of files
	// entries at the end of files that a crash has cut off; no item was removed for them
	Torn   int64 `json:"torn"`
	Others int64 `json:"other_tables"` // entries of other tables
}

const (
	putBackUnits   = 500
	putBackWorkers = 16
)

// PutBack restores items that guards with Options.Undo have removed. Each item gets the state that
// it had when it was removed; if it was removed several times between From and To, the last one. A
// key that has an item again is left alone. An interrupted run can be repeated: it finds the keys of
// the items that are back in use. progress, if not nil, is called by one goroutine.
//
// The error is a *Problem if a person has to act.
func PutBack(ctx context.Context, o PutBackOptions, progress func(done, total int64)) (PutBackReport, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return PutBackReport{}, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	db := sdk.Watched(o.DB, o.Logger, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	t, err := describeForPutBack(ctx, db, o.Table)
	if err != nil {
		return PutBackReport{}, err
	}
	p := &putBack{o: o, db: db, table: t, pace: pace.New(o.MaxWCU, 0), progress: progress}
	err = p.run(ctx)
	return p.report(), err
}

func describeForPutBack(ctx context.Context, db *dynamodb.Client, name string) (*table.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	t, err := table.Describe(ctx, db, name)
	if err != nil {
		return nil, table.AtStart("DescribeTable", name, err)
	}
	return t, nil
}

func (o PutBackOptions) withDefaults() PutBackOptions {
	setDefault(&o.MaxWCU, putBackUnits)
	setDefault(&o.notesMost, notesMost)
	if o.Found == nil {
		o.Found = func(Restored) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.clock == nil {
		o.clock = clock.New()
	}
	return o
}

// check reports all that is wrong with the options, which have their defaults.
func (o PutBackOptions) check() error {
	var all option.Complaints
	all.AddIf(o.DB == nil, "DB", "missing client")
	all.AddIf(o.Table == "", "Table", "missing")
	all.AddIf(o.Journal == nil, "Journal", "missing")
	all.AddIf(o.To.IsZero(), "To", "missing")
	all.AddIf(!o.To.IsZero() && !o.From.Before(o.To), "From", "%s is not before %s", o.From.UTC().Format(time.RFC3339Nano), o.To.UTC().Format(time.RFC3339Nano))
	switch {
	case o.DryRun && o.TTL == "":
	case o.TTL == ExtendTTL:
		all.AddIf(o.Extend <= 0 || o.Extend > extendMost, "TTL", "%v is not between 1s and 5 years", o.Extend)
	default:
		all.AddIf(o.TTL != KeepTTL && o.TTL != RemoveTTL, "TTL", "%q is not keep, remove or extend", o.TTL)
	}
	all.AddIf(o.MaxWCU < 0, "MaxWCU", "%v is negative", o.MaxWCU)
	return all.Err("")
}

const extendMost = 5 * 365 * 24 * time.Hour
