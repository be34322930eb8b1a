package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Chunks of a log, as Pebble's record package writes them: checksum u32, length u16, kind u8, log
// number u32, synced offset u64, payload; little-endian, none across the border of a block.
const (
	logBlock      = 32 << 10
	chunkHeader   = 19
	chunkLogAt    = 7
	chunkSyncedAt = 11
	chunkFirst    = 9 // kinds 9 to 12 have this form
	chunkLast     = 12
)

// logTail describes the part of a log behind its first unreadable record.
type logTail struct {
	chunks   int  // valid ones of the same log
	damaged  bool // the unreadable record was on disk before
	lastSeen uint64
	syncs    int
}

// readTail reads the chunks behind the first unreadable record of a log, at offset end.
//
// A power cut may leave a hole in the unsynced part of a log, with valid chunks behind it, so valid
// chunks alone prove no damage. Each chunk stores the synced offset known when it was made. Pebble
// counts too little there (it leaves out blocks that it wrote whole), so that number is no reliable
// offset, but each growth of it stands for a finished sync. The first growth behind a chunk may
// come from a sync that began before the chunk was made, the second cannot. Therefore two growths
// among the chunks behind the unreadable record prove that it was on disk, and is damaged.
func readTail(f io.ReaderAt, number uint64, end int64) (logTail, error) {
	var tail logTail
	block := make([]byte, logBlock)
	for start := end / logBlock * logBlock; ; start += logBlock {
		n, err := f.ReadAt(block, start)
		skip := int(max(0, end+1-start)) // the chunk at end is unreadable
		if skip < n {
			tail.scan(block[:n], skip, uint32(number))
		}
		if errors.Is(err, io.EOF) {
			return tail, nil
		}
		if err != nil {
			return tail, err
		}
	}
}

// scan finds the valid chunks of a block from an offset on, at any position.
func (t *logTail) scan(block []byte, from int, number uint32) {
	name := binary.LittleEndian.AppendUint32(nil, number)
	for at := from; at < len(block); {
		i := bytes.Index(block[min(len(block), at+chunkLogAt):], name)
		if i < 0 {
			return
		}
		at += i
		if size := chunkSize(block[at:]); size > 0 {
			t.add(binary.LittleEndian.Uint64(block[at+chunkSyncedAt:]))
			at += size
		} else {
			at++
		}
	}
}

// chunkSize returns the length of the chunk at the beginning of b; 0 if there is no valid one.
func chunkSize(b []byte) int {
	if len(b) < chunkHeader || b[6] < chunkFirst || b[6] > chunkLast {
		return 0
	}
	size := chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0
	}
	sum := crc32.Checksum(b[6:size], castagnoli)
	// the mask of LevelDB's checksums
	if binary.LittleEndian.Uint32(b) != (sum>>15|sum<<17)+0xa282ead8 {
		return 0
	}
	return size
}

func (t *logTail) add(synced uint64) {
	t.chunks++
	if t.chunks > 1 && synced > t.lastSeen {
		t.syncs++
	}
	t.lastSeen = max(t.lastSeen, synced)
	t.damaged = t.syncs >= 2
}
