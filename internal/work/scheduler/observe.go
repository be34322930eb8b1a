package scheduler

import "time"

// Event is an event that an operator counts. The observer of package deliver has the later events
// of a delivery.
type Event struct {
	What     What
	Group    string        // the schedule group; "rules" for the classic rules
	Lateness time.Duration // Fired: since the firing's deadline, by the database's clock
}

// What is the kind of an Event.
type What int

const (
	Fired     What = iota // the courier has a firing's deliveries
	Skipped               // a missed occurrence does not run (InvocationDroppedCount)
	Completed             // a schedule was deleted after its completion
	Ended                 // the group is deleted
)

var whatNames = [...]string{"fired", "skipped", "completed", "ended"}

// String returns a label.
func (w What) String() string { return whatNames[w] }
