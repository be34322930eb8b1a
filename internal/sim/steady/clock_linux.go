package steady

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stopClock makes the machine's clock stand still for a program that stands before its first
// instruction. Go's locks ask it how long a goroutine has waited, and hand themselves over after a
// millisecond (sync.Mutex, "starvation mode"); so beside other programs the order of goroutines would
// depend on the time.
//
// A program reads the clock by a function that the kernel puts into its memory (man 7 vdso). It is
// replaced by one that always answers the same.
func stopClock(pid int, library uintptr) error {
	code, known := stoppedClock[runtime.GOARCH]
	if !known || library == 0 { // the kernel can be told to give programs no library: then they ask it by calls
		return errors.New("the clock of this machine cannot be stopped")
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer memory.Close()
	image := make([]byte, 8<<10) // at most two pages; a part may be missing at the end
	n, err := memory.ReadAt(image, int64(library))
	if n == 0 {
		return err
	}
	at, err := clockIn(image[:n], uint64(len(code)))
	if err != nil {
		return err
	}
	_, err = unix.PtracePokeData(pid, library+at, code)
	return err
}

// clockIn returns where the clock is in the kernel's library, which must have room for so many bytes
// there: behind it may be another function.
func clockIn(library []byte, size uint64) (at uintptr, err error) {
	file, err := elf.NewFile(bytes.NewReader(library))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name != "__vdso_clock_gettime" {
			continue
		}
		if s.Size < size {
			return 0, fmt.Errorf("the kernel's clock takes %d bytes, less than %d", s.Size, size)
		}
		return uintptr(s.Value), nil
	}
	return 0, errors.New("the kernel's library has no clock")
}

// stoppedClock is clock_gettime in the processor's language.
var stoppedClock = map[string][]byte{
	"amd64": {
		0x48, 0xc7, 0x06, 0x00, 0x00, 0x00, 0x10, // movq $0x10000000, (%rsi): the seconds
		0x48, 0xc7, 0x46, 0x08, 0x00, 0x00, 0x00, 0x00, // movq $0, 8(%rsi): the nanoseconds
		0x31, 0xc0, // xorl %eax, %eax
		0xc3, // ret
	},
}
