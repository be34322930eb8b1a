package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// cell identifies measurements that are combined over the rounds.
type cell struct {
	scenario    *scenario
	connections int
	target      int // index in the run's targets
}

// sample is one measurement.
type sample struct {
	callsPerS, itemsPerS float64
	p50, p99             time.Duration
	serverCPU, clientCPU time.Duration // per call; zero: unknown
	calls, errors        int
	problem              string
}

// target is an endpoint or a reference.
type target interface {
	title() string
	// has reports whether the target has the scenario's operation.
	has(s *scenario) bool
	// measure loads the target once.
	measure(ctx context.Context, s *scenario, connections int, d time.Duration) (sample, error)
}

// newSample returns the figures of a measurement.
func newSample(t *tally, took, server, client time.Duration) sample {
	m := sample{calls: t.calls, errors: t.errors, problem: t.problem}
	if t.calls == 0 {
		return m
	}
	m.callsPerS, m.itemsPerS = float64(t.calls)/took.Seconds(), float64(t.items)/took.Seconds()
	m.p50, m.p99 = t.latency.quantile(0.5), t.latency.quantile(0.99)
	m.serverCPU, m.clientCPU = server/time.Duration(t.calls), client/time.Duration(t.calls)
	return m
}

func (e *endpoint) title() string { return e.name }

func (e *endpoint) has(s *scenario) bool { return !e.lacks[s.name] }

// callers returns one caller per connection.
func (e *endpoint) callers(s *scenario, connections int) []caller {
	t := e.tables[s.table]
	list := make([]caller, connections)
	for i := range list {
		if s.name == scenarioScan {
			list[i] = &scanCaller{host: e.address, table: t.name}
		} else {
			list[i] = newScenarioCaller(s, e.address, t, i)
		}
	}
	return list
}

func (e *endpoint) measure(ctx context.Context, s *scenario, connections int, d time.Duration) (sample, error) {
	return measureServer(ctx, e, e.callers(s, connections), d)
}

// measureServer loads a server and measures its CPU time until it is idle again.
func measureServer(ctx context.Context, e *endpoint, callers []caller, d time.Duration) (sample, error) {
	server, client := e.used(), selfCPU()
	t, took, err := load(ctx, e.address, callers, d)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", e.name, err)
	}
	client = since(client, selfCPU())
	after, err := awaitIdle(ctx, e.used, idleLimit)
	return newSample(t, took, since(server, after), client), err
}

const (
	idlePoll  = 25 * time.Millisecond
	idleUse   = idlePoll / 20   // CPU time per poll below which a process is idle
	idleLimit = 4 * time.Second // waiting for all compactions would take too long
)

// awaitIdle waits until a process is almost idle, for at most limit, and returns its CPU time then. It
// returns at once if the time is unknown.
func awaitIdle(ctx context.Context, used func() time.Duration, limit time.Duration) (time.Duration, error) {
	end := time.Now().Add(limit)
	for last := used(); last > 0; {
		if err := Pause(ctx, idlePoll); err != nil {
			return 0, err
		}
		now := used()
		if now-last < idleUse || time.Now().After(end) {
			return now, nil
		}
		last = now
	}
	return 0, nil
}

// echoTarget is the echo reference, with the first endpoint's answers.
type echoTarget struct {
	*endpoint
	model *endpoint
}

func (e *echoTarget) title() string { return TargetEcho }

// has excludes variants, whose requests and answers equal the original's.
func (e *echoTarget) has(s *scenario) bool { return !s.variant }

func (e *echoTarget) measure(ctx context.Context, s *scenario, connections int, d time.Duration) (sample, error) {
	one := e.model.callers(s, 1)[0]
	a, err := e.model.exchange(ctx, one.next())
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", e.model.name, err)
	}
	if a.status != 200 {
		return sample{}, fmt.Errorf("%s: %w", e.model.name, newRefusal(a))
	}
	if err := e.learn(ctx, a); err != nil {
		return sample{}, err
	}
	return measureServer(ctx, e.endpoint, e.model.callers(s, connections), d)
}

// loopTarget is the loop reference.
type loopTarget struct{ *loop }

func (l *loopTarget) title() string { return TargetLoop }

func (l *loopTarget) has(s *scenario) bool { return s.write }

func (l *loopTarget) measure(ctx context.Context, s *scenario, connections int, d time.Duration) (sample, error) {
	before := selfCPU()
	t, took, err := l.load(ctx, s, connections, d)
	if err != nil {
		return sample{}, err
	}
	after, err := awaitIdle(ctx, selfCPU, idleLimit)
	return newSample(t, took, since(before, after), 0), err
}

// samples are the measurements of each cell, one of each round.
type samples map[cell][]sample

// rounds measures all cells, round by round.
func (r *run) rounds(ctx context.Context, targets []target) (samples, error) {
	all := samples{}
	for round := range r.Rounds {
		// Every second round has the opposite order, so that no target or scenario always follows
		// the same one: background work of a store delays the next.
		order, cells := slices.Clone(targets), r.cells()
		if round%2 == 1 {
			slices.Reverse(order)
			slices.Reverse(cells)
		}
		for _, c := range cells {
			r.progress.Part++
			for _, t := range order {
				if !t.has(c.scenario) {
					continue
				}
				c.target = slices.Index(targets, t)
				m, err := r.measure(ctx, t, c, round)
				if err != nil {
					return nil, err
				}
				all[c] = append(all[c], m)
			}
		}
	}
	return all, nil
}

// cells returns the cells of a round for each target, in order.
func (r *run) cells() (list []cell) {
	for i := range scenarios {
		if !r.runs(scenarios[i].name) {
			continue
		}
		for _, connections := range scenarios[i].connections(r.Connections) {
			list = append(list, cell{scenario: &scenarios[i], connections: connections})
		}
	}
	return list
}

// measure takes one sample.
func (r *run) measure(ctx context.Context, t target, c cell, round int) (sample, error) {
	s := c.scenario
	r.step("round %d of %d: %s, %d connections, %s", round+1, r.Rounds, s.name, c.connections, t.title())
	m, err := t.measure(ctx, s, c.connections, r.Duration)
	if err != nil {
		return sample{}, fmt.Errorf("%s with %d connections: %w", s.name, c.connections, err)
	}
	if m.errors > 0 {
		r.problem(m.errors, fmt.Sprintf("%s at %s: %s", s.name, t.title(), m.problem))
	}
	r.result("%.0f calls/s, p99 %s", m.callsPerS, m.p99.Round(time.Microsecond))
	return m, nil
}
