package trigger_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/trigger"
	"github.com/mayflydb/mayfly/target"
)

// drowsyClock is a clock whose sleepers notice an early wake-up late.
type drowsyClock struct {
	testClock
	noticed chan struct{} // closed when one has noticed
}

func (c drowsyClock) Sleep(ctx context.Context, until int64, wake <-chan struct{}) error {
	err := c.testClock.Sleep(ctx, until, wake)
	if c.Now().UnixMilli() < until {
		select {
		case <-c.noticed:
		case <-ctx.Done():
		}
	}
	return err
}

// restless stores the trigger's rest at each call of Taken.
type restless struct {
	progress
	mu    sync.Mutex
	until []time.Time
}

func (p *restless) Taken(string, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = append(p.until, p.w.resting())
}

func (p *restless) taken() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

// drowsy gives the triggers a drowsyClock, whose sleepers notice when noticed is closed, and records
// their rests.
func (w *world) drowsy() (p *restless, noticed chan struct{}) {
	p, noticed = &restless{progress: progress{w}}, make(chan struct{})
	w.options.Clock = drowsyClock{testClock{w.Clock()}, noticed}
	w.options.Registry = consume.Registry{Register: func(string, string) consume.Progress { return p }}
	return p, noticed
}

// Records that complete a gathering batch end the trigger's rest before they count as taken,
// however late the worker notices. Otherwise an advance of the clock would pass them.
func TestFullBatchIsNoRest(t *testing.T) {
	w := newWorld(t)
	w.Clock().Freeze()
	w.table("things")
	f := &function{}
	w.to(arnFunction, f, target.Limits{})
	p, noticed := w.drowsy()
	w.run(declared(func(s *trigger.Spec) { s.Batch, s.Window = 2, 10*time.Second }))
	w.put("things", "a", 0, 0)
	await(t, "the trigger rests", func() bool { return !w.resting().IsZero() && len(p.taken()) == 1 })
	w.put("things", "a", 1, 1)
	await(t, "the second record is handed over", func() bool { return len(p.taken()) == 2 })
	if until := p.taken()[1]; !until.IsZero() {
		t.Errorf("with a full batch it rests until %v", until)
	}
	close(noticed)
	f.got(t, "0 1")
}
