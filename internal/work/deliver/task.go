package deliver

import "time"

// task is a parcel in a lane.
type task struct {
	parcel    Parcel
	target    string    // name of the lane, or the ARN if there is none
	impatient bool      // does not wait for room in the queue
	stored    bodyParts // its parts in the table of parked parcels

	// Guarded by lane.mu, until the task is over.
	state state
	began time.Duration // time at which it was queued
	// called when the consequence of the attempt is durable: the source's done, or the end of a slow
	// task
	done func()
	// not nil: the parcel is parked in case the attempt hangs, and the source's done is called then;
	// closed when that write is queued
	secured chan struct{}
}

// state is the position of a queued task in its lane.
type state int

const (
	taken   state = iota // an attempt is running or about to begin
	waiting              // in the queue
	over                 // the attempt has ended, or the parcel is parked without one
)
