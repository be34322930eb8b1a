// Package autoscale implements Application Auto Scaling for tables and global indexes: scalable
// targets, and target-tracking policies that act on the units consumed in each minute.
//
//	units are consumed ─► Consumed ─► a timer for the end of the minute ─► the alarms ─► UpdateTable
//
// All state is in the table mayfly.autoscaling: targets, policies, the activities of the last weeks,
// and timers, which are items that expire at the end of a minute. Only a minute in which units were
// consumed has a timer, so nothing happens while a table is idle. As at Amazon, a table whose
// consumption ends keeps its capacity. When it is used again, the minutes without consumption count
// as zeros.
//
// The alarms are in memory: after a restart they count from the beginning.
//
// Sources: the API reference of Application Auto Scaling; "Managing throughput capacity
// automatically with DynamoDB auto scaling".
package autoscale

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/mayflydb/mayfly/internal/work/api"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/lease"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// TableName is the name of the table with all state.
const TableName = "mayfly.autoscaling"

var tableSpec = ensure.Spec{Name: TableName, Key: attrID, TTL: attrDue, Stream: true, Shards: 1, Indexes: []ensure.Index{byKind, byResource}}

// Use is a use of units: of a table, or of a global index, for reads or for writes.
type Use struct {
	Table, Index string // Index is empty for the table
	Write        bool
}

// Options configures autoscaling. All but Logger must be set.
type Options struct {
	DB       *dynamodb.Client
	Streams  *dynamodbstreams.Client
	Now      func() time.Time // the database's clock
	Region   string           // in ARNs
	Account  string
	Leases   lease.Options
	Registry consume.Registry

	// Units returns the units consumed in the minute that begins at an instant.
	Units func(u Use, minute time.Time) float64
	// Begun reports whether Run was called or is about to be.
	Begun func() bool
	// Existing reports that the table exists since before.
	Existing bool

	Logger *slog.Logger // Default: nothing is logged
}

// Scaler has the operations, and acts by the policies while Run runs.
type Scaler struct {
	o      Options
	timers *timer.Timers
	needed atomic.Bool   // the table exists: Run reads it
	loaded chan struct{} // closed when the policies from before are watched

	changes sync.Mutex // held by an operation that changes a target or a policy
	mu      sync.Mutex
	watched atomic.Pointer[map[Use]*watch] // those with a policy; replaced under mu
}

// New returns a scaler. It does nothing until Run.
func New(o Options) *Scaler {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Scaler{o: o, loaded: make(chan struct{})}
	s.needed.Store(o.Existing)
	if !o.Existing {
		close(s.loaded)
	}
	s.watched.Store(&map[Use]*watch{})
	s.timers = timer.New(timer.Options{
		Name: "autoscaling", Table: tableSpec, DB: o.DB, Streams: o.Streams, Now: o.Now, Leases: o.Leases, Registry: o.Registry,
		Logger: o.Logger, OnDemand: true, Fire: s.fire,
	})
	return s
}

// Run acts by the policies until ctx is done. It can be called once.
func (s *Scaler) Run(ctx context.Context) error {
	if s.o.Existing {
		err := s.load(ctx)
		close(s.loaded)
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return s.timers.Run(ctx)
}

// Ready returns a channel that is closed when the table is read, if it exists, and otherwise at once.
func (s *Scaler) Ready() <-chan struct{} {
	if s.needed.Load() {
		return s.timers.Ready()
	}
	none := make(chan struct{})
	close(none)
	return none
}

// RestoreTable creates the table or its stream again, if the name is its own. It returns the ARN of
// the stream; "" for any other table.
func (s *Scaler) RestoreTable(ctx context.Context, table string) (streamARN string, err error) {
	return s.timers.Restore(ctx, table)
}

// make creates the table, and waits until it is read if Run was called.
func (s *Scaler) make(ctx context.Context) error {
	s.needed.Store(true)
	if s.o.Begun() {
		return s.timers.Make(ctx)
	}
	_, err := ensure.Table(ctx, s.o.DB, tableSpec)
	return err
}

// Operations returns the operations, which requests find by name. To add one: a method, a file for
// it, a line here.
func (s *Scaler) Operations() []api.Operation {
	return []api.Operation{
		{Name: "RegisterScalableTarget", Do: api.Bind(s.RegisterScalableTarget)},
		{Name: "DeregisterScalableTarget", Do: api.Bind(s.DeregisterScalableTarget)},
		{Name: "DescribeScalableTargets", Do: api.Bind(s.DescribeScalableTargets)},
		{Name: "PutScalingPolicy", Do: api.Bind(s.PutScalingPolicy)},
		{Name: "DeleteScalingPolicy", Do: api.Bind(s.DeleteScalingPolicy)},
		{Name: "DescribeScalingPolicies", Do: api.Bind(s.DescribeScalingPolicies)},
		{Name: "DescribeScalingActivities", Do: api.Bind(s.DescribeScalingActivities)},
		{Name: "ListTagsForResource", Do: api.Bind(s.ListTagsForResource)},
	}
}
