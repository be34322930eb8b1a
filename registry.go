package mayfly

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store/service"
	"github.com/mayflydb/mayfly/internal/work/consume"
)

// Registry connects readers of streams in this process to the database. It is for toolkits: pass it
// on, for example in lifecycle.Options.
type Registry struct {
	// Register registers a reader of a stream. The stream is not trimmed beyond its checkpoint, and
	// Clock.Advance waits until it has passed all durable records.
	Register func(consumer, streamARN string) Progress

	// Changed returns a channel that is closed when a table is next created, changed or deleted, or
	// may have been. From the answer to that operation on, Clock.Advance waits until looked is
	// called, for at most 30 seconds: so a reader that registers first misses no advance. looked
	// must be called, even if the change does not come; further calls have no effect.
	Changed func() (changed <-chan struct{}, looked func())
}

// Progress is how a registered reader reports its progress. Its methods may be called from many
// goroutines.
type Progress = interface {
	Checkpoint(shard, sequence string) // the checkpoint is durable: trimming may pass it
	Passed(shard, sequence string)     // all records up to this one are done
	// all records up to this one were handed over: Rest applies to them
	Taken(shard, sequence string)
	// the records that are not done wait for this instant of the database's clock; zero: they no
	// longer wait
	Rest(until time.Time)
	Close() // the reader ends
}

// Registry returns the registry of this database. Records that a registered reader has not read are
// not trimmed, and Clock.Advance waits until the reader is done with them.
//
// A reader registers when it begins to run. The database itself starts its readers in this order,
// since records beyond their retention could be trimmed before a reader registers:
//
//	registered := db.engine.HoldAll() // before db.run
//	go db.run(ctx)
//	… start the readers, wait until each has registered …
//	registered()
//
// A declared trigger or reminder whose table or stream is missing is told of each change of a table.
// From the answer to the change on, the clock waits until that reader has registered, or has found
// nothing to read; otherwise an advance could overtake it. A reader that still reads the stream of a
// table that was replaced is overtaken: it comes to the new stream after the old one.
func (db *DB) Registry() Registry {
	return Registry{Changed: db.changes.await, Register: db.register}
}

func (db *DB) register(consumer, streamARN string) Progress {
	log := db.options.Logger.With("consumer", consumer, "stream", streamARN)
	c, err := db.service.Hold(consumer, streamARN)
	if err != nil {
		log.Warn("a consumer reads a stream that keeps no records for it", "error", err)
		return consume.Unregistered{}
	}
	return progress{c, log}
}

// progress reports a consumer's progress to the service. Only a faulty consumer reports impossible
// progress, such as a shard that is none: progress logs and drops it.
type progress struct {
	consumer *service.Consumer
	log      *slog.Logger
}

func (p progress) Checkpoint(shard, sequence string) {
	p.check(p.consumer.Checkpoint(shard, sequence))
}
func (p progress) Passed(shard, sequence string) { p.check(p.consumer.Passed(shard, sequence)) }
func (p progress) Taken(shard, sequence string)  { p.check(p.consumer.Taken(shard, sequence)) }
func (p progress) Rest(until time.Time)          { p.consumer.Rest(until) }
func (p progress) Close()                        { p.consumer.Close() }

func (p progress) check(err error) {
	if err != nil {
		p.log.Error("a consumer reported impossible progress", "error", err)
	}
}

// changes announces changes of tables to readers that wait for a table or its stream.
type changes struct {
	mu   sync.Mutex
	next *change // nil: no reader waits
}

// change is the next change of a table.
type change struct {
	made    chan struct{}  // closed at the change
	looking sync.WaitGroup // readers that the clock waits for after the change
}

// await is Registry.Changed.
func (c *changes) await() (changed <-chan struct{}, looked func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &change{made: make(chan struct{})}
	}
	c.next.looking.Add(1)
	return c.next.made, sync.OnceFunc(c.next.looking.Done)
}

// lookLimit is the time for which the clock waits for readers that look at a change. A reminder looks
// until it has scanned its table, which may be long or damaged.
const lookLimit = 30 * time.Second

// announce announces a change. It holds the clock until all readers that waited have looked.
func (c *changes) announce(hold func() (release func())) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.next
	if next == nil {
		return
	}
	c.next = nil
	release := hold()
	close(next.made)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		next.looking.Wait()
	}()
	go func() {
		defer release()
		limit := time.NewTimer(lookLimit)
		defer limit.Stop()
		select {
		case <-looked:
		case <-limit.C:
		}
	}()
}
