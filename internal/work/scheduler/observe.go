package scheduler

import "time"

// Event is something that an operator counts. What happens to a delivery afterwards is for deliver's observer.
type Event struct {
	What     What
	Group    string        // the schedule group; "rules" for the classic rules
	Lateness time.Duration // Fired: since the firing's deadline, by the database's clock
}

// What an Event is about.
type What int

const (
	Fired     What = iota // a firing's deliveries are handed to the courier
	Skipped               // a missed occurrence does not run (InvocationDroppedCount)
	Completed             // a schedule was deleted after its completion
	Ended                 // the group was deleted, and is no more
)

var whatNames = [...]string{"fired", "skipped", "completed", "ended"}

// String is a word for labels.
func (w What) String() string { return whatNames[w] }
