//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// selfCPU returns the CPU time of this process.
func selfCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
