package kv

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mayflydb/mayfly/internal/clock"
)

// guardFS stands between Pebble and the disk, and hides failures that Pebble cannot survive. (While
// it opens a store it retries a failed flush for ever; later it panics.) Files are of two kinds.
// Tables may fail: Pebble drops the flush or compaction and reports it. All others (log, manifest,
// their markers, the directory) are critical: the first failed write or sync of one stops the
// store, and guardFS reports success to Pebble. It records the failure first, and a caller that
// waited for the sync checks for a failure before it acknowledges anything.
//
// From the failure on the directory does not change. Writes to critical files and removals are
// dropped, so that every file of the manifest on disk stays. New files are created in memory, so
// that flushes end, stalled writers continue and Close returns.
//
// The files of a checkpoint, in another directory, pass through.
type guardFS struct {
	FS
	plain   FS // without the reserve: a checkpoint for which the disk lacks room fails
	dir     string
	logs    sync.Map // of the logs being written: base name → *logFile
	failure *failure
	journal *journal   // nil in Memory mode
	sums    *tableSums // nil in Memory mode
	after   *vfs.MemFS // files created after the failure
	reserve *reserve
	// a table could not be written for a temporary reason, and none has been tried since
	again   atomic.Bool
	closing chan struct{}
	bad     badBlocks
}

const (
	// retryTable is the pause before a table is created after another failed for a temporary
	// reason, since Pebble retries at once.
	retryTable = time.Second
	// The attempts to create a critical file without a free file descriptor: half a minute with the
	// pauses between.
	descriptorTries = 300
	// The attempts to open a file for reading: a second. Then the read fails.
	descriptorTriesRead = 10
	descriptorPause     = 100 * time.Millisecond
)

// newGuardFS returns the guard of a file system with its reserve.
func newGuardFS(opts Options, reserve *reserve, failure *failure) *guardFS {
	dir := opts.FS.PathDir(opts.FS.PathJoin(opts.Dir, "x")) // without a slash at its end
	return &guardFS{FS: reserve.wrap(opts.FS), plain: opts.FS, dir: dir, reserve: reserve, failure: failure, after: vfs.NewMem(), closing: make(chan struct{})}
}

// release ends all waits for room on the disk. Close calls it once, before it closes Pebble.
func (g *guardFS) release() { close(g.closing) }

// dead reports whether the directory must not change.
func (g *guardFS) dead() bool { return g.failure.first.Load() != nil }

// critical handles the result of a change of a critical file. An error stops the store. The caller
// then reports success to Pebble, which would not survive the error.
func (g *guardFS) critical(op, name string, err error) {
	if err != nil {
		g.failure.set(fmt.Errorf("%s %s: %w", op, filepath.Base(name), err))
	}
}

// isTable reports whether name has the extension of Pebble's tables.
func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// isMarker reports whether name is a marker: an empty file whose name identifies the current
// manifest or format.
func isMarker(name string) bool { return strings.HasPrefix(filepath.Base(name), "marker.") }

// syncDirectory makes the directory entries beside name durable. Pebble creates a manifest, then
// the marker that names it, and only then syncs the directory. A disk that kept the marker and lost
// the manifest would leave a store that cannot be opened.
func (g *guardFS) syncDirectory(name string) error {
	dir, err := g.withDescriptor(descriptorTries, func() (vfs.File, error) { return g.FS.OpenDir(g.FS.PathDir(name)) })
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if g.elsewhere(name) {
		return g.plain.Create(name, category)
	}
	if isMarker(name) && !g.dead() {
		g.critical("sync directory of", name, g.syncDirectory(name))
	}
	if g.dead() {
		return g.createAfter(name, category)
	}
	if isTable(name) {
		if g.again.Swap(false) {
			clock.Pause(retryTable, g.closing)
		}
		f, err := g.FS.Create(name, category)
		if err == nil && g.sums != nil {
			f = &summedFile{File: f, name: g.PathBase(name), sums: g.sums}
		}
		if err == nil && category != flushCategory {
			f = compactedFile{f, g.reserve}
		}
		return f, err
	}
	f, err := g.withDescriptor(descriptorTries, func() (vfs.File, error) { return g.FS.Create(name, category) })
	if err == nil {
		err = g.noteMarker(name)
	}
	return g.created("create", name, category, f, err)
}

// noteMarker records a new marker of the manifest in the journal, before Pebble removes the
// previous marker.
func (g *guardFS) noteMarker(name string) error {
	l := listFiles([]string{g.PathBase(name)})
	if g.journal == nil || len(l.manifestMarkers) == 0 {
		return nil
	}
	if err := g.syncDirectory(name); err != nil {
		return err
	}
	var manifest uint64
	if _, err := fmt.Sscanf(l.manifestMarkers[0].value, "MANIFEST-%d", &manifest); err != nil {
		return err
	}
	return g.journal.manifestCurrent(manifest)
}

func (g *guardFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if g.dead() {
		return g.createAfter(newname, category)
	}
	f, err := g.withDescriptor(descriptorTries, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
	return g.created("reuse", newname, category, f, err)
}

// withDescriptor opens a file, and retries for a while if no file descriptor is free. A writer that
// needs a new log waits.
func (g *guardFS) withDescriptor(tries int, open func() (vfs.File, error)) (f vfs.File, err error) {
	for range tries {
		if f, err = open(); err == nil || !isOutOfDescriptors(err) {
			break
		}
		clock.Pause(descriptorPause, g.closing)
	}
	return f, err
}

// flushCategory is Pebble's name for the writes of a memtable's table.
const flushCategory vfs.DiskWriteCategory = "pebble-memtable-flush"

// compactedFile is a table that a compaction writes. It leaves room for the log.
type compactedFile struct {
	vfs.File
	reserve *reserve
}

func (f compactedFile) Write(p []byte) (int, error) {
	if err := f.reserve.roomFor(len(p)); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// created wraps a new critical file. If its creation failed, the store stops, and the file that
// created returns is in memory.
func (g *guardFS) created(op, name string, category vfs.DiskWriteCategory, f vfs.File, err error) (vfs.File, error) {
	if err == nil {
		file := guardFile{File: f, fs: g, name: name}
		g.noteCreated(&file)
		if isLog(name) {
			log := &logFile{guardFile: file}
			g.logs.Store(g.PathBase(name), log)
			return log, nil
		}
		return &file, nil
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	g.critical(op, name, err)
	return g.createAfter(name, category)
}

// noteCreated prepares a new critical file for the journal: a log is listed once its directory
// entry is on disk, and a MANIFEST is claimed up to each synced length.
func (g *guardFS) noteCreated(f *guardFile) {
	if g.journal == nil {
		return
	}
	l := listFiles([]string{g.PathBase(f.name)})
	for _, number := range l.logs {
		g.journal.logMade(number)
	}
	for _, number := range l.manifests {
		f.manifest = &claim{manifest: number}
	}
}

// createAfter creates a file in memory, in a directory that may be missing there.
func (g *guardFS) createAfter(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.after.MkdirAll(g.after.PathDir(name), 0o755); err != nil {
		return nil, err
	}
	return g.after.Create(name, category)
}

func (g *guardFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.dead() {
		if f, err := g.after.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	if g.elsewhere(name) {
		return g.plain.Open(name, opts...)
	}
	f, err := g.withDescriptor(descriptorTriesRead, func() (vfs.File, error) {
		if isLog(name) {
			return g.openLog(name, opts)
		}
		return g.FS.Open(name, opts...)
	})
	if err == nil && isTable(name) {
		f = tableFile{File: f, name: g.PathBase(name), bad: &g.bad}
	}
	return f, err
}

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	if g.elsewhere(g.PathJoin(name, "x")) {
		return g.plain.OpenDir(name)
	}
	f, err := g.withDescriptor(descriptorTries, func() (vfs.File, error) { return g.FS.OpenDir(name) })
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, fs: g, name: name, directory: true}, nil
}

// List implements FS. Pebble takes the journal's name for a damaged marker's.
func (g *guardFS) List(dir string) ([]string, error) {
	names, err := g.FS.List(dir)
	return slices.DeleteFunc(names, isJournal), err
}

func (g *guardFS) Stat(name string) (vfs.FileInfo, error) {
	if g.dead() {
		if info, err := g.after.Stat(name); err == nil {
			return info, nil
		}
	}
	return g.FS.Stat(name)
}

// MkdirAll implements FS. Pebble makes the directory of a checkpoint readable for everyone.
func (g *guardFS) MkdirAll(name string, mode fs.FileMode) error {
	if g.elsewhere(g.PathJoin(name, "x")) {
		return g.plain.MkdirAll(name, directoryMode)
	}
	return g.FS.MkdirAll(name, mode)
}

func (g *guardFS) Remove(name string) error {
	if g.elsewhere(name) {
		return g.plain.Remove(name)
	}
	if !g.dead() {
		if g.sums != nil && isTable(name) {
			g.sums.byName.Delete(g.PathBase(name))
		}
		return g.FS.Remove(name)
	}
	return ignoreMissing(g.after.Remove(name))
}

// ignoreMissing drops the error about a file that was created before the failure, and so is not in
// memory.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Link implements FS. Only a checkpoint makes links.
func (g *guardFS) Link(oldname, newname string) error { return g.plain.Link(oldname, newname) }

func (g *guardFS) RemoveAll(name string) error {
	if g.elsewhere(name) {
		return g.plain.RemoveAll(name)
	}
	if g.dead() {
		return g.after.RemoveAll(name)
	}
	return g.FS.RemoveAll(name)
}

func (g *guardFS) Rename(oldname, newname string) error {
	if g.elsewhere(newname) {
		return g.plain.Rename(oldname, newname)
	}
	if !g.dead() {
		g.critical("rename", oldname, g.FS.Rename(oldname, newname))
		return nil
	}
	return ignoreMissing(g.after.Rename(oldname, newname))
}

func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// guardFile is a critical file.
type guardFile struct {
	vfs.File
	fs        *guardFS
	name      string
	directory bool
	manifest  *claim // of a MANIFEST: the length and checksum written; nil for all other files
}

func (f *guardFile) Write(p []byte) (int, error) {
	if !f.fs.dead() {
		// before the write, which may overwrite p, and does so in builds with checks
		if f.manifest != nil {
			f.manifest.length += int64(len(p))
			f.manifest.sum = crc32.Update(f.manifest.sum, castagnoli, p)
		}
		_, err := f.File.Write(p)
		f.fs.critical("write", f.name, err)
	}
	return len(p), nil
}

func (f *guardFile) WriteAt(p []byte, offset int64) (int, error) {
	if !f.fs.dead() {
		_, err := f.File.WriteAt(p, offset)
		f.fs.critical("write", f.name, err)
	}
	return len(p), nil
}

func (f *guardFile) Sync() error { return f.sync(f.File.Sync) }

func (f *guardFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *guardFile) sync(sync func() error) error {
	if !f.fs.dead() {
		f.fs.critical("sync", f.name, f.recorded(sync))
	}
	return nil
}

// recorded syncs the file, and records that in the journal before Pebble learns of it.
func (f *guardFile) recorded(sync func() error) error {
	j := f.fs.journal
	if j == nil || !f.directory && f.manifest == nil {
		return sync()
	}
	made := j.logsMade()
	if err := sync(); err != nil {
		return err
	}
	if f.manifest != nil {
		return j.manifestSynced(*f.manifest)
	}
	return j.directorySynced(made)
}

// SyncTo implements vfs.File. Without a full sync it promises nothing, but its error may be the
// only one that the system ever reports.
func (f *guardFile) SyncTo(length int64) (fullSync bool, err error) {
	if f.fs.dead() {
		return true, nil
	}
	fullSync, err = f.File.SyncTo(length)
	f.fs.critical("sync", f.name, err)
	return fullSync, nil
}

// Close implements vfs.File. A failed close may mean that the last bytes were not written.
func (f *guardFile) Close() error {
	err := f.File.Close()
	if !f.fs.dead() {
		f.fs.critical("close", f.name, err)
	}
	return nil
}
