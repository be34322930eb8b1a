package sim

import (
	"errors"
	"hash/fnv"
	"io"
	"runtime"
	"sync"

	"github.com/mayflydb/mayfly/internal/store/kv"
)

// errDisk is the error of a disk that fails.
var errDisk = errors.New("input/output error")

// disk is the disk of one life of a server.
type disk struct {
	*kv.CrashFS
	seed uint64
	life uint64
	slow int // percent of syncs in which others run

	mu      sync.Mutex
	syncs   map[string]uint64 // by file; guarded by mu
	failing bool              // all syncs fail; guarded by mu
}

func newDisk(fs *kv.CrashFS, room *kv.Room, seed, life uint64) *disk {
	d := &disk{CrashFS: fs, seed: seed, life: life, syncs: map[string]uint64{}}
	r := dice(seed, "disk", life)
	d.slow = []int{0, 20, 60, 100}[r.IntN(4)]
	// what a crash leaves of unsynced data: all, as after the end of the process only; nothing; or any
	// part of it, as after a power cut
	fs.KeepUnsynced([]int{100, 0, 30, 70}[r.IntN(4)], r.Uint64())
	fs.BeforeSync = d.beforeSync
	fs.Room = room
	return d
}

// beforeSync makes a sync take a while, in which all others run, and makes it fail.
//
// No virtual time passes meanwhile. Pebble holds locks during some syncs, and a bubble's time stands
// still as long as a goroutine waits for a lock.
func (d *disk) beforeSync(name string) error {
	d.mu.Lock()
	n := d.syncs[name]
	d.syncs[name]++
	failing := d.failing
	d.mu.Unlock()
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	r := dice(d.seed, "sync", d.life, h.Sum64(), n)
	if percent(r, d.slow) {
		for range 1 + r.IntN(30) {
			runtime.Gosched()
		}
	}
	if failing {
		return errDisk
	}
	return nil
}

// fail makes all syncs fail from now on.
func (d *disk) fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = true
}

// isFailing reports whether all syncs fail.
func (d *disk) isFailing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failing
}
