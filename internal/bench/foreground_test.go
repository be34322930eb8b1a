package bench

import (
	"sync/atomic"
	"testing"
	"time"
)

// slowOnce is a connection whose next call takes long if slow is set.
type slowOnce struct{ slow *atomic.Bool }

const slowCall = 400 * time.Millisecond

func (c slowOnce) call() error {
	if c.slow.CompareAndSwap(true, false) {
		time.Sleep(slowCall)
	}
	return nil
}

func (slowOnce) close() {}

// A slow call delays no other while a connection is idle. Without one, calls count from their
// planned starts, in the phase in which they end.
func TestForegroundIsOpen(t *testing.T) {
	for connections, waiting := range map[int]bool{1: true, 8: false} {
		slow := new(atomic.Bool)
		o := &operation{name: "GetItem", perS: 200}
		for range connections {
			o.connections = append(o.connections, slowOnce{slow})
		}
		f := startCalls(t.Context(), []*operation{o})
		time.Sleep(100 * time.Millisecond)
		calm := f.phase()
		slow.Store(true)
		time.Sleep(time.Second)
		figures := f.figures(calm, f.phase())
		f.stop()
		if len(figures) != 1 || figures[0].PerS != 200 || figures[0].IdleCalls == 0 {
			t.Fatalf("%d connections: %+v", connections, figures)
		}
		if f := figures[0]; f.DuringCalls < 100 || f.DuringCalls > 220 {
			t.Errorf("%d connections: %d calls in a second", connections, f.DuringCalls)
		}
		if most := figures[0].DuringP99MS; waiting != (most > millis(slowCall)*0.8) {
			t.Errorf("%d connections: 99 %% of the calls took up to %v ms", connections, most)
		}
	}
}
