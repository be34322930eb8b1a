package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// The reaper pauses if there were calls: longer if its pauses end late, and shorter if its backlog
// is old.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const least = shareLeast * 1000 // nanoseconds, after a slice of a microsecond
		var p pace
		var age time.Duration
		pause := func(calls int64, took time.Duration) time.Duration {
			start := time.Now()
			p.giveWay(t.Context(), calls, took, age)
			return time.Since(start)
		}
		if got := pause(0, time.Millisecond); got != 0 {
			t.Errorf("pauses %s without a call", got)
		}
		if got := pause(1, time.Microsecond); got != least {
			t.Errorf("pauses %s with processors to spare", got)
		}
		for range pausesLeft - 1 {
			if got := pause(1, time.Microsecond); got == 0 {
				t.Error("the pauses end soon after a call")
			}
		}
		if got := pause(1, time.Millisecond); got != 0 {
			t.Errorf("pauses %s long after a call", got)
		}
		for range 100 {
			p.learn(2 * pauseCrowded)
		}
		if got := pause(2, time.Microsecond); got != shareMost*time.Microsecond {
			t.Errorf("pauses %s where processors are short", got)
		}
		if got := pause(3, time.Second); got != pauseMost {
			t.Errorf("pauses %s after a long slice", got)
		}
		for range 1000 {
			p.learn(0)
		}
		if got := pause(4, time.Microsecond); got != least {
			t.Errorf("pauses %s once there are processors again", got)
		}
		time.Sleep(pauseForgets)
		p.begin(5)
		if got := pause(5, time.Microsecond); got == 0 {
			t.Error("a short gap in the backlog ends the pauses")
		}
		time.Sleep(pauseForgets + 1)
		p.begin(6)
		if got := pause(6, time.Millisecond); got != 0 {
			t.Errorf("a new backlog pauses %s for calls before it", got)
		}
		if got := pause(7, time.Microsecond); got != least {
			t.Errorf("pauses %s for a call in a new backlog", got)
		}
		age = 10 * patience
		if got := pause(8, time.Second); got != pauseMost/10 {
			t.Errorf("pauses %s while its backlog grows old", got)
		}
	})
}
