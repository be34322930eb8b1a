package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// foreground makes calls at a steady rate, and separates the latencies of phases. The load is open:
// a slow call does not hold back the next one, which goes over another connection.
type foreground struct {
	operations []*operation
	cancel     context.CancelFunc
	running    sync.WaitGroup
}

// operation makes the calls of one kind.
type operation struct {
	name        string
	perS        int
	connections []connection
	due         chan time.Time // starts of calls; an idle connection takes the next one

	mu    sync.Mutex // guards the following
	tally tally      // of the current phase
}

// connection makes one call at a time.
type connection interface {
	// call makes the next call. After errBroken the connection is unusable.
	call() error
	close()
}

var errBroken = errors.New("the connection is broken")

const (
	foregroundConnections = 64 // of each operation: as many calls can be under way
	foregroundItems       = 1000
	foregroundBehind      = time.Second // most that calls lag behind their rate while all connections are busy
	timerLate             = 2 * time.Millisecond
)

// startCalls makes the calls of all operations until stop. It closes their connections at the end.
func startCalls(ctx context.Context, operations []*operation) *foreground {
	f := &foreground{operations: operations}
	ctx, f.cancel = context.WithCancel(ctx)
	for _, o := range operations {
		o.due = make(chan time.Time)
		f.running.Go(func() { o.pace(ctx) })
		for _, c := range o.connections {
			f.running.Go(func() { o.serve(ctx, c) })
		}
	}
	return f
}

// stop is safe on a nil foreground.
func (f *foreground) stop() {
	if f == nil {
		return
	}
	f.cancel()
	closeConnections(f.operations)
	f.running.Wait()
}

func closeConnections(operations []*operation) {
	for _, o := range operations {
		for _, c := range o.connections {
			c.close()
		}
	}
}

// pace hands out the starts of calls. A call counts from its planned start, so it includes the wait
// for an idle connection. Only the first milliseconds of the client's own timer do not count.
func (o *operation) pace(ctx context.Context) {
	every := time.Second / time.Duration(o.perS)
	for due := time.Now(); Pause(ctx, time.Until(due)) == nil; due = due.Add(every) {
		late := time.Since(due)
		if late > foregroundBehind { // an endpoint too slow for the rate does not get ever more calls
			due = due.Add(late - foregroundBehind)
		}
		select {
		case o.due <- due.Add(min(late, timerLate)):
		case <-ctx.Done():
			return
		}
	}
}

// serve makes calls over a connection.
func (o *operation) serve(ctx context.Context, c connection) {
	for {
		select {
		case begin := <-o.due:
			err := c.call()
			took := time.Since(begin)
			if ctx.Err() != nil {
				return
			}
			o.count(took, err)
			if errors.Is(err, errBroken) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (o *operation) count(took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.tally.fail(fmt.Errorf("%s: %w", o.name, err))
		return
	}
	o.tally.success(0, took)
}

// phase has the counts of a part of an experiment, in the order of the operations.
type phase []tally

// phase returns the counts since the last call; none for a nil foreground.
func (f *foreground) phase() (all phase) {
	if f == nil {
		return nil
	}
	for _, o := range f.operations {
		o.mu.Lock()
		all = append(all, o.tally)
		o.tally = tally{}
		o.mu.Unlock()
	}
	return all
}

// idlePhase waits for the first deadline, and returns the counts of the time before it. Earlier calls
// do not count: the first ones are slower.
func (f *foreground) idlePhase(ctx context.Context, first time.Time, length time.Duration) (phase, error) {
	if err := Pause(ctx, time.Until(first.Add(-length))); err != nil {
		return nil, err
	}
	f.phase()
	err := Pause(ctx, time.Until(first))
	return f.phase(), err
}

// figures returns the latencies of two phases.
func (f *foreground) figures(idle, during phase) (list []Foreground) {
	for i := range idle {
		o, before, then := f.operations[i], &idle[i], &during[i]
		list = append(list, Foreground{
			Operation: o.name, PerS: o.perS,
			IdleP50MS: round(millis(before.latency.quantile(0.5))), DuringP50MS: round(millis(then.latency.quantile(0.5))),
			IdleP99MS: round(millis(before.latency.quantile(0.99))), DuringP99MS: round(millis(then.latency.quantile(0.99))),
			IdleCalls: before.calls, DuringCalls: then.calls,
		})
	}
	return list
}

// startForeground makes GetItem and PutItem calls to a table of items until stop, each at a rate.
func (e *endpoint) startForeground(ctx context.Context, perS int) (*foreground, error) {
	var all []*operation
	for _, name := range []string{scenarioGet, scenarioPut} {
		s := *scenarioNamed(name)
		s.table = tableForeground
		o := &operation{name: s.operation, perS: perS}
		all = append(all, o)
		for _, c := range e.callers(&s, foregroundConnections) {
			opened, err := dial(ctx, e.address)
			if err != nil {
				closeConnections(all)
				return nil, err
			}
			o.connections = append(o.connections, &apiConnection{caller: c, conn: opened})
		}
	}
	return startCalls(ctx, all), nil
}

// apiConnection makes DynamoDB calls.
type apiConnection struct {
	caller caller
	conn   *conn
}

func (c *apiConnection) call() error {
	a, err := c.conn.call(c.caller.next())
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	_, err = judge(c.caller, a)
	return err
}

func (c *apiConnection) close() { c.conn.close() }
