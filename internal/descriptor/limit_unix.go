//go:build unix

package descriptor

import "golang.org/x/sys/unix"

// limit returns the number of descriptors that the process may use. Go has raised it to the most
// that the system allows.
func limit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || uint64(l.Cur) > unlimited {
		return unlimited
	}
	return int(l.Cur)
}
