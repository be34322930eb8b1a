//go:build unix

package kv

import (
	"path/filepath"
	"syscall"
	"testing"
)

// On the operating system's file system the reserve takes real room.
func TestReserveIsAllocated(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Options{Dir: dir, ReserveBytes: 4 << 20})
	if db.Full() {
		t.Skip("no room here for a reserve of 4 MB")
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, reserveName), &stat); err != nil {
		t.Fatal(err)
	}
	if got := stat.Blocks * 512; got < 4<<20 {
		t.Errorf("the reserve holds %d bytes", got)
	}
}
