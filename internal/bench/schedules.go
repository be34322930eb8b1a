package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// experimentSchedules measures schedules: the rate of creation, the lateness of firings, and the
// cost of many pending ones.
const experimentSchedules = "schedules"

const (
	scheduleConnections = 16
	firingsPerS         = 500              // rate of even firings
	besidePerS          = 50               // rate of another group during a burst
	firingGrace         = 60 * time.Second // time for arrivals after the last instant
	gracePerS           = 500              // plus one second for this many
	idleFor             = 3 * time.Second  // time for measuring the cost of pending schedules
	pendingSlice        = 50_000           // pending schedules per step of the run
	makeLimit           = 10 * time.Minute
	quietLimit          = time.Minute // limit for compactions before that measurement
	schedulesPerS       = 1500        // a first estimate of the rate of creation
)

// scheduleRun is the state of the experiment.
type scheduleRun struct {
	*run
	server    *endpoint
	collector *collector
	found     *Schedules
	taken     atomic.Int64 // number of the last pending schedule
}

// schedules measures the program's own server, started with a webhook as target.
func (r *run) schedules(ctx context.Context) (err error) {
	if !r.runs(experimentSchedules) || r.URL != nil {
		return nil
	}
	s := &scheduleRun{run: r, found: &Schedules{Target: ownName}}
	if s.server, s.collector, err = r.startDelivering(ctx, experimentSchedules); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.close(), s.collector.close()) }()
	parts := []func(context.Context) error{s.create, s.pending, s.idle, s.even, s.burst}
	if s.Pending > 0 { // lateness without pending schedules, for comparison
		parts = slices.Insert(parts, 1, s.evenBefore)
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return fmt.Errorf("%s: %w", experimentSchedules, err)
		}
	}
	r.report.Schedules = s.found
	return nil
}

// scheduleSteps returns the number of the experiment's steps.
func (r *run) scheduleSteps() int {
	steps := 4 + (r.Pending+pendingSlice-1)/pendingSlice
	if r.Pending > 0 {
		steps++
	}
	return steps
}

// graceFor returns the time for this many deliveries after the last instant.
func graceFor(n int) time.Duration { return firingGrace + time.Duration(n/gracePerS)*time.Second }

// startDelivering starts a server that delivers to a collector.
func (r *run) startDelivering(ctx context.Context, name string) (*endpoint, *collector, error) {
	c, err := newCollector()
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(r.dir, name+"-targets.yaml")
	err = os.WriteFile(file, []byte(c.targetsFile(r.nats)), 0o600)
	if err == nil {
		var e *endpoint
		if e, err = r.startServer(ctx, name, "--targets", file); err == nil {
			return e, c, nil
		}
	}
	return nil, nil, errors.Join(err, c.close())
}

// create creates pending schedules over many connections, and measures the rate.
func (s *scheduleRun) create(ctx context.Context) error {
	s.step("create schedules, %d connections", scheduleConnections)
	var rounds []sample
	for range s.Rounds {
		m, err := measureServer(ctx, s.server, s.callers("default", 0, 1<<40, &s.taken, s.farAway), s.Duration)
		if err != nil {
			return err
		}
		if m.errors > 0 {
			s.problem(m.errors, "CreateSchedule: "+m.problem)
		}
		rounds = append(rounds, m)
	}
	f, ok := figureOf(rounds)
	if !ok || f.Calls == 0 {
		return errors.New("no schedule could be created")
	}
	f.Scenario, f.About, f.Connections, f.Target = "create-schedule", "CreateSchedule of a new one", scheduleConnections, ownName
	s.found.Create = f
	s.found.Pending = f.Calls
	s.result("%.0f/s", f.CallsPerS.Median)
	return nil
}

// farAway returns an instant after the run.
func (s *scheduleRun) farAway(int) time.Time { return s.started.Add(deadlineAfter) }

// pending creates pending schedules up to the requested number.
func (s *scheduleRun) pending(ctx context.Context) error {
	for to := 0; to < s.Pending; {
		to = min(to+pendingSlice, s.Pending)
		s.step("create %d of %d pending schedules", to, s.Pending)
		before, start := int(s.taken.Load()), time.Now()
		if before >= to {
			s.result("they are there")
			continue
		}
		if err := s.make(ctx, "default", 0, to, &s.taken, s.farAway); err != nil {
			return err
		}
		s.found.Pending = to
		s.result("%.0f/s", float64(to-before)/time.Since(start).Seconds())
	}
	return nil
}

// make creates schedules numbered from taken up to n.
func (s *scheduleRun) make(ctx context.Context, group string, first uint64, n int, taken *atomic.Int64, when func(int) time.Time) error {
	wanted := n - int(taken.Load())
	limit := makeLimit + time.Duration(wanted/gracePerS)*time.Second
	total, _, err := load(ctx, s.server.address, s.callers(group, first, n, taken, when), limit)
	if err != nil {
		return err
	}
	if total.errors > 0 || total.calls != wanted {
		return fmt.Errorf("create schedules in %s: %d of %d, %d errors: %s", group, total.calls, wanted, total.errors, total.problem)
	}
	taken.Store(int64(n)) // each connection has incremented it once too often
	return nil
}

func (s *scheduleRun) callers(group string, first uint64, n int, taken *atomic.Int64, when func(int) time.Time) []caller {
	list := make([]caller, scheduleConnections)
	for i := range list {
		list[i] = &scheduleCaller{host: s.server.address, group: group, first: first, end: n, taken: taken, when: when}
	}
	return list
}

// idle measures the cost of the pending schedules while none is due.
func (s *scheduleRun) idle(ctx context.Context) error {
	s.step("idle with %d schedules pending", s.found.Pending)
	before, err := restWithin(ctx, func() time.Duration { used, _ := s.server.cpu(); return used }, quietLimit)
	if err != nil {
		return err
	}
	time0 := time.Now()
	idle := idleFor
	if s.Quick {
		idle = idleQuick
	}
	if err := pause(ctx, idle); err != nil {
		return err
	}
	if after, known := s.server.cpu(); known {
		s.found.IdleCPUPercent = round(100 * (after - before).Seconds() / time.Since(time0).Seconds())
	}
	s.result("%.2f %% of a CPU", s.found.IdleCPUPercent)
	return nil
}

// First numbers of each kind of schedules, far apart.
const (
	evenFirst       = 1_000_000_000
	evenBeforeFirst = 1_500_000_000
	burstFirst      = 2_000_000_000
	besideFirst     = 5_000_000_000 // plus the burst's number
)

// even fires schedules evenly.
func (s *scheduleRun) even(ctx context.Context) error { return s.fireEvenly(ctx, evenFirst) }

// evenBefore does so while few are pending.
func (s *scheduleRun) evenBefore(ctx context.Context) error {
	if s.Pending <= s.found.Pending {
		return nil
	}
	return s.fireEvenly(ctx, evenBeforeFirst)
}

func (s *scheduleRun) fireEvenly(ctx context.Context, first uint64) error {
	p := &plan{spread: s.Spread, items: max(int(s.Spread.Seconds()*firingsPerS), 100), millis: true}
	if s.Quick {
		p.items = 300
	}
	x := &Firings{Experiment: firingsEven, About: fmt.Sprintf("schedules fire evenly, %d a second", firingsPerS), Count: p.items, Pending: s.found.Pending}
	return s.fire(ctx, x, p, first, "default", nil)
}

// burst fires schedules of one group at one instant, while another group fires evenly.
func (s *scheduleRun) burst(ctx context.Context) error {
	if _, err := s.server.rest(ctx, "POST", "/schedule-groups/burst", `{"ClientToken":"burst"}`); err != nil {
		return err
	}
	p := &plan{items: s.Burst / 2, millis: true}
	beside := &plan{spread: besideFor, items: int(besideFor.Seconds() * besidePerS), millis: true}
	if s.Quick {
		beside.spread, beside.items = time.Second, 100
	}
	x := &Firings{Experiment: firingsBurst, About: "schedules fire all at one instant", Count: p.items, Pending: s.found.Pending}
	return s.fire(ctx, x, p, burstFirst, "burst", beside)
}

// fire creates schedules in a group, and others in another one, and measures their firings. If
// creating them takes too long, it starts again with further names.
func (s *scheduleRun) fire(ctx context.Context, x *Firings, p *plan, first uint64, group string, beside *plan) error {
	s.step("%d schedules: %s", p.items, x.About)
	for perS := float64(schedulesPerS); ; perS /= 2 {
		err := s.fireOnce(ctx, x, p, first, group, beside, perS)
		if !errors.Is(err, errPreparing) || perS < schedulesPerS/8 {
			return err
		}
		s.collector.forget()
		first += uint64(p.items)
	}
}

func (s *scheduleRun) fireOnce(ctx context.Context, x *Firings, p *plan, first uint64, group string, beside *plan, perS float64) error {
	n := p.items
	if beside != nil {
		n += beside.items
	}
	p.first = time.Now().Add(time.Duration(float64(n)/perS*float64(time.Second)) + settleTime).Truncate(time.Millisecond)
	defer s.collector.forget()
	w := s.collector.expect(numberMark, first, p)
	if err := s.make(ctx, group, first, p.items, new(atomic.Int64), p.deadline); err != nil {
		return err
	}
	var others *watch
	if beside != nil {
		beside.first = p.first
		others = s.collector.expect(numberMark, besideFirst+first, beside)
		if err := s.make(ctx, "default", besideFirst+first, beside.items, new(atomic.Int64), beside.deadline); err != nil {
			return err
		}
	}
	if time.Now().After(p.first) {
		return errPreparing
	}
	if err := pause(ctx, time.Until(p.first)); err != nil {
		return err
	}
	before, _ := s.server.cpu()
	if err := await(ctx, w, p.last(), graceFor(p.items)); err != nil {
		return err
	}
	if others != nil {
		if err := await(ctx, others, beside.last(), graceFor(p.items)); err != nil {
			return err
		}
		x.BesideMS = others.summary(beside.last())
		early, twice, lost := others.faults()
		x.Early, x.Twice, x.Lost = early, twice, lost
	}
	if used, known := s.server.cpu(); known {
		x.CPUUS = round(micros(used-before) / float64(n))
	}
	x.LateMS = w.summary(p.last())
	early, twice, lost := w.faults()
	x.Early, x.Twice, x.Lost = x.Early+early, x.Twice+twice, x.Lost+lost
	if p.spread == 0 && x.LateMS != nil && lost == 0 {
		x.DrainS = round(x.LateMS.Max / 1000)
		x.PerS = round(float64(p.items) / x.DrainS)
	}
	s.found.Firings = append(s.found.Firings, *x)
	if x.Early+x.Lost > 0 { // repeated arrivals are allowed
		s.problem(x.Early+x.Lost, fmt.Sprintf("%s firings: %d early, %d lost", x.Experiment, x.Early, x.Lost))
	}
	s.result("%s", x.line())
	return nil
}

// numberMark precedes a schedule's number in its delivery.
const numberMark = `"n":"`

// scheduleCaller creates one-time schedules in ascending order. Callers with the same taken share
// them.
type scheduleCaller struct {
	host, group string
	first       uint64
	end         int
	taken       *atomic.Int64
	when        func(item int) time.Time
	body, raw   bytes.Buffer
}

func (c *scheduleCaller) next() []byte {
	i := int(c.taken.Add(1)) - 1
	if i >= c.end {
		return nil
	}
	n := c.first + uint64(i)
	c.body.Reset()
	fmt.Fprintf(&c.body, `{"ClientToken":"bench-%010d","GroupName":%q,"ScheduleExpression":"instant(%s)","FlexibleTimeWindow":{"Mode":"OFF"},`+
		`"ActionAfterCompletion":"DELETE","Target":{"Arn":%q,"RoleArn":"arn:aws:iam::000000000000:role/bench","Input":"{\"n\":\"%010d\"}"}}`,
		n, c.group, c.when(i).UTC().Format("2006-01-02T15:04:05.000"), firingsARN, n)
	c.raw.Reset()
	writeRest(&c.raw, c.host, "POST", fmt.Sprintf("/schedules/bench-%010d", n), c.body.Bytes())
	return c.raw.Bytes()
}

func (c *scheduleCaller) done([]byte) (int, error) { return 1, nil }
