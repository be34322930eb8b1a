package kv

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mayflydb/mayfly/internal/clock"
)

// badBlocks caches the offsets of blocks with a wrong checksum, so that another read of one fails
// at once. Pebble searches for the flipped bit of such a block with a checksum for each of its
// bits, which takes a tenth of a second of CPU and more at every read.
type badBlocks struct {
	known atomic.Bool // there are some
	mu    sync.Mutex
	since map[badBlock]clock.Elapsed
}

type badBlock struct {
	file   string
	offset int64
}

// maxBadBlocks bounds the memory. Beyond it every read of a bad block takes its full time.
const maxBadBlocks = 4096

// blockOffset matches the block in Pebble's text of a checksum mismatch.
var blockOffset = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`block (\d+)/\d+: .*checksum mismatch`)
})

// add takes the block from Pebble's error about a file.
func (b *badBlocks) add(file string, fault error) {
	found := blockOffset().FindStringSubmatch(fault.Error())
	if found == nil {
		return
	}
	offset, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since == nil {
		b.since = map[badBlock]clock.Elapsed{}
	}
	if block := (badBlock{file, offset}); len(b.since) < maxBadBlocks || b.since[block] != nil {
		b.since[block] = clock.Stopwatch()
	}
	b.known.Store(true)
}

// check returns an error if the block at an offset was found bad within the last minute. Later it
// is read again: the memory may have been at fault and not the disk.
func (b *badBlocks) check(file string, offset int64) error {
	if !b.known.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	block := badBlock{file, offset}
	elapsed, known := b.since[block]
	if !known {
		return nil
	}
	if elapsed() >= repeatEvery {
		delete(b.since, block)
		return nil
	}
	return &unreadable{fmt.Errorf("%s: block %d: checksum mismatch", file, offset)}
}
