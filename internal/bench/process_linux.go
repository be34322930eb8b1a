package bench

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the CPU time that a process, all its threads together, has used. The kernel keeps a clock for each process, to the
// nanosecond, where /proc/PID/stat counts in hundredths of a second.
func processCPU(pid int) (time.Duration, bool) {
	const (
		scheduled = 2       // the third of the process's three clocks, and the one that does not guess
		pidMost   = 1 << 22 // the kernel's limit
	)
	if pid <= 0 || pid > pidMost {
		return 0, false
	}
	var at unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|scheduled, &at); err != nil {
		return 0, false
	}
	return time.Duration(at.Nano()), true
}

// machineLoad is the load average over the last minute; -1 where it is not known.
func machineLoad() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	var load float64
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		return -1
	}
	return load
}

// machineNames returns the CPU's model, and the distribution with its kernel; empty where they are
// not known.
func machineNames() (cpu, system string) {
	cpu = fieldOf("/proc/cpuinfo", "model name\t: ")
	var names unix.Utsname
	if unix.Uname(&names) == nil {
		system = "Linux " + unix.ByteSliceToString(names.Release[:])
	}
	if distribution := strings.Trim(fieldOf("/etc/os-release", "PRETTY_NAME="), `"`); distribution != "" {
		system = distribution + ", " + system
	}
	return cpu, system
}

// fieldOf returns the remainder of the first line that begins so; empty without such a line.
func fieldOf(file, beginning string) string {
	text, _ := os.ReadFile(file)
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+beginning)
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// residentBytes is the memory that a process has in use, and the most that it ever had; zero where that is not known.
func residentBytes(pid int) (now, most int64) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		var kilobytes int64
		if name == "VmRSS" || name == "VmHWM" {
			fmt.Sscan(value, &kilobytes)
		}
		switch name {
		case "VmRSS":
			now = kilobytes << 10
		case "VmHWM":
			most = kilobytes << 10
		}
	}
	return now, most
}
