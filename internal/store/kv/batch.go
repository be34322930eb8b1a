package kv

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Batch collects writes that apply together or not at all. Arguments may be changed after each
// call. A Batch is used by one goroutine at a time.
type Batch struct {
	pebble *pebble.Batch
	waited bool // Wait has returned without an error
}

// NewBatch returns an empty batch. Close it after Wait, or instead of Apply.
func (db *DB) NewBatch() *Batch { return &Batch{pebble: db.pebble.NewBatch()} }

// Set stores value under key. The errors of Pebble's batch concern indexed and closed batches only,
// and ours are neither.
func (b *Batch) Set(key, value []byte) { _ = b.pebble.Set(key, value, nil) }

// Delete removes key, which need not exist. It is the right way for a slice of up to thousands of
// keys: a small DeleteRange costs every later iterator more than the tombstones do.
func (b *Batch) Delete(key []byte) { _ = b.pebble.Delete(key, nil) }

// DeleteRange removes every key in [lower, upper). It is for whole tables and long stretches.
func (b *Batch) DeleteRange(lower, upper []byte) { _ = b.pebble.DeleteRange(lower, upper, nil) }

// Size returns the batch's length in the log, in bytes.
func (b *Batch) Size() int { return b.pebble.Len() }

// Len returns the number of operations in the batch.
func (b *Batch) Len() int { return int(b.pebble.Count()) }

// Empty reports whether the batch holds no operation.
func (b *Batch) Empty() bool { return b.pebble.Empty() }

// Reset empties a batch that has not been applied.
func (b *Batch) Reset() { b.pebble.Reset() }

// Close releases the batch. After Apply it waits for the disk first, because the log still refers
// to the batch until then.
func (b *Batch) Close() error {
	_ = b.pebble.SyncWait()
	return b.pebble.Close()
}

// Apply makes the batch visible and queues it for the disk, in the order of the calls, without
// waiting. A batch is applied once. After an error the store has stopped, and the batch may be on
// disk or not.
func (db *DB) Apply(b *Batch) error {
	if err := db.writable(); err != nil {
		return err
	}
	var err error
	if db.opts.Durability == Sync {
		err = db.pebble.ApplyNoSyncWait(b.pebble, pebble.Sync)
	} else {
		err = db.pebble.Apply(b.pebble, pebble.NoSync)
	}
	if err != nil {
		return fmt.Errorf("apply batch: %w", err)
	}
	if db.opts.Durability == Async {
		db.syncer.written()
	}
	return db.failure.err()
}

// Wait returns once an applied batch is as durable as the mode promises. After an error the store
// has stopped before: the batch must not be acknowledged, and may or may not survive the process.
func (db *DB) Wait(b *Batch) error {
	if err := b.pebble.SyncWait(); err != nil {
		db.failure.set(fmt.Errorf("sync the log: %w", err))
	}
	// The guard records a failed sync before Pebble continues, so it is visible here.
	err := db.failure.err()
	b.waited = err == nil
	return err
}

// Waited reports whether Wait has returned without an error. It is for checks of the owner.
func (b *Batch) Waited() bool { return b.waited }
