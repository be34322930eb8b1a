package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time of a process with all its threads; zero if it is unknown. The
// kernel has a clock per process with nanoseconds, while /proc/PID/stat counts hundredths of a second.
func ProcessCPU(pid int) time.Duration {
	const (
		scheduled = 2       // the third of the process's three clocks, the exact one
		pidMost   = 1 << 22 // the kernel's limit
	)
	var at unix.Timespec
	if pid <= 0 || pid > pidMost || unix.ClockGettime(^int32(pid)<<3|scheduled, &at) != nil {
		return 0
	}
	return time.Duration(at.Nano())
}

// machineLoad returns the load average over the last minute, or -1 if unknown.
func machineLoad() float64 {
	load := -1.0
	fmt.Sscan(fieldOf("/proc/loadavg", ""), &load)
	return load
}

// machineNames returns the CPU's model, and the distribution with its kernel; empty if unknown.
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

// fieldOf returns the rest of the first line with a prefix, or "".
func fieldOf(file, beginning string) string {
	text, _ := os.ReadFile(file)
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+beginning)
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// residentBytes returns the resident memory of a process, and its maximum; zero if unknown.
func residentBytes(pid int) (now, most int64) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	fmt.Sscan(fieldOf(file, "VmRSS:"), &now)
	fmt.Sscan(fieldOf(file, "VmHWM:"), &most)
	return now << 10, most << 10
}

// ProcessWritten returns the bytes that a process has sent to the disk; -1 if they are unknown.
func ProcessWritten(pid int) (bytes int64) {
	bytes = -1
	fmt.Sscan(fieldOf(fmt.Sprintf("/proc/%d/io", pid), "write_bytes:"), &bytes)
	return bytes
}

// ListenerPID returns the process that listens on a TCP port of this machine; 0 if there is none,
// or none that may be inspected.
func ListenerPID(port string) int {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0
	}
	for _, list := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if socket := listeningSocket(list, n); socket != "" {
			return socketOwner(socket)
		}
	}
	return 0
}

// listeningSocket returns the inode of the socket that listens on the port, from /proc/net/tcp: the
// local address is the second column, the state (0A: listening) the fourth, the inode the tenth.
func listeningSocket(list string, port uint64) string {
	text, _ := os.ReadFile(list)
	end := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(text)) {
		if columns := strings.Fields(line); len(columns) >= 10 && columns[3] == "0A" && strings.HasSuffix(columns[1], end) {
			return columns[9]
		}
	}
	return ""
}

// socketOwner returns the process that has the socket open.
func socketOwner(inode string) int {
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			return pid
		}
	}
	return 0
}
