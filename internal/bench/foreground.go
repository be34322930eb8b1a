package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// foreground makes GetItem and PutItem calls at a steady rate while items expire. The load is open:
// a call that starts late because the one before it was slow counts from its planned start.
type foreground struct {
	address string
	lines   [2]foregroundLine
}

// foregroundLine has the calls of one operation.
type foregroundLine struct {
	operation string
	callers   []caller
}

const (
	foregroundConnections = 2                    // per operation
	foregroundEvery       = 4 * time.Millisecond // between the calls of a connection
	foregroundItems       = 1000
	foregroundPerS        = foregroundConnections * int(time.Second/foregroundEvery)
	foregroundMost        = 2 * time.Hour // longer than any expiry
)

// phase has the counts of a part of an experiment, by line.
type phase [2]*tally

// foreground returns calls to a table of items.
func (e *endpoint) foreground() *foreground {
	f := &foreground{address: e.address}
	for i, name := range []string{scenarioGet, scenarioPut} {
		s := *scenarioNamed(name)
		s.table = tableForeground
		f.lines[i] = foregroundLine{s.operation, e.callers(&s, foregroundConnections)}
	}
	return f
}

// run makes calls for a time. Without calls, as a nil foreground, it waits.
func (f *foreground) run(ctx context.Context, d time.Duration) (p phase, err error) {
	if f == nil {
		return p, pause(ctx, d)
	}
	var errs [len(p)]error
	var running sync.WaitGroup
	for i, line := range f.lines {
		running.Go(func() { p[i], _, errs[i] = load(ctx, f.address, line.callers, d, foregroundEvery) })
	}
	running.Wait()
	return p, errors.Join(errs[:]...)
}

// start makes calls until stop, which returns their counts.
func (f *foreground) start(ctx context.Context) (stop func() (phase, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var p phase
	var err error
	var running sync.WaitGroup
	running.Go(func() { p, err = f.run(ctx, foregroundMost) })
	return func() (phase, error) {
		cancel()
		running.Wait()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return p, err
	}
}

// figures returns the latencies of both phases.
func (f *foreground) figures(idle, during phase) (list []Foreground) {
	if f == nil {
		return nil
	}
	for line, i := range idle {
		d := during[line]
		list = append(list, Foreground{
			Operation: f.lines[line].operation, PerS: foregroundPerS,
			IdleP50MS: round(millis(i.latency.quantile(0.5))), DuringP50MS: round(millis(d.latency.quantile(0.5))),
			IdleP99MS: round(millis(i.latency.quantile(0.99))), DuringP99MS: round(millis(d.latency.quantile(0.99))),
			IdleCalls: i.calls, DuringCalls: d.calls,
		})
	}
	return list
}
