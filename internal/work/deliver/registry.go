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

// Notify returns a registry that also calls note after each registration. Without a database in this
// process there is nothing to register with, and Notify calls note at once. note may be called more
// than once, from any goroutine.
func (r Registry) Notify(note func()) Registry {
	register := r.Register
	if register == nil {
		note()
		return r
	}
	r.Register = func(consumer, streamARN string) Progress {
		p := register(consumer, streamARN)
		note()
		return p
	}
	return r
}

// Unregistered is the progress of a consumer that is not registered. It ignores all calls.
type Unregistered struct{}

func (Unregistered) Checkpoint(string, string) {}
func (Unregistered) Passed(string, string)     {}
func (Unregistered) Taken(string, string)      {}
func (Unregistered) Rest(time.Time)            {}
func (Unregistered) Close()                    {}

func (r Registry) register(consumer, streamARN string) Progress {
	if r.Register == nil {
		return Unregistered{}
	}
	return r.Register(consumer, streamARN)
}
