package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// experimentGuard measures mayfly guard at a server that removes nothing itself: lateness and rate
// of removals, the memory of a million deadlines, and the lateness after a worker is killed.
const experimentGuard = "guard"

// Parts of the experiment.
const (
	guardWhole    = "whole seconds"
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
	s := &guardRun{run: r, found: &Guard{Target: ownName}}
	if s.server, err = r.startServer(ctx, experimentGuard, r.Durability, "--expiry", "aws", "--expiry-delay", "fixed:8784h"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.close()) }()
	if err := inOrder(ctx, s.whole, s.even, s.burst, s.armed, s.takeover); err != nil {
		return err
	}
	r.report.Guard = s.found
	return nil
}

// watchers are the workers.
type watchers []*endpoint

// start starts workers that guard a table, and waits until they do.
func (s *guardRun) start(ctx context.Context, n int, table string, flags ...string) (all watchers, err error) {
	for range n {
		line := slices.Concat(s.Self, []string{"guard", "run", "--endpoint", "http://" + s.server.address, "--table", table, "--metrics-port", "0", "--accept-overdue", "any", "--log-level", "error"}, flags)
		w, err := startEndpoint(ctx, experimentGuard, line)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, w)
	}
	for _, w := range all {
		if err := Poll(ctx, activePoll, childStartLimit, "guard is not ready", func() (bool, error) {
			a, err := w.get(ctx, "/readyz")
			return a.status == 200, err
		}); err != nil {
			return nil, errors.Join(err, all.close())
		}
	}
	return all, Pause(ctx, pick(s.Quick, time.Second, guardSettle))
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
		sum += w.used()
	}
	return sum
}

// whole expires items at whole seconds, as TTL values are.
func (s *guardRun) whole(ctx context.Context) error {
	p := &plan{spread: s.Spread, items: max(int(s.Spread.Seconds()*wholePerS), 100), whole: true}
	x := &Removals{Experiment: guardWhole, About: fmt.Sprintf("items expire at whole seconds, %d at each, each known a second or more before", wholePerS)}
	return s.remove(ctx, x, p, 1, nil)
}

// even expires items evenly.
func (s *guardRun) even(ctx context.Context) error {
	p := &plan{spread: s.Spread, items: max(int(s.Spread.Seconds()*guardPerS), 100)}
	x := &Removals{Experiment: guardEven, About: fmt.Sprintf("items expire evenly, %d a second, each known a second or more before", guardPerS)}
	return s.remove(ctx, x, p, 1, nil)
}

// burst expires items at one instant.
func (s *guardRun) burst(ctx context.Context) error {
	p := &plan{items: max(s.Burst/guardBurstPart, 100)}
	x := &Removals{Experiment: guardBurst, About: "items expire all at one instant"}
	return s.remove(ctx, x, p, 1, nil)
}

// takeover kills one of two workers while items expire evenly.
func (s *guardRun) takeover(ctx context.Context) error {
	p := &plan{spread: guardTakeoverFor, items: int(guardTakeoverFor.Seconds() * guardTakeoverPerS)}
	after, lease := guardKilledAfter, "6s"
	if s.Quick {
		p.spread, p.items, after, lease = 4*time.Second, 200, time.Second, "1s"
	}
	x := &Removals{Experiment: guardTakeover, About: "items expire evenly, and one of two workers is killed meanwhile; leases of " + lease}
	return s.remove(ctx, x, p, 2, func(all watchers) error {
		if err := Pause(ctx, time.Until(p.first.Add(after))); err != nil {
			return err
		}
		return all[0].child.kill()
	}, "--lease", lease)
}

// remove expires a new table's items under workers, calls meanwhile during that, and measures the
// removals. If writing the items takes too long, it starts again.
func (s *guardRun) remove(ctx context.Context, x *Removals, p *plan, workers int, meanwhile func(watchers) error, flags ...string) error {
	s.step("%d %s", p.items, x.About)
	return whenPrepared(fillPerS, func(perS float64) error {
		return s.removeOnce(ctx, x, p, workers, meanwhile, perS, flags)
	})
}

// fillPerS is a first estimate of the rate of writes, with time for guard to learn of the items.
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
	p.start(p.items, perS)
	if err := s.server.fillTable(ctx, t, 0, p.items, p.text); err != nil {
		return err
	}
	reader, err := s.server.readStream(ctx, t, w.removed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.close()) }()
	if err := p.begin(ctx, guardKnown); err != nil {
		return err
	}
	serverCPU, guardBefore := s.server.cpuEach(), all.cpu()
	if meanwhile != nil {
		if err := meanwhile(all); err != nil {
			return err
		}
	}
	if err := w.await(ctx, guardGrace+time.Duration(p.items/gracePerS)*time.Second); err != nil {
		return err
	}
	x.Items, x.LateMS, x.PerS = p.items, w.summary(p.last()), w.perS()
	if x.ServerCPUUS = serverCPU(p.items); meanwhile == nil { // a killed worker's is unknown
		x.GuardCPUUS = round(micros(all.cpu()-guardBefore) / float64(p.items))
	}
	var missing int
	if x.Early, x.Twice, missing = w.faults(); missing > 0 {
		inTable, err := s.server.countItems(ctx, t)
		if err != nil {
			return err
		}
		x.setMissing(missing, inTable, true)
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

// guardItem has the attributes of a deadline only.
const guardItem = "{" + itemKey + `,"shard":{"S":"0"},"expires_at":{"N":"<when>"}}`

// armed measures the memory of a worker with many deadlines in an hour, which it reads from an
// index.
func (s *guardRun) armed(ctx context.Context) (err error) {
	n := pick(s.Quick, 3000, guardArmed)
	s.step("%d deadlines armed", n)
	name := s.prefix + "armed"
	if _, err := s.server.call(ctx, apiPrefix+"CreateTable", fmt.Sprintf(guardIndex, name)); err != nil {
		return err
	}
	if err := s.server.awaitActive(ctx, name); err != nil {
		return err
	}
	at := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	if err := s.server.fillItems(ctx, name, guardItem, 0, n, func(int) string { return at }); err != nil {
		return err
	}
	all, err := s.start(ctx, 1, name, "--strategy", "index", "--index", "by-deadline", "--attribute", "expires_at", "--shards", "1", "--period", "1h", "--alone")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	if err := Poll(ctx, 10*activePoll, guardArmLimit, fmt.Sprintf("fewer than %d deadlines are armed", n), func() (bool, error) {
		metrics, _, err := all[0].scrape(ctx)
		return metrics.ofTable(metricArmed, name) >= float64(n), err
	}); err != nil {
		return err
	}
	if _, err := awaitIdle(ctx, all.cpu, idleLimit); err != nil {
		return err
	}
	bytes, _ := residentBytes(all[0].pid)
	s.found.Armed, s.found.ArmedMB = n, memory(bytes)
	s.result("%.0f MB resident", s.found.ArmedMB)
	return nil
}
