package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	idleTime    = 5 * time.Second // length of the phase without expiry
	idleQuick   = 300 * time.Millisecond
	settleTime  = 1500 * time.Millisecond // pause after filling
	settleQuick = 400 * time.Millisecond
	expiryGrace = 20 * time.Second // time for removals after the last deadline
	besideItems = 500
	besideFor   = 10 * time.Second
	probeItems  = 2000             // items that measure the fill rate
	fillMost    = 60 * time.Second // for filling a table of the first endpoint
	fillVersus  = 10 * time.Second // for one of another endpoint: a slow one gets fewer items
)

// fillShare is the share of the first items' rate that filling a table is expected to reach.
const fillShare = 1 / 1.5

// expiryRun is the state of an experiment at an endpoint.
type expiryRun struct {
	*run
	expiryExperiment
	endpoint *endpoint
	plan     *plan
	share    float64 // of the first items' rate
	probe    int     // items with deadlines after the run
	main     *table
	metrics  bool // the endpoint has mayfly's metrics of lateness
	before   scrape

	watch   *watch // of the stream; nil if it is not read
	others  *watch // of the other table; nil without one
	readers []*streamReader
	calls   *foreground // nil without calls
}

// expire runs an experiment at an endpoint. If filling the table takes too long, it starts again
// with a lower estimate of the rate. Faults are problems of the run at its first endpoint only. It
// returns nil if an earlier experiment has shown that this one is of no use.
func (e *endpoint) expire(ctx context.Context, r *run, x expiryExperiment) (*Expiry, error) {
	if e.onlyCalls || e.removesNothing || e.wholeSeconds && x.even() {
		return nil, nil
	}
	if x.callsPerS > 0 {
		if err := r.ensure(ctx, e, tableForeground); err != nil {
			return nil, err
		}
	}
	r.step("%s at %s: %d items %s", x.name, e.name, x.items, x.due(x.items))
	var found *Expiry
	err := whenPrepared(fillShare, func(share float64) (err error) {
		s := &expiryRun{run: r, endpoint: e, expiryExperiment: x, plan: x.plan(), share: share}
		found, err = s.do(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("at %s: %w", e.name, err)
	}
	e.removesNothing = found.NoTTL || found.NotRemoved == found.Items
	r.result("%s", found.line())
	if wrong := found.sum(); wrong > 0 && e == r.endpoints[0] {
		r.problem(wrong, fmt.Sprintf("%s at %s: %s", x.name, e.name, found.list()))
	}
	return found, nil
}

func (s *expiryRun) do(ctx context.Context) (found *Expiry, err error) {
	if s.before, s.metrics, err = s.endpoint.scrape(ctx); err != nil {
		return nil, err
	}
	s.endpoint.wholeSeconds = !s.metrics
	if s.main, err = s.endpoint.createTable(ctx, s.prefix, s.table); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, s.stop())
		if ctx.Err() == nil { // dropTables removes it later
			err = errors.Join(err, s.endpoint.dropTable(ctx, s.table))
		}
	}()
	if !s.main.ttl {
		found := s.ofItems(s.endpoint.name, s.items)
		found.Items, found.NoTTL = 0, true
		return found, nil
	}
	if err := inOrder(ctx, s.fill, s.attend); err != nil {
		return nil, err
	}
	return s.observe(ctx)
}

// fill writes the items. At first it measures the rate with items that do not expire in the run,
// and lowers the plan's number of items to those that fit into fillMost, or fillVersus. The
// deadlines start when filling, preparations and the idle phase should be over.
func (s *expiryRun) fill(ctx context.Context) error {
	s.probe = min(probeItems, s.plan.items/10)
	start := time.Now()
	if err := s.endpoint.fillTable(ctx, s.main, s.plan.items, s.plan.items+s.probe, farDeadline); err != nil {
		return err
	}
	each := time.Since(start) / time.Duration(s.probe)
	most := fillVersus
	if s.endpoint == s.endpoints[0] {
		most = fillMost
	}
	s.plan.items = min(s.plan.items, int(most/each))
	needed := time.Duration(float64(each) / s.share * float64(s.plan.items))
	s.plan.whole = s.plan.whole || !s.metrics
	s.plan.first = time.Now().Add(needed + s.settle() + s.idle(s.Quick)).Truncate(time.Second)
	return s.endpoint.fillTable(ctx, s.main, 0, s.plan.items, s.plan.text)
}

func (s *expiryRun) settle() time.Duration {
	return pick(s.Quick, settleQuick, settleTime) + time.Second
}

// attend starts the readers of streams, and the calls. It returns errPreparing if the idle phase
// should have begun by then.
func (s *expiryRun) attend(ctx context.Context) (err error) {
	if s.beside {
		if err := s.attendBeside(ctx); err != nil {
			return err
		}
	}
	if s.read {
		if s.watch, err = s.watchStream(ctx, s.main, s.plan); err != nil {
			return err
		}
	}
	if s.callsPerS > 0 {
		if s.calls, err = s.endpoint.startForeground(ctx, s.callsPerS); err != nil {
			return err
		}
	}
	if time.Now().After(s.plan.first.Add(-s.idle(s.Quick))) {
		return errPreparing
	}
	return nil
}

// watchStream reads a table's stream, and returns nil if it has none.
func (s *expiryRun) watchStream(ctx context.Context, t *table, p *plan) (*watch, error) {
	w := newWatch(p)
	reader, err := s.endpoint.readStream(ctx, t, w.removed)
	if err != nil || reader == nil {
		return nil, err
	}
	s.readers = append(s.readers, reader)
	return w, nil
}

// ensure prepares a table that experiments share, unless it exists.
func (r *run) ensure(ctx context.Context, e *endpoint, kind *design) error {
	if e.tables[kind] != nil {
		return nil
	}
	return r.prepareTable(ctx, e, kind)
}

// attendBeside prepares the table that expires evenly during the burst of the other.
func (s *expiryRun) attendBeside(ctx context.Context) (err error) {
	if err := s.ensure(ctx, s.endpoint, tableBeside); err != nil {
		return err
	}
	t := s.endpoint.tables[tableBeside]
	p := &plan{first: s.plan.first, spread: pick(s.Quick, time.Second, besideFor), items: besideItems, whole: s.plan.whole}
	if err := s.endpoint.fillTable(ctx, t, 0, p.items, p.text); err != nil {
		return err
	}
	s.others, err = s.watchStream(ctx, t, p)
	return err
}

// observe measures the idle phase, waits for the removals, and returns the result.
func (s *expiryRun) observe(ctx context.Context) (*Expiry, error) {
	calm, err := s.calls.idlePhase(ctx, s.plan.first, s.idle(s.Quick))
	if err != nil {
		return nil, err
	}
	cpu := s.endpoint.cpuEach()
	perS, err := s.await(ctx)
	if err != nil {
		return nil, err
	}
	during := s.calls.phase()
	found := s.ofItems(s.endpoint.name, s.plan.items)
	if s.plan.spread == 0 {
		found.DrainPerS = round(perS)
		if s.watch != nil {
			found.ReaderPerS = s.watch.perS()
		}
	}
	found.Foreground = s.calls.figures(calm, during)
	s.callErrors(found, calm, during)
	found.CPUUS = cpu(s.plan.items)
	drained := time.Now()
	if s.others != nil {
		if err := Pause(ctx, time.Until(s.others.plan.last().Add(settleQuick))); err != nil {
			return nil, err
		}
		found.Beside = s.others.summary(drained)
	}
	return found, s.describe(ctx, found, drained)
}

// callErrors counts the errors of the calls beside an experiment.
func (r *run) callErrors(x *Expiry, phases ...phase) {
	for _, p := range phases {
		for _, calls := range p {
			if calls.errors > 0 {
				r.problem(calls.errors, fmt.Sprintf("calls beside %s at %s: %s", x.Experiment, x.Target, calls.problem))
			}
		}
	}
}

// await waits until all items are removed and their records read, or until the grace period ends.
// It returns the removals per second from the first deadline on.
func (s *expiryRun) await(ctx context.Context) (perS float64, err error) {
	if s.metrics && (s.watch == nil || s.plan.spread == 0) {
		limit, cancel := context.WithDeadline(ctx, s.plan.last().Add(expiryGrace))
		defer cancel()
		perS, err = s.awaitDrained(limit)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // the report has the missing items
	}
	if s.watch != nil && err == nil {
		err = s.watch.await(ctx, expiryGrace)
	}
	return perS, err
}

const (
	drainPollFirst = 50 * time.Millisecond
	drainPollLast  = 500 * time.Millisecond
)

// awaitDrained polls the number of expired items until all have expired, with growing pauses: each
// poll makes the server count its backlog, which is additional work. It returns the rate at the
// last poll before the end, or at the first one if that is the end.
func (s *expiryRun) awaitDrained(ctx context.Context) (perS float64, err error) {
	for pauses := (retry.Policy{First: drainPollFirst, Most: drainPollLast}).Start(); ; {
		if !pauses.Wait(ctx) {
			return perS, ctx.Err()
		}
		asked := time.Now()
		now, _, err := s.endpoint.scrape(ctx)
		if err != nil {
			return perS, err
		}
		at := asked.Add(time.Since(asked) / 2)
		gone := s.deleted(now)
		complete := gone >= float64(s.plan.items)
		if !complete || perS == 0 {
			perS = gone / at.Sub(s.plan.first).Seconds()
		}
		if complete {
			return perS, nil
		}
	}
}

// deleted returns the number of removals that the metrics count since the start.
func (s *expiryRun) deleted(now scrape) float64 {
	return now.ofTable(metricDeleted, s.main.name) - s.before.ofTable(metricDeleted, s.main.name)
}

// describe fills in the lateness and the faults. drained is the end of the wait for the removals,
// so no commit was later.
func (s *expiryRun) describe(ctx context.Context, found *Expiry, drained time.Time) error {
	missing := s.plan.items
	if s.watch != nil {
		found.Stream = s.watch.summary(s.plan.last())
		found.Early, found.Twice, missing = s.watch.faults()
	}
	if !s.metrics && missing == 0 {
		return nil
	}
	if !s.metrics {
		inTable, err := s.endpoint.countItems(ctx, s.main)
		found.setMissing(missing, inTable-s.probe, s.watch != nil)
		return err
	}
	after, _, err := s.endpoint.scrape(ctx)
	if err != nil {
		return err
	}
	most := millis(drained.Sub(s.plan.first))
	if found.Stream != nil && missing == 0 {
		most = found.Stream.Max // a record is committed before it is read
	}
	found.Commit = after.latenessSince(s.before, most)
	found.setMissing(missing, s.plan.items-int(s.deleted(after)), s.watch != nil)
	return nil
}

// setMissing divides the items without a record into items in the table and lost ones. Without a
// stream no record can be lost.
func (f *Faults) setMissing(missing, inTable int, recorded bool) {
	f.NotRemoved = min(missing, max(inTable, 0))
	if recorded {
		f.Lost = missing - f.NotRemoved
	}
}

// countItems returns the number of items that readers of a table see.
func (e *endpoint) countItems(ctx context.Context, t *table) (total int, err error) {
	for pages := (&scanCaller{host: e.address, table: t.name}); ; {
		a, err := e.exchange(ctx, pages.next())
		n := 0
		if err == nil {
			n, err = judge(pages, a)
		}
		if err != nil {
			return 0, fmt.Errorf("count the items of %s: %w", t.name, err)
		}
		if total += n; pages.after == nil {
			return total, nil
		}
	}
}

// stop ends the readers.
func (s *expiryRun) stop() error {
	s.calls.stop()
	var errs []error
	for _, reader := range s.readers {
		errs = append(errs, reader.close())
	}
	return errors.Join(errs...)
}
