package deliver

import "time"

// Event is something that an operator counts.
type Event struct {
	What     What
	Group    string        // the parcel's
	Target   string        // name of the lane; the ARN where there is none
	Code     string        // of the error, where there is one
	Attempt  int           // which attempt; 0 where it is not about one
	Lateness time.Duration // Attempted and Delivered: since Delivery.Time, by the database's clock
}

// What an Event is about. In brackets: the scheduler's metric (docs/spec/scheduler.md §8).
type What int

const (
	Attempted           What = iota // an attempt begins (InvocationAttemptCount)
	Delivered                       // it has succeeded
	Failed                          // it has failed (TargetErrorCount)
	Throttled                       // it has failed because the target has too much to do; comes besides Failed (TargetErrorThrottledCount)
	LaneFull                        // a parcel was parked without an attempt because its lane was full or too slow (InvocationThrottleCount)
	Parked                          // a parcel was parked until its next attempt
	Dropped                         // a parcel has failed for good (InvocationDroppedCount)
	DeadLettered                    // its dead letter is in the table
	DeadLetterSent                  // its dead letter has reached its target (InvocationsSentToDeadLetterCount)
	DeadLetterFailed                // its dead letter cannot reach its target, and stays in the table (InvocationsFailedToBeSentToDeadLetterCount)
	DeadLetterTruncated             // its dead letter's body was cut (…_Truncated_MessageSizeExceeded)
)

var whatNames = [...]string{"attempted", "delivered", "failed", "throttled", "lane_full", "parked", "dropped", "dead_lettered", "dead_letter_sent",
	"dead_letter_failed", "dead_letter_truncated"}

// String is a word for labels.
func (w What) String() string { return whatNames[w] }
