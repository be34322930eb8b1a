package bench

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// foreground makes calls at a steady rate, and separates the latencies of phases. The load is open:
// a call that starts late because the one before it was slow counts from its planned start.
type foreground struct {
	lines   []*line
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// line is a connection with calls of one kind.
type line struct {
	operation string
	caller    caller
	conn      *conn

	mu    sync.Mutex // guards the following
	tally tally      // of the current phase
}

const (
	foregroundLines  = 2                    // connections per operation
	foregroundEvery  = 4 * time.Millisecond // between the calls of a connection
	foregroundItems  = 1000
	foregroundBehind = time.Second // maximum lag of a connection behind its rate
	foregroundPerS   = foregroundLines * int(time.Second/foregroundEvery)
)

// startForeground makes GetItem and PutItem calls to a table of items until stop.
func (e *endpoint) startForeground(ctx context.Context) (*foreground, error) {
	f := &foreground{}
	ctx, f.cancel = context.WithCancel(ctx)
	for _, name := range []string{scenarioGet, scenarioPut} {
		s := *scenarioNamed(name)
		s.table = tableForeground
		for _, c := range e.callers(&s, foregroundLines) {
			opened, err := dial(ctx, e.address)
			if err != nil {
				f.stop()
				return nil, err
			}
			f.lines = append(f.lines, &line{operation: s.operation, caller: c, conn: opened})
		}
	}
	for i, l := range f.lines {
		offset := foregroundEvery * time.Duration(i) / time.Duration(len(f.lines))
		f.running.Go(func() { l.run(ctx, offset) })
	}
	return f, nil
}

// stop is safe on a nil foreground, and a second time.
func (f *foreground) stop() {
	if f == nil {
		return
	}
	f.cancel()
	f.running.Wait()
	for _, l := range f.lines {
		l.conn.close()
	}
}

// phase has the counts of a part of an experiment, by operation.
type phase map[string]*tally

// phase returns the counts since the last call; none for a nil foreground.
func (f *foreground) phase() phase {
	all := phase{}
	if f == nil {
		return all
	}
	for _, l := range f.lines {
		if all[l.operation] == nil {
			all[l.operation] = new(tally)
		}
		l.mu.Lock()
		all[l.operation].merge(&l.tally)
		l.tally = tally{}
		l.mu.Unlock()
	}
	return all
}

func (l *line) run(ctx context.Context, offset time.Duration) {
	for due := time.Now().Add(offset); ctx.Err() == nil; due = due.Add(foregroundEvery) {
		if behind := time.Since(due); behind > foregroundBehind {
			// an endpoint too slow for the rate does not get ever more calls
			due = due.Add(behind - foregroundBehind)
		}
		begin := due
		if wait := time.Until(due); wait > 0 {
			if pause(ctx, wait) != nil {
				return
			}
			begin = time.Now() // exclude the lateness of the client's timer
		}
		a, err := l.conn.call(l.caller.next())
		took := time.Since(begin)
		if err == nil {
			_, err = judge(l.caller, a)
		}
		if ctx.Err() != nil {
			return
		}
		l.count(took, err)
		if err != nil && a.status == 0 { // the connection is gone
			return
		}
	}
}

func (l *line) count(took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.tally.fail(fmt.Errorf("%s: %w", l.operation, err))
		return
	}
	l.tally.success(0, took)
}

// figures returns the latencies of two phases.
func (f *foreground) figures(idle, during phase) (list []Foreground) {
	if f == nil {
		return nil
	}
	for at := 0; at < len(f.lines); at += foregroundLines {
		operation := f.lines[at].operation
		i, d := idle[operation], during[operation]
		list = append(list, Foreground{
			Operation: operation, PerS: foregroundPerS,
			IdleP50MS: round(millis(i.latency.quantile(0.5))), DuringP50MS: round(millis(d.latency.quantile(0.5))),
			IdleP99MS: round(millis(i.latency.quantile(0.99))), DuringP99MS: round(millis(d.latency.quantile(0.99))),
			IdleCalls: i.calls, DuringCalls: d.calls,
		})
	}
	return list
}
