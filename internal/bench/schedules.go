package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// experimentSchedules measures schedules: the rate of creation, the lateness of firings, and the
// cost of many pending ones.
const experimentSchedules = "schedules"

const (
	firingsPerS   = 500              // rate of even firings
	besidePerS    = 50               // rate of another group during a burst
	firingGrace   = 60 * time.Second // time for arrivals after the last instant
	gracePerS     = 500              // limits grow by one second for this many firings, or items
	idleFor       = 3 * time.Second  // time for measuring the cost of pending schedules
	pendingSlice  = 50_000           // pending schedules per step of the run
	quietLimit    = time.Minute      // limit for compactions before that measurement
	schedulesPerS = 1500             // a first estimate of the rate of creation
)

// scheduleRun is the state of the experiment.
type scheduleRun struct {
	*run
	server    *endpoint
	collector *collector
	found     *Schedules
	taken     atomic.Int64 // numbers of pending schedules so far
	fired     int          // number of the next schedule that fires in the run
}

// firstFired is the first number of a schedule that fires in the run.
const firstFired = 1_000_000_000

// schedules measures the program's own server, started with a webhook as target.
func (r *run) schedules(ctx context.Context) (err error) {
	s := &scheduleRun{run: r, found: &Schedules{Target: ownName}, fired: firstFired}
	if s.server, s.collector, err = r.startDelivering(ctx, experimentSchedules); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.close(), s.collector.close()) }()
	if err := inOrder(ctx, s.create, s.evenBefore, s.pending, s.idle, s.even, s.burst); err != nil {
		return err
	}
	r.report.Schedules = s.found
	return nil
}

// graceFor returns how long after the last due instant a number of deliveries may still arrive.
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
		if e, err = r.startServer(ctx, name, r.Durability, "--targets", file); err == nil {
			return e, c, nil
		}
	}
	return nil, nil, errors.Join(err, c.close())
}

// create creates pending schedules over many connections, and measures the rate.
func (s *scheduleRun) create(ctx context.Context) error {
	s.step("create schedules, %d connections", workConnections)
	var rounds []sample
	for range s.Rounds {
		m, err := measureServer(ctx, s.server, s.work("default", &s.taken, firstFired, farAway).callers(workConnections), s.Duration)
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
	f.Scenario, f.About, f.Connections, f.Target = "create-schedule", "CreateSchedule of a new one", workConnections, ownName
	s.found.Create = f
	s.found.Pending = f.Calls
	s.result("%.0f/s", f.CallsPerS.Median)
	return nil
}

// farAway returns an instant after the run.
func farAway(int) time.Time { return afterRun }

// pending creates pending schedules up to the requested number.
func (s *scheduleRun) pending(ctx context.Context) error {
	for before := int(s.taken.Load()); before < s.Pending; {
		to, start := min(before+pendingSlice, s.Pending), time.Now()
		s.step("create %d of %d pending schedules", to, s.Pending)
		if err := s.work("default", &s.taken, to, farAway).complete(ctx, s.server); err != nil {
			return err
		}
		s.found.Pending = to
		s.result("%.0f/s", float64(to-before)/time.Since(start).Seconds())
		before = to
	}
	return nil
}

// work returns the requests that create one-time schedules, in ascending order of their numbers:
// from taken up to, but not including, end. when returns the instant of a number's firing.
func (s *scheduleRun) work(group string, taken *atomic.Int64, end int, when func(n int) time.Time) *work {
	request := func(dst []byte, n, _ int) []byte {
		body := fmt.Sprintf(`{"ClientToken":"bench-%010d","GroupName":%q,"ScheduleExpression":"instant(%s)","FlexibleTimeWindow":{"Mode":"OFF"},`+
			`"ActionAfterCompletion":"DELETE","Target":{"Arn":%q,"RoleArn":"arn:aws:iam::000000000000:role/bench","Input":"{\"n\":\"%010d\"}"}}`,
			n, group, when(n).UTC().Format("2006-01-02T15:04:05.000"), firingsARN, n)
		return appendRequest(dst, s.server.address, fmt.Sprintf("POST /schedules/bench-%010d", n), restHeader, []byte(body))
	}
	return &work{name: "create schedules in " + group, taken: taken, end: end, batch: 1, request: request}
}

// idle measures the cost of the pending schedules while none is due.
func (s *scheduleRun) idle(ctx context.Context) error {
	s.step("idle with %d schedules pending", s.found.Pending)
	before, err := awaitIdle(ctx, s.server.used, quietLimit)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := Pause(ctx, pick(s.Quick, idleQuick, idleFor)); err != nil {
		return err
	}
	s.found.IdleCPUPercent = round(100 * since(before, s.server.used()).Seconds() / time.Since(start).Seconds())
	s.result("%.2f %% of a CPU", s.found.IdleCPUPercent)
	return nil
}

// evenBefore fires schedules evenly while few are pending, for comparison.
func (s *scheduleRun) evenBefore(ctx context.Context) error {
	if s.Pending <= s.found.Pending {
		return nil
	}
	return s.even(ctx)
}

// even fires schedules evenly.
func (s *scheduleRun) even(ctx context.Context) error {
	p := &plan{spread: s.Spread, items: pick(s.Quick, 300, max(int(s.Spread.Seconds()*firingsPerS), 100))}
	x := &Firings{Experiment: firingsEven, About: fmt.Sprintf("schedules fire evenly, %d a second", firingsPerS), Count: p.items, Pending: s.found.Pending}
	return s.fire(ctx, x, &firing{group: "default", plan: p})
}

// burst fires schedules of one group at one instant, while another group fires evenly.
func (s *scheduleRun) burst(ctx context.Context) error {
	if _, err := s.server.callREST(ctx, "POST /schedule-groups/burst", `{"ClientToken":"burst"}`); err != nil {
		return err
	}
	p := &plan{items: s.Burst / 2}
	beside := &plan{spread: pick(s.Quick, time.Second, besideFor), items: pick(s.Quick, 100, int(besideFor.Seconds()*besidePerS))}
	x := &Firings{Experiment: firingsBurst, About: "schedules fire all at one instant", Count: p.items, Pending: s.found.Pending}
	return s.fire(ctx, x, &firing{group: "burst", plan: p}, &firing{group: "default", plan: beside})
}

// firing is a plan's schedules in a group.
type firing struct {
	group string
	plan  *plan
	watch *watch
}

// fire creates schedules, and measures their firings, of the first plan and of those beside it. If
// creating them takes too long, it starts again with further names.
func (s *scheduleRun) fire(ctx context.Context, x *Firings, all ...*firing) error {
	s.step("%d schedules: %s", x.Count, x.About)
	return whenPrepared(schedulesPerS, func(perS float64) error {
		defer s.collector.forget()
		return s.fireOnce(ctx, x, all, perS)
	})
}

func (s *scheduleRun) fireOnce(ctx context.Context, x *Firings, all []*firing, perS float64) error {
	n, main := 0, all[0].plan
	for _, f := range all {
		n += f.plan.items
	}
	main.start(n, perS)
	for _, f := range all {
		f.plan.first = main.first
		first := s.fired
		s.fired += f.plan.items
		f.watch = s.collector.expect(numberMark, uint64(first), f.plan)
		taken := new(atomic.Int64)
		taken.Store(int64(first))
		due := func(n int) time.Time { return f.plan.deadline(n - first) }
		if err := s.work(f.group, taken, s.fired, due).complete(ctx, s.server); err != nil {
			return err
		}
	}
	if err := main.begin(ctx, 0); err != nil {
		return err
	}
	cpu := s.server.cpuEach()
	for _, f := range all {
		if err := f.watch.await(ctx, graceFor(x.Count)); err != nil {
			return err
		}
	}
	for _, f := range all {
		early, twice, lost := f.watch.faults()
		x.Early, x.Twice, x.Lost = x.Early+early, x.Twice+twice, x.Lost+lost
		if late := f.watch.summary(f.plan.last()); f == all[0] {
			x.LateMS = late
		} else {
			x.BesideMS = late
		}
	}
	x.CPUUS = cpu(n)
	if x.PerS = all[0].watch.perS(); x.PerS > 0 {
		x.DrainS = round(x.LateMS.Max / 1000)
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
