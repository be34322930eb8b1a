package kv

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/descriptor"
)

// FS is a file system. The operating system's is the default; tests pass one that crashes or fails.
type FS = vfs.FS

// NewMemFS returns an empty file system in memory.
func NewMemFS() FS { return vfs.NewMem() }

// Durability is the failure that an acknowledged write survives.
type Durability int

const (
	Sync   Durability = iota // it is on disk
	Async                    // it will be on disk within Options.AsyncWindow
	Memory                   // nothing: no log is written
)

// String returns the name used in options and logs.
func (d Durability) String() string {
	switch d {
	case Sync:
		return "sync"
	case Async:
		return "async"
	case Memory:
		return "memory"
	}
	return fmt.Sprintf("Durability(%d)", int(d))
}

// Options for Open. The zero value of a field means its default.
type Options struct {
	// Dir is the data directory, created if it is missing. It may be empty in Memory mode and with
	// an FS of one's own.
	Dir string
	// FS holds the directory. Default: the operating system's, or a fresh one in memory in Memory
	// mode.
	FS FS
	// Durability of writes. Default Sync.
	Durability Durability
	// CacheBytes is the least room for the block cache. Default 64 MB. The cache also uses the room
	// that the memtables leave, so together they take at most CacheBytes + 2 × MemTableBytes.
	// Without cgo that lies on the Go heap, where it may count double.
	CacheBytes int64
	// MemTableBytes is the greatest size of one memtable. Default 48 MB, and at most a 16th of the
	// disk; the first ones of a store are smaller. At most two exist at once.
	MemTableBytes int64
	// ReserveBytes is the largest size of the reserve file, which is removed when the disk is full.
	// It grows with the memtables. Default 64 MB, and at most a 12th of the disk, for a directory
	// of the operating system's, else none; negative: none.
	ReserveBytes int64
	// AsyncWindow is the longest time until a write of Async mode is on disk. Default 50 ms.
	AsyncWindow time.Duration
	// Essential is the upper bound of the keys that the owner of the store cannot do without. Open
	// refuses a directory in which a damaged table file may hold such a key. Nil: there are none.
	Essential []byte
	// Logger receives Pebble's messages, at debug level, and failures, at error level. Default:
	// discards.
	Logger *slog.Logger
}

const (
	leastMemTableBytes   = 4 << 20
	defaultCacheBytes    = 64 << 20
	defaultMemTableBytes = 48 << 20
	memTablesMax         = 2 // one that is written and one that waits to be flushed
	defaultReserveBytes  = 64 << 20
	defaultAsyncWindow   = 50 * time.Millisecond
	defaultDir           = "data"
)

// withDefaults fills in defaults and reports every field that is out of range.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Durability < Sync || o.Durability > Memory {
		errs = append(errs, fmt.Errorf("unknown durability %d", int(o.Durability)))
	}
	if o.Dir == "" {
		if o.FS == nil && o.Durability != Memory {
			errs = append(errs, errors.New("missing data directory; only durability memory needs none"))
		}
		o.Dir = defaultDir
	}
	if o.CacheBytes < 0 || o.MemTableBytes < 0 || o.AsyncWindow < 0 {
		errs = append(errs, errors.New("sizes and durations cannot be negative"))
	}
	if o.MemTableBytes > 1<<30 {
		errs = append(errs, errors.New("a memtable is at most 1 GB"))
	}
	o.mounted()
	if o.ReserveBytes == 0 && o.FS == nil && o.Durability != Memory {
		o.ReserveBytes = defaultReserveBytes
	}
	o.ReserveBytes = max(o.ReserveBytes, 0)
	if o.FS == nil && o.Durability == Memory {
		o.FS = NewMemFS()
	}
	o.FS = cmp.Or[FS](o.FS, privateFS{vfs.Default})
	o.CacheBytes = cmp.Or(o.CacheBytes, defaultCacheBytes)
	o.MemTableBytes = cmp.Or(o.MemTableBytes, defaultMemTableBytes)
	o.AsyncWindow = cmp.Or(o.AsyncWindow, defaultAsyncWindow)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o, errors.Join(errs...)
}

// fitDisk lowers those defaults that are too large for a small disk. given are the options before
// defaults: what the caller has set stays. The directory must exist.
func (o Options) fitDisk(given Options) Options {
	usage, err := o.FS.GetDiskUsage(o.Dir)
	if err != nil {
		return o
	}
	if given.MemTableBytes == 0 {
		o.MemTableBytes = min(o.MemTableBytes, max(int64(usage.TotalBytes/16), leastMemTableBytes))
	}
	if given.ReserveBytes == 0 {
		o.ReserveBytes = min(o.ReserveBytes, max(int64(usage.TotalBytes/12), leastReserve))
	}
	return o
}

// formatVersion pins Pebble's file format, so that a newer Pebble does not silently write a format
// that an older mayfly cannot read.
const formatVersion = pebble.FormatTableFormatV6

// pebbleOptions returns Pebble's options. The numbers suit two cores and a process that shares its
// memory with a server.
func pebbleOptions(o Options) *pebble.Options {
	p := &pebble.Options{
		FormatMajorVersion: formatVersion,
		DisableWAL:         o.Durability == Memory,
		Cleaner:            noRecycling{},
		MaxOpenFiles:       descriptor.ForStore(),
		// Pebble takes the memtables' room out of the cache's
		CacheSize:                   o.CacheBytes + memTablesMax*o.MemTableBytes,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: memTablesMax,
		L0CompactionThreshold:       4, // 2 costs a put 15 % more CPU and makes queries 5 % cheaper
		L0StopWritesThreshold:       stopWritesAt(o.Durability),
		BytesPerSync:                128 << 10, // at 512 KB, the p99 of PutItem beside a burst is a tenth higher
	}
	for i := range p.Levels {
		p.Levels[i].BlockSize = 8 << 10
		p.Levels[i].IndexBlockSize = 128 << 10
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	return p
}
