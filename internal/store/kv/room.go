package kv

import (
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Room is the room on the disk of a CrashFS, which outlives crashes. The zero value has plenty.
type Room struct {
	mu    sync.Mutex
	short bool  // another program has used up the rest of the disk; guarded by mu
	free  int64 // bytes, if it is short; guarded by mu
}

// Fill leaves so many bytes free.
func (r *Room) Fill(free int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.short, r.free = true, free
}

// Clear makes room for all that is written from now on.
func (r *Room) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.short = false
}

// IsShort reports whether the disk is filled.
func (r *Room) IsShort() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.short
}

// take uses up to n bytes, and returns how many there were.
func (r *Room) take(n int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short {
		n = min(n, r.free)
		r.free -= n
	}
	return n
}

// plenty is the free room of a disk that is not short, in bytes.
const plenty = 1 << 40

func (r *Room) available() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short {
		return r.free
	}
	return plenty
}

// write writes p, or the beginning of it for which there is room. A nil Room has plenty.
func (r *Room) write(p []byte, write func([]byte) (int, error)) (int, error) {
	if r == nil {
		return write(p)
	}
	taken := int(r.take(int64(len(p))))
	if taken == 0 && len(p) > 0 {
		return 0, syscall.ENOSPC
	}
	n, err := write(p[:taken])
	if err == nil && taken < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// free performs an operation that frees the room of a file's content.
func (c *CrashFS) free(name string, op func() error) error {
	var size int64
	if info, err := c.Stat(name); err == nil && !info.IsDir() {
		size = info.Size()
	}
	err := op()
	if err == nil && c.Room != nil {
		c.Room.take(-size)
	}
	return err
}

func (c *CrashFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if c.Room == nil {
		return c.FS.GetDiskUsage(path)
	}
	free := uint64(c.Room.available())
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: plenty, UsedBytes: plenty - free}, nil
}
