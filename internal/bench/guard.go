package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// experimentGuard measures mayfly guard at a server that removes nothing itself: lateness and rate
// of removals, the memory of a million deadlines, and the lateness after a worker is killed.
const experimentGuard = "guard"

// Parts of the experiment.
const (
	guardEven     = "even"
	guardBurst    = "burst"
	guardTakeover = "takeover"
)

const (
	guardPerS         = 1000 // rate of even removals
	guardBurstPart    = 10   // divisor of Burst for guard's burst
	guardArmed        = 1_000_000
	guardTakeoverPerS = 100
	guardTakeoverFor  = 40 * time.Second // span of deadlines around the kill of a worker
	guardKilledAfter  = 10 * time.Second // time of the kill after the first deadline
	guardSettle       = 3 * time.Second  // time for started workers to divide the work
	guardGrace        = 30 * time.Second // time for removals after the last deadline
	guardArmLimit     = 5 * time.Minute
	guardKnown        = time.Second // least time between the write of an item and its deadline
)

// guardRun is the state of the experiment.
type guardRun struct {
	*run
	server *endpoint
	found  *Guard
	tables int // created so far
}

// guards measures the program's own server with workers of the run.
func (r *run) guards(ctx context.Context) (err error) {
	if !r.runs(experimentGuard) || r.URL != nil {
		return nil
	}
	s := &guardRun{run: r, found: &Guard{Target: ownName}}
	if s.server, err = r.startServer(ctx, experimentGuard, "--expiry", "aws", "--expiry-delay", "fixed:8784h"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.close()) }()
	for _, part := range []func(context.Context) error{s.even, s.burst, s.armed, s.takeover} {
		if err := part(ctx); err != nil {
			return fmt.Errorf("%s: %w", experimentGuard, err)
		}
	}
	r.report.Guard = s.found
	return nil
}

// guardSteps returns the number of the experiment's steps.
func guardSteps() int { return 4 }

// watchers are the workers.
type watchers []*endpoint

// start starts workers that guard a table, and waits until they do.
func (s *guardRun) start(ctx context.Context, n int, table string, flags ...string) (all watchers, err error) {
	for range n {
		line := slices.Concat(s.Self, []string{"guard", "run", "--endpoint", "http://" + s.server.address, "--table", table, "--metrics-port", "0", "--log-level", "error"}, flags)
		w, err := startEndpoint(ctx, experimentGuard, line)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, w)
	}
	limit := time.Now().Add(childStartLimit)
	for _, w := range all {
		for {
			a, err := w.exchange(ctx, []byte("GET /readyz HTTP/1.1\r\nHost: "+w.address+"\r\n\r\n"))
			if err == nil && a.status == 200 {
				break
			}
			if err == nil && time.Now().After(limit) {
				err = fmt.Errorf("guard is not ready: %s", a.body)
			}
			if err == nil {
				err = pause(ctx, activePoll)
			}
			if err != nil {
				return nil, errors.Join(err, all.close())
			}
		}
	}
	settle := guardSettle
	if s.Quick {
		settle = time.Second
	}
	return all, pause(ctx, settle)
}

func (all watchers) close() error {
	var errs []error
	for _, w := range all {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}

func (all watchers) cpu() (sum time.Duration) {
	for _, w := range all {
		used, _ := w.cpu()
		sum += used
	}
	return sum
}

// even expires items evenly.
func (s *guardRun) even(ctx context.Context) error {
	p := &plan{spread: s.Spread, items: max(int(s.Spread.Seconds()*guardPerS), 100), millis: true}
	x := &Removals{Experiment: guardEven, About: fmt.Sprintf("items expire evenly, %d a second, each known a second or more before", guardPerS)}
	return s.remove(ctx, x, p, 1, nil)
}

// burst expires items at one instant.
func (s *guardRun) burst(ctx context.Context) error {
	p := &plan{items: max(s.Burst/guardBurstPart, 100), millis: true}
	x := &Removals{Experiment: guardBurst, About: "items expire all at one instant"}
	return s.remove(ctx, x, p, 1, nil)
}

// takeover kills one of two workers while items expire evenly.
func (s *guardRun) takeover(ctx context.Context) error {
	p := &plan{spread: guardTakeoverFor, items: int(guardTakeoverFor.Seconds() * guardTakeoverPerS), millis: true}
	after, lease := guardKilledAfter, "6s"
	if s.Quick {
		p.spread, p.items, after, lease = 4*time.Second, 200, time.Second, "1s"
	}
	x := &Removals{Experiment: guardTakeover, About: "items expire evenly, and one of two workers is killed meanwhile; leases of " + lease}
	return s.remove(ctx, x, p, 2, func(all watchers) error {
		if err := pause(ctx, time.Until(p.first.Add(after))); err != nil {
			return err
		}
		return all[0].child.kill()
	}, "--lease", lease)
}

// remove expires a new table's items under workers, calls meanwhile during that, and measures the
// removals. If writing the items takes too long, it starts again.
func (s *guardRun) remove(ctx context.Context, x *Removals, p *plan, workers int, meanwhile func(watchers) error, flags ...string) error {
	s.step("%d %s", p.items, x.About)
	for perS := float64(fillPerS); ; perS /= 2 {
		err := s.removeOnce(ctx, x, p, workers, meanwhile, perS, flags)
		if !errors.Is(err, errPreparing) || perS < fillPerS/8 {
			return err
		}
	}
}

// a first estimate of the write rate, with time for guard to learn of the items
const fillPerS = 8000

func (s *guardRun) removeOnce(ctx context.Context, x *Removals, p *plan, workers int, meanwhile func(watchers) error, perS float64, flags []string) (err error) {
	s.tables++
	t, err := s.server.createTable(ctx, fmt.Sprintf("%s%d-", s.prefix, s.tables), tableSpread)
	if err != nil {
		return err
	}
	all, err := s.start(ctx, workers, t.name, append(flags, "--strategy", "stream")...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	w := newWatch(p)
	p.first = time.Now().Add(time.Duration(float64(p.items)/perS*float64(time.Second)) + settleTime).Truncate(time.Millisecond)
	if err := s.server.fillTable(ctx, t, tableSpread, 0, p.items, p.text); err != nil {
		return err
	}
	if time.Now().After(p.first.Add(-guardKnown)) {
		return errPreparing
	}
	reader, err := s.server.readStream(ctx, t, w.removed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.close()) }()
	if err := pause(ctx, time.Until(p.first)); err != nil {
		return err
	}
	before, _ := s.server.cpu()
	beforeGuard := all.cpu()
	if meanwhile != nil {
		if err := meanwhile(all); err != nil {
			return err
		}
	}
	if err := await(ctx, w, p.last(), guardGrace+time.Duration(p.items/gracePerS)*time.Second); err != nil {
		return err
	}
	x.Items, x.LateMS = p.items, w.summary(p.last())
	var missing int
	x.Early, x.Twice, missing = w.faults()
	if missing > 0 {
		inTable, err := s.server.countItems(ctx, t)
		if err != nil {
			return err
		}
		x.setMissing(missing, inTable, true)
	}
	if used, known := s.server.cpu(); known {
		x.ServerCPUUS = round(micros(used-before) / float64(p.items))
		if meanwhile == nil {
			x.GuardCPUUS = round(micros(all.cpu()-beforeGuard) / float64(p.items))
		}
	}
	if p.spread == 0 && x.LateMS != nil && missing == 0 {
		x.PerS = round(float64(p.items) / (x.LateMS.Max / 1000))
	}
	s.found.Removals = append(s.found.Removals, *x)
	if wrong := x.sum(); wrong > 0 {
		s.problem(wrong, fmt.Sprintf("%s removals: %s", x.Experiment, x.list()))
	}
	s.result("%s", x.line())
	return nil
}

const guardIndex = `{"TableName":"%s","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},` +
	`{"AttributeName":"shard","AttributeType":"S"},{"AttributeName":"expires_at","AttributeType":"N"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],` +
	`"GlobalSecondaryIndexes":[{"IndexName":"by-deadline","KeySchema":[{"AttributeName":"shard","KeyType":"HASH"},{"AttributeName":"expires_at","KeyType":"RANGE"}],` +
	`"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`

// armed measures the memory of a worker with many deadlines in an hour, which it reads from an
// index.
func (s *guardRun) armed(ctx context.Context) (err error) {
	n := guardArmed
	if s.Quick {
		n = 3000
	}
	s.step("%d deadlines armed", n)
	name := s.prefix + "armed"
	if _, err := s.server.call(ctx, apiPrefix+"CreateTable", fmt.Sprintf(guardIndex, name)); err != nil {
		return err
	}
	if err := s.server.awaitActive(ctx, name); err != nil {
		return err
	}
	if err := s.fillIndexed(ctx, name, n); err != nil {
		return err
	}
	all, err := s.start(ctx, 1, name, "--strategy", "index", "--index", "by-deadline", "--attribute", "expires_at", "--shards", "1", "--period", "1h", "--alone")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	limit := time.Now().Add(guardArmLimit)
	for {
		has, err := all[0].gauge(ctx, `mayfly_guard_armed{TableName="`+name+`"} `)
		if err != nil {
			return err
		}
		if int(has) >= n {
			break
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%.0f of %d deadlines are armed after %s", has, n, guardArmLimit)
		}
		if err := pause(ctx, 10*activePoll); err != nil {
			return err
		}
	}
	if _, err := rest(ctx, all.cpu); err != nil {
		return err
	}
	bytes, _ := residentBytes(all[0].pid)
	s.found.Armed, s.found.ArmedMB = n, memory(bytes)
	s.result("%.0f MB resident", s.found.ArmedMB)
	return nil
}

// fillIndexed writes items with the attributes of a deadline only.
func (s *guardRun) fillIndexed(ctx context.Context, table string, n int) error {
	at := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	var taken atomic.Int64
	callers := make([]caller, fillConnections)
	for i := range callers {
		callers[i] = &fillCaller{
			host: s.server.address, table: table, item: `{` + itemKey + `,"shard":{"S":"0"},"expires_at":{"N":"` + markWhen + `"}}`, end: n, taken: &taken,
			when: func(int) string { return at },
		}
	}
	total, _, err := load(ctx, s.server.address, callers, fillLimit)
	if err == nil && (total.errors > 0 || total.items != n) {
		err = fmt.Errorf("fill %s: %d of %d items written, %d errors: %s", table, total.items, n, total.errors, total.problem)
	}
	return err
}

// gauge returns the value of the line of /metrics with a prefix, or 0.
func (e *endpoint) gauge(ctx context.Context, line string) (v float64, err error) {
	a, err := e.exchange(ctx, []byte("GET /metrics HTTP/1.1\r\nHost: "+e.address+"\r\n\r\n"))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut("\n"+string(a.body), "\n"+line)
	if !found {
		return 0, nil
	}
	_, err = fmt.Sscan(rest, &v)
	return v, err
}
