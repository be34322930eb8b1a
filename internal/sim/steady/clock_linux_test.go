package steady

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

// TestClockIn: a clock that is too small for the code that replaces it is left alone, and so is a
// library without one.
func TestClockIn(t *testing.T) {
	_, at, err := vector(os.Getpid())
	if err != nil || at == 0 {
		t.Skip("this machine's kernel hands no library to programs")
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip(err)
	}
	defer memory.Close()
	image := make([]byte, 8<<10)
	n, err := memory.ReadAt(image, int64(at))
	if n == 0 {
		t.Fatal(err)
	}
	image = image[:n]
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range symbols {
		if s.Name != "__vdso_clock_gettime" {
			continue
		}
		if got, err := clockIn(image, s.Size); err != nil || got != uintptr(s.Value) {
			t.Errorf("the clock is at %d, %v; want %d", got, err, s.Value)
		}
		// symbols leaves out the first one; a size is the last word of an entry of 24 bytes
		size := image[file.Section(".dynsym").Offset+uint64(i+1)*24+16:][:8]
		binary.NativeEndian.PutUint64(size, 5)
		if _, err := clockIn(image, 18); err == nil || !strings.Contains(err.Error(), "takes 5 bytes, less than 18") {
			t.Errorf("a clock of 5 bytes: %v", err)
		}
		name := bytes.Index(image, []byte("__vdso_clock_gettime\x00"))
		image[name] = 'x'
		if _, err := clockIn(image, 1); err == nil || !strings.Contains(err.Error(), "has no clock") {
			t.Errorf("a library without a clock: %v", err)
		}
		return
	}
	t.Skip("this machine's kernel has no such clock")
}
