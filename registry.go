package mayfly

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/internal/store/service"
	"github.com/mayflydb/mayfly/internal/work/consume"
)

// Registry connects readers of streams in this process to the database. It has no use but to be
// passed on, to lifecycle.Options for example.
type Registry = consume.Registry

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
// The reader of a new table must register before the answer that announces the table. Otherwise an
// advance after that answer may overtake the reader.
func (db *DB) Registry() Registry {
	return Registry{Changed: db.changes.next, Register: db.register}
}

func (db *DB) register(consumer, streamARN string) consume.Progress {
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

// changes announces changes of tables to goroutines that wait for a table or its stream.
type changes struct {
	mu     sync.Mutex
	change chan struct{} // closed at the next change; nil: no goroutine waits
}

// next returns a channel that is closed when a table is created, updated or deleted.
func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.change == nil {
		c.change = make(chan struct{})
	}
	return c.change
}

// answered announces a change if an operation that was answered made one.
func (c *changes) answered(operation string) {
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
