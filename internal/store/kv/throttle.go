package kv

import (
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mayflydb/mayfly/internal/clock"
)

// Writes that outrun the compactions make level 0 deep, and reads slow. Pebble can make writes wait
// for that, but it would wait for ever over a damaged table file, which no compaction removes. So
// the store waits itself, and only for compactions that succeed.

const (
	// deepestLevelZero is the number of tables of level 0 that a read may visit before writes wait
	// for compactions.
	deepestLevelZero = 64
	throttlePause    = 5 * time.Millisecond
)

// stopWritesAt is Pebble's own limit. Without a log, throttle would never be called, and no file
// can be damaged: so Pebble waits itself.
func stopWritesAt(d Durability) int {
	if d == Memory {
		return deepestLevelZero
	}
	return math.MaxInt
}

// logCreated delays the write that begins a new memtable while level 0 is too deep, and fits the
// reserve. Pebble calls it with each new log, in the middle of a write, without a lock that
// compactions need.
func (db *DB) logCreated(pebble.WALCreateInfo) {
	db.throttle()
	db.fitReserve()
}

// throttle waits while level 0 is too deep. It returns when a compaction fails, for lack of room or
// because of damage. It does not wait while a damaged file is known or the disk is full: then
// writes that grow the data are refused, and deletes and the healer's flush help.
func (db *DB) throttle() {
	if !db.opened.Load() {
		return
	}
	failed := db.compactions.failed.Load()
	for db.pebble.Metrics().Levels[0].Sublevels >= deepestLevelZero {
		if db.compactions.failed.Load() != failed || len(db.Damages()) > 0 || db.Full() || db.writable() != nil {
			return
		}
		clock.Pause(throttlePause, db.guard.closing)
	}
}
