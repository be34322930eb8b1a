// Package service implements the operations of the DynamoDB API: one file each, named after it.
//
// An operation is a method on [Service] that takes an input and returns an output (api.go, api_bulk.go). The
// wire converts JSON to inputs and outputs to JSON; the engine stores. This package decides which
// requests are valid, which fault of a request is reported first, what a write changes, where a
// page ends, and what a call costs.
//
// # Order of checks
//
// Clients can observe it, so every operation keeps AWS's order: the shape of the members (collected
// by [shape], up to ten in one message), the table's name, rules of the operation alone,
// expressions, whether the table exists, rules that need its schema, and last the rules that depend
// on data. A write changes nothing before all checks have passed.
//
// # Errors
//
// A request that the API refuses gets a *dynamo.Error. Only [apiError] turns the engine's errors
// into them. Every other error is a fault; it passes through, and the wire answers
// InternalServerError.
//
// # Tables named by ARN
//
// TableName may be an ARN wherever it may be a name. Only the table's name in it counts: all
// regions and accounts see the same tables, so an ARN of another region or account is accepted. A
// malformed one is refused.
package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"runtime"
	"time"

	"github.com/mayflydb/mayfly/internal/objects"
	"github.com/mayflydb/mayfly/internal/store/bulk"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// namespace holds the tables of clients, and systemNamespace those that only mayfly writes.
const (
	namespace       = "default"
	systemNamespace = "mayfly"
)

// Options configure a Service.
type Options struct {
	Engine   *engine.Engine
	Region   string // in ARNs and stream records; default "us-east-1"
	Account  string // in ARNs; default "000000000000"
	Endpoint string // the answer of DescribeEndpoints to a request without a host; default "localhost:8000"

	// Expiry says how items expire in tables whose tags do not say it. Seed and Delay may be set
	// with strict expiry: they apply to tables that are tagged aws.
	Expiry engine.Expiry

	// Bucket returns the store of a bucket for exports and imports, or bulk.ErrNoBucket. Default: it
	// knows none.
	Bucket func(ctx context.Context, name string) (objects.Store, error)
	Logger *slog.Logger // of exports, imports and TTL values that look like mistakes; nil: none

	// SwitchedOff is called when a table's stream or TTL was disabled or the table was deleted:
	// after the change is durable, before the answer. It must be quick and safe for concurrent use.
	// Default: no call.
	SwitchedOff func(table string)

	// KinesisMapped reports whether the records for a Kinesis stream can be delivered. It must be quick
	// and safe for concurrent use. Default: they cannot, and destinations are only stored.
	KinesisMapped func(streamARN string) bool

	// FeedsChanged is called when Feeds may return others than before: after the change is durable,
	// before the answer. Default: no call.
	FeedsChanged func(ctx context.Context)

	// TransientStates is the time for which a table or global index shows CREATING, UPDATING or
	// DELETING after a change, by Elapsed. Default: none.
	TransientStates time.Duration

	// Throttle enforces the throughput of tables without the tag mayfly:throttle. Default: it is
	// only stored and shown.
	Throttle bool

	// Elapsed returns the local monotonic time since a fixed instant, such as the start of the
	// process. Shard iterators age by it. Default: the engine's clock.
	Elapsed func() time.Duration
}

// Service implements the API's operations. Its answers depend only on the engine's state. It is
// safe for use by many goroutines at once.
type Service struct {
	engine       *engine.Engine
	bulk         *bulk.Runner
	log          *slog.Logger
	region       string
	account      string
	tables       string // the beginning of all ARNs of tables
	endpoint     string
	expiry       engine.Expiry
	elapsed      func() time.Duration
	passing      *passingStates // nil: changes show no states
	throttle     bool
	off          func(table string)
	isMapped     func(streamARN string) bool
	feedsChanged func(ctx context.Context)
	began        time.Duration // the value of elapsed when the service was made
	run          uint32        // separates shard iterators of this run from earlier ones
	turns        chan struct{} // has an element for each Turn that is taken

	provision provision
}

// New returns the service over an engine. It starts nothing.
func New(o Options) *Service {
	s := &Service{
		engine:       o.Engine,
		region:       cmp.Or(o.Region, "us-east-1"),
		account:      cmp.Or(o.Account, "000000000000"),
		endpoint:     cmp.Or(o.Endpoint, "localhost:8000"),
		expiry:       o.Expiry,
		elapsed:      o.Elapsed,
		throttle:     o.Throttle,
		off:          o.SwitchedOff,
		isMapped:     o.KinesisMapped,
		feedsChanged: o.FeedsChanged,
		turns:        make(chan struct{}, turnsMax(runtime.NumCPU())),
	}
	s.tables = "arn:aws:dynamodb:" + s.region + ":" + s.account + ":table/"
	if o.Bucket == nil {
		o.Bucket = func(context.Context, string) (objects.Store, error) { return nil, bulk.ErrNoBucket }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s.log = o.Logger
	s.bulk = bulk.New(bulk.Options{Engine: o.Engine, Namespace: namespace, Bucket: o.Bucket, TableARN: s.tableARN, Logger: o.Logger})
	if s.off == nil {
		s.off = func(string) {}
	}
	if s.isMapped == nil {
		s.isMapped = func(string) bool { return false }
	}
	if s.feedsChanged == nil {
		s.feedsChanged = func(context.Context) {}
	}
	if s.elapsed == nil {
		s.elapsed = func() time.Duration { return time.Duration(s.engine.Now()) * time.Millisecond }
	}
	s.began = s.elapsed()
	if o.TransientStates > 0 {
		s.passing = &passingStates{length: o.TransientStates, elapsed: s.elapsed, tables: map[string]passingState{}}
	}
	var run [4]byte
	rand.Read(run[:])
	s.run = binary.BigEndian.Uint32(run[:])
	return s
}

// table returns a table of clients. It returns engine.ErrTableCreating for one that only descriptions
// show.
func (s *Service) table(name string) (*engine.Table, error) {
	if s.passing.of(name).status == statusCreating {
		return nil, engine.ErrTableCreating
	}
	return s.engine.Table(namespace, name)
}

// describedTable returns a table and its description, to check a request against. The description
// is durable, so an answer may depend on it.
func (s *Service) describedTable(name string) (*engine.Table, *engine.TableDesc, error) {
	t, err := s.table(name)
	if err != nil {
		return nil, nil, err
	}
	d, err := t.Describe()
	return t, d, err
}

// RunBulk runs exports and imports until ctx is done, first those that an earlier process left in
// progress.
func (s *Service) RunBulk(ctx context.Context) error { return s.bulk.Run(ctx) }
