package program

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// dropStartPages takes the pages of the program's file out of this process, except from parts of it
// that were changed in memory, as a dynamic linker does. The start runs through most of the program
// once, and so brings in 20 MB that count as this process's memory; an idle server uses 3 to 10 MB of
// them. The system brings a page in again when it is used, from its own cache of the file. A failure
// changes nothing.
func dropStartPages() {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	var begin, end uintptr // of the mapping that a line belongs to; 0: not one of the file's for reading
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		line := lines.Text()
		var from, to uintptr
		var access string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &access); n == 3 {
			if begin, end = from, to; access[1] != '-' || !strings.HasSuffix(line, " "+self) {
				begin = 0
			}
		} else if begin != 0 && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, begin, end-begin, syscall.MADV_DONTNEED)
		}
	}
}
