package program

import (
	"testing"
	"time"
)

// The time left follows the rate of the last minute, not that since the beginning.
func TestTimeLeftFollowsTheRecentRate(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &recentRate{}
	want := func(done, total int64, want time.Duration) {
		t.Helper()
		if got := r.left(now, done, total); got != want {
			t.Errorf("with %d of %d the time left is %v, not %v", done, total, got, want)
		}
	}
	want(0, 100, 0) // unknown: nothing was reported
	var done int64
	run := func(seconds int, each int64) {
		for range seconds {
			r.note(now, done)
			now = now.Add(time.Second)
			done += each
		}
		r.note(now, done)
	}
	run(60, 1000)
	want(done, done+10_000, 10*time.Second)
	run(120, 10) // the fast minute is over
	want(done, done+600, time.Minute)
	if most := int(rateWindow/rateEvery) + 1; len(r.samples) > most {
		t.Errorf("%d samples are kept, more than %d", len(r.samples), most)
	}
	want(done, done, 0)
	want(done, done-1, 0)
	want(done, 0, 0) // the total is unknown
	done = 5         // it has begun again
	r.note(now, done)
	want(done, 100, 0)
	now = now.Add(10 * time.Second)
	want(done, 100, 0) // nothing was done since
	want(done+1, 1<<62, 1e9*time.Second)
}
