//go:build unix

package engine

import (
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// A change in a table without a stream does not read its images: they lie in memory that cannot be
// read. With a feed the change does read them.
func TestUnstreamedImagesUnread(t *testing.T) {
	d := openMemory(t)
	tab := d.table("events", func(td *TableDesc) { td.Stream.ViewType = "" })
	const size = 4096
	memory, err := syscall.Mmap(-1, 0, 2*size, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	key := keyOf(t, tab, item("pk", "a", "sk", 1))
	faults := func() (faulted bool) {
		defer func() { faulted = recover() != nil }()
		record, feed := d.recordsFor(tab.Desc(), key, dynamo.Item(memory[:size]), dynamo.Item(memory[size:]), false)
		if record.stream != nil || feed != nil {
			t.Error("a table without a stream has a record")
		}
		return false
	}
	if faults() {
		t.Error("images are read without a stream")
	}
	d.feed(tab, feedOne)
	if !faults() {
		t.Error("with a feed the images are not read, so the test shows nothing")
	}
}
