package program

import "time"

const (
	rateWindow = time.Minute // over which the recent rate is measured
	rateEvery  = time.Second // between two samples, at least
)

// recentRate estimates the time left of an activity from its rate in the last minute, since a scan
// may slow down: the endpoint throttles it, or removals go first.
type recentRate struct {
	samples []rateSample // the oldest first; at most rateWindow / rateEvery, and one more
}

type rateSample struct {
	at   time.Time
	done int64
}

// note records that so many units were done at an instant.
func (r *recentRate) note(now time.Time, done int64) {
	if n := len(r.samples); n > 0 {
		last := r.samples[n-1]
		if done < last.done { // it has begun again
			r.samples = nil
		} else if now.Sub(last.at) < rateEvery {
			return
		}
	}
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= rateWindow {
		r.samples = r.samples[1:]
	}
	r.samples = append(r.samples, rateSample{now, done})
}

// left returns the time until total units are done, in whole seconds; 0 if it is unknown.
func (r *recentRate) left(now time.Time, done, total int64) time.Duration {
	if len(r.samples) == 0 || total <= done {
		return 0
	}
	first := r.samples[0]
	passed := now.Sub(first.at)
	if passed < rateEvery || done <= first.done {
		return 0
	}
	seconds := passed.Seconds() * float64(total-done) / float64(done-first.done)
	const most = 1e9 // seconds: nothing that runs longer has a useful estimate
	return time.Duration(min(seconds+0.5, most)) * time.Second
}
