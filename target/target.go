package target

import (
	"context"
	"time"
)

// Target is a place that takes deliveries. Its methods may be called from many goroutines, up to its limits.
type Target interface {
	// Deliver hands over one or more deliveries, in their order where the target keeps one, and gives one result for each: nil for those that have arrived. It returns when all
	// have an answer, or soon after ctx is done. It never gets more than [Limits.Batch] at a time.
	Deliver(ctx context.Context, deliveries []Delivery) []error
}

// Limits says how much a target is asked for at once.
type Limits struct {
	Concurrency int           // calls of Deliver at one time. Default: 16. Range: 1 to 1000
	Batch       int           // deliveries handed over by one call. Default: 1. Range: 1 to 1000
	PerSecond   float64       // deliveries begun a second, over all calls. Default: 0, without limit
	Timeout     time.Duration // of one call. Default: 30 s. Range: 10 ms to 15 minutes
}

// Delivery is one thing to hand over: a firing, or what a trigger made of one or more stream records.
type Delivery struct {
	ID          string            // the same in every attempt, and of no other delivery: up to 128 letters, digits, and "-_.:"
	Source      string            // ARN of the schedule, the rule or the trigger
	Type        string            // what it is: "Scheduled Event", "DynamoDB Stream Records", …
	Subject     string            // what it is about, such as the key of an item; may be empty
	Time        time.Time         // the instant that it belongs to: when a firing was due, when a record was written
	Attempt     int               // 1 is the first
	Key         string            // deliveries of one key are ordered, where the target keeps an order: a FIFO group, a partition key; may be empty
	ContentType string            // of Body; "application/json" or "text/plain"
	Body        []byte            // what the receiver gets
	Attributes  map[string]string // message attributes, where the target has such; those of a dead letter, for instance
	TargetARN   string            // the ARN that was asked for: what the target was found by
	Parameters  []byte            // JSON of the schedule's or rule's target parameters, as its API has them: {"SqsParameters": {"MessageGroupId": "g"}}; or empty
}

// Func makes a target of a Go function, which gets deliveries one at a time.
type Func func(ctx context.Context, d Delivery) error

// Deliver calls the function for each.
func (f Func) Deliver(ctx context.Context, deliveries []Delivery) []error {
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		if results[i] = ctx.Err(); results[i] == nil {
			results[i] = f(ctx, d)
		}
	}
	return results
}
