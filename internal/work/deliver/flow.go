package deliver

import "time"

// flow measures how fast a lane takes tasks. The lane's lock guards it.
type flow struct {
	// time at which a task was last taken, or arrived while a worker was free
	started time.Duration
	waited  time.Duration // how long that task had waited

	// the tasks of a second or more
	since     time.Duration
	n         int
	perSecond float64 // in the period before
}

const (
	// A lane flows if it has recently begun a task that had not waited for long. Deliver waits for
	// a full lane only while it flows; a slow or dead target has its excess parked.
	flowLatest = 500 * time.Millisecond
	flowWait   = 2 * time.Second
)

// count adds n taken tasks. The last of them was queued at began.
func (f *flow) count(now, began time.Duration, n int) {
	f.started, f.waited = now, now-began
	f.n += n
	if passed := now - f.since; passed >= time.Second {
		f.since, f.n, f.perSecond = now, 0, float64(f.n)/passed.Seconds()
	}
}

// lasts reports whether the lane takes tasks about as fast as they arrive.
func (f *flow) lasts(now time.Duration) bool {
	return now-f.started < flowLatest && f.waited < flowWait
}
