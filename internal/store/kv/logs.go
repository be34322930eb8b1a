package kv

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble allocates room for the largest memtable when it creates a log, and keeps up to three old
// logs for their room. With memtables of 48 MB an empty store took 300 MB. Here a log grows as it
// is written, and is removed when its memtable is flushed.

const (
	// A log doubles its room, within these limits.
	logRoomLeast = 256 << 10
	logRoomMost  = 4 << 20
)

// isLog reports whether name is a log's.
func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// logFile is a log open for writing.
type logFile struct {
	guardFile
	written atomic.Int64 // bytes; one writer at a time raises it, after the write
	room    int64        // bytes; used by that writer
}

// Preallocate implements vfs.File. Pebble asks for the largest memtable's room.
func (f *logFile) Preallocate(int64, int64) error { return nil }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	if end := f.written.Load() + int64(len(p)); end > f.room && !f.fs.dead() {
		more := min(max(f.room, logRoomLeast), logRoomMost)
		// Without the room the write continues, and reports itself whether the disk is full.
		_ = f.File.Preallocate(f.room, end+more-f.room)
		f.room = end + more
	}
	n, err := f.guardFile.Write(p)
	f.written.Add(int64(n))
	return n, err
}

// Close implements vfs.File. The file is whole then, and ends with its mark.
func (f *logFile) Close() error {
	err := f.guardFile.Close()
	f.fs.logs.Delete(f.fs.PathBase(f.name))
	return err
}

// noRecycling deletes obsolete files as Pebble's default does, and makes Pebble pass every log to
// it. (Pebble recycles no log if its cleaner needs the files' contents.)
type noRecycling struct {
	pebble.DeleteCleaner
	needsContents
}

// needsContents makes Pebble take a cleaner for one that needs the files' contents.
type needsContents struct{ pebble.ArchiveCleaner }
