package deliver

import "time"

// Registry is what the embedded database adds for consumers in its own process. The zero value adds nothing.
type Registry struct {
	// Hold registers a consumer: the stream is not trimmed past its checkpoint, and `advance` of the clock waits until it has passed all durable records.
	Register func(consumer, streamARN string) Progress

	// Changed gives a channel that is closed when a table is made or changed next.
	Changed func() <-chan struct{}
}

// Progress is what a registered consumer says of itself. Its methods may be called from many goroutines.
type Progress interface {
	Checkpoint(shard, sequence string) // the checkpoint is durable: trimming may pass it
	Passed(shard, sequence string)     // all records up to this one are done with: delivered, or parked
	Taken(shard, sequence string)      // all records up to this one have been handed over: Rest speaks of them too
	Rest(until time.Time)              // what of that it is not done with waits for this instant of the database's clock; zero: no longer
	Close()                            // the consumer ends
}

// unheld is the progress of a consumer that nobody holds.
type unheld struct{}

func (unheld) Checkpoint(string, string) {}
func (unheld) Passed(string, string)     {}
func (unheld) Taken(string, string)      {}
func (unheld) Rest(time.Time)            {}
func (unheld) Close()                    {}

// hold registers a consumer where there is somebody to register with.
func (h Registry) hold(consumer, streamARN string) Progress {
	if h.Register == nil {
		return unheld{}
	}
	return h.Register(consumer, streamARN)
}
