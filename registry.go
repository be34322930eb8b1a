package mayfly

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store/service"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// registry is what this database adds for consumers of its streams in its own process: it keeps what they have not got to, and its clock waits for
// them.
//
// Consumers register as they begin to run, and after a start some are yet to come when the database opens its doors. So whoever starts them
// does it in this order, or records that are past their retention may go before a consumer is there to hold them:
//
//	registered := db.engine.HoldAll() // before db.run
//	go db.run(ctx)
//	… start the consumers, wait until each has called Hold …
//	registered()
//
// A consumer of a new table has to call Hold before the answer that tells of the table, or an advance that follows may run ahead of it.
func (db *DB) registry() deliver.Registry {
	return deliver.Registry{Changed: db.changes.next, Register: func(consumer, streamARN string) deliver.Progress {
		log := db.options.Logger.With("consumer", consumer, "stream", streamARN)
		c, err := db.service.Hold(consumer, streamARN)
		if err != nil {
			log.Warn("a consumer reads a stream that keeps no records for it", "error", err)
			return nothingHeld{}
		}
		return progress{c, log}
	}}
}

// Registry is what this database adds for those who read its streams in its own process, such as lifecycle.Options.Registry takes: what they have not got to is kept, and an advance of the
// clock waits until they are done. It can be passed on, and no more.
func (db *DB) Registry() deliver.Registry { return db.registry() }

// progress tells the service of a consumer's progress. What it cannot mean is a fault of the consumer's, and as if it had not been said.
type progress struct {
	consumer *service.Consumer
	log      *slog.Logger
}

func (p progress) Checkpoint(shard, sequence string) {
	p.note(p.consumer.Checkpoint(shard, sequence))
}
func (p progress) Passed(shard, sequence string) { p.note(p.consumer.Passed(shard, sequence)) }
func (p progress) Taken(shard, sequence string)  { p.note(p.consumer.Taken(shard, sequence)) }
func (p progress) Rest(until time.Time)          { p.consumer.Rest(until) }
func (p progress) Close()                        { p.consumer.Close() }

func (p progress) note(err error) {
	if err != nil {
		p.log.Error("a consumer reported impossible progress", "error", err)
	}
}

// nothingHeld is the progress of a consumer whose stream is gone.
type nothingHeld struct{}

func (nothingHeld) Checkpoint(string, string) {}
func (nothingHeld) Passed(string, string)     {}
func (nothingHeld) Taken(string, string)      {}
func (nothingHeld) Rest(time.Time)            {}
func (nothingHeld) Close()                    {}

// changes tells those who wait for a table or its stream when there may be one.
type changes struct {
	mu     sync.Mutex
	change chan struct{} // closed at the next change; nil: nobody waits
}

// next gives a channel that is closed when a table is made or changed next.
func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.change == nil {
		c.change = make(chan struct{})
	}
	return c.change
}

// note is called when an operation has been answered.
func (c *changes) note(operation string) {
	if operation != "CreateTable" && operation != "UpdateTable" && operation != "DeleteTable" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
}
