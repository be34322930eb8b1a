package clock

import "time"

// Timer is a pending call of AfterFunc.
type Timer interface {
	// Stop prevents the call, and reports whether it did.
	Stop() bool
}

// AfterFunc calls f in its own goroutine after d of real time, independent of any Clock. It is for
// windows that concern the machine, such as the time until bytes reach the disk.
func AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Pause waits for d of real time, or until stop is closed.
func Pause(d time.Duration, stop <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}

// Elapsed returns the real time since the call of Stopwatch, by the monotonic clock.
type Elapsed func() time.Duration

// Stopwatch starts to measure real time.
func Stopwatch() Elapsed {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
