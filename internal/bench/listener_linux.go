package bench

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenerPID returns the process that listens on a TCP port of this machine; 0 if there is none,
// or none that may be inspected.
func listenerPID(port string) int {
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
	f, err := os.Open(list)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) < 10 || columns[3] != "0A" {
			continue
		}
		_, hex, _ := strings.Cut(columns[1], ":")
		if p, err := strconv.ParseUint(hex, 16, 16); err == nil && p == port {
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
