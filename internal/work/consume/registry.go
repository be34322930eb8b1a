package consume

import "time"

// Registry connects consumers to the embedded database in their process. The zero value connects to
// none.
type Registry struct {
	// Register registers a consumer. The stream is not trimmed beyond its checkpoint, and an
	// advance of the clock waits until the consumer has passed all durable records.
	Register func(consumer, streamARN string) Progress

	// Changed returns a channel that is closed when a table is next created, changed or deleted, or
	// may have been. From the answer to that operation on, advances of the clock wait until looked
	// is called, with a limit: so a reader that registers first misses no advance. looked must be
	// called, even if the change does not come; further calls have no effect.
	Changed func() (changed <-chan struct{}, looked func())
}

// NextChange calls Changed. The channel is nil if no changes are announced.
func (r Registry) NextChange() (changed <-chan struct{}, looked func()) {
	if r.Changed == nil {
		return nil, func() {}
	}
	return r.Changed()
}

// Progress is how a registered consumer reports its progress. Its methods may be called from many
// goroutines. It has no name of its own, so that a public Registry has the same functions.
type Progress = interface {
	Checkpoint(shard, sequence string) // the checkpoint is durable: trimming may pass it
	Passed(shard, sequence string)     // all records up to this one are done: delivered or parked
	// all records up to this one were handed over: Rest applies to them
	Taken(shard, sequence string)
	// the records that are not done wait for this instant of the database's clock; zero: they no
	// longer wait
	Rest(until time.Time)
	Close() // the consumer ends
}

// Notify returns a registry that also calls note after each registration. Without a database in
// this process there is nothing to register with, and Notify calls note at once. note may be called
// more than once, from any goroutine.
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
