package target

import (
	"context"
	"time"
)

// Target is a destination of deliveries. Its methods may be called from many goroutines, up to its
// limits.
type Target interface {
	// Deliver hands over one or more deliveries, in order if the target keeps one, and returns one
	// result for each: nil for success. It returns when all have an answer, or soon after ctx is
	// done. It never receives more than [Limits.Batch] deliveries.
	Deliver(ctx context.Context, deliveries []Delivery) []error
}

// Limits bound the load of a target.
type Limits struct {
	Concurrency int // concurrent calls of Deliver. Default: 16. Range: 1 to 1000
	Batch       int // deliveries in one call. Default: 1. Range: 1 to 1000
	// deliveries started a second, over all calls. Default: 0, without limit
	PerSecond float64
	Timeout   time.Duration // of one call. Default: 30 s. Range: 10 ms to 15 minutes
}

// Delivery is one unit to hand over: a firing, or one or more stream records of a trigger.
type Delivery struct {
	// unique, and the same in every attempt: up to 128 letters, digits, and "-_.:"
	ID      string
	Source  string    // ARN of the schedule, the rule or the trigger
	Type    string    // "Scheduled Event", "DynamoDB Stream Records", …
	Subject string    // the subject, such as the key of an item; may be empty
	Time    time.Time // the instant at which a firing was due, or a record was written
	Attempt int       // 1 is the first
	// deliveries of one key are ordered if the target keeps an order: a FIFO group, a partition
	// key; may be empty
	Key         string
	ContentType string // of Body; "application/json" or "text/plain"
	Body        []byte // the content for the receiver
	// message attributes for targets that have them, for example of a dead letter
	Attributes map[string]string
	TargetARN  string // the ARN by which the target was found
	// JSON of the schedule's or rule's target parameters, in its API's form: {"SqsParameters":
	// {"MessageGroupId": "g"}}; or empty
	Parameters []byte
}

// Func is a Go function as a target. It receives deliveries one at a time.
type Func func(ctx context.Context, d Delivery) error

// Deliver calls the function for each delivery. Once ctx is done, it makes no further call, and the
// remaining results are ctx's error.
func (f Func) Deliver(ctx context.Context, deliveries []Delivery) []error {
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		if results[i] = ctx.Err(); results[i] == nil {
			results[i] = f(ctx, d)
		}
	}
	return results
}
