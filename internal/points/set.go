package points

import (
	"maps"
	"sync/atomic"
)

// The metrics of namespace AWS/DynamoDB. Names end in the unit's name if Amazon's do.
const (
	ConsumedReads     = "ConsumedReadCapacityUnits"
	ConsumedWrites    = "ConsumedWriteCapacityUnits"
	ProvisionedReads  = "ProvisionedReadCapacityUnits"
	ProvisionedWrites = "ProvisionedWriteCapacityUnits"

	Deleted          = "TimeToLiveDeletedItemCount"
	Latency          = "SuccessfulRequestLatency" // in ms
	ReturnedItems    = "ReturnedItemCount"
	ReturnedRecords  = "ReturnedRecordsCount"
	ReturnedBytes    = "ReturnedBytes"
	ConditionsFailed = "ConditionalCheckFailedRequests"
	Conflicts        = "TransactionConflict"
	SystemErrors     = "SystemErrors"
	UserErrors       = "UserErrors"
	Throttled        = "ThrottledRequests"
	ReadsThrottled   = "ReadThrottleEvents"
	WritesThrottled  = "WriteThrottleEvents"
)

// Set is the series of one table or index, each made when it gets its first value. The nil Set has
// none. Its methods are safe for concurrent use.
type Set struct {
	r    *Recorder
	base Key
	made atomic.Pointer[map[name]*Series] // replaced, never edited
}

type name struct{ metric, operation string }

// Set returns the set of series whose keys differ from base in the metric and the operation.
func (r *Recorder) Set(base Key) *Set {
	if r == nil {
		return nil
	}
	s := &Set{r: r, base: base}
	s.made.Store(&map[name]*Series{})
	return s
}

// Get returns the series of a metric. operation may be empty. Both are from a bounded list.
func (s *Set) Get(metric, operation string) *Series {
	if s == nil {
		return nil
	}
	n := name{metric, operation}
	for {
		made := s.made.Load()
		if series := (*made)[n]; series != nil {
			return series
		}
		k := s.base
		k.Metric, k.Operation = metric, operation
		more := maps.Clone(*made)
		more[n] = s.r.Series(k)
		s.made.CompareAndSwap(made, &more)
	}
}
