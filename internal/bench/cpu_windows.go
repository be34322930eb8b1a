package bench

import (
	"time"

	"golang.org/x/sys/windows"
)

// selfCPU returns the CPU time of this process.
func selfCPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	return hundredNanos(kernel) + hundredNanos(user)
}

func hundredNanos(t windows.Filetime) time.Duration {
	return time.Duration(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) * 100
}
