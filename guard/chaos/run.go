package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	readyLimit = time.Minute     // for the workers to begin
	lookEach   = 3 * time.Second // between looks at the table while items are due
	stopLimit  = 30 * time.Second
)

// trial is the run of one strategy.
type trial struct {
	options
	e        *endpoint
	strategy guard.Strategy
	table    string
	clock    *clock.Clock
	plan     *plan
	ledger   *ledger
	proxy    *proxy
	fleet    *fleet
	load     *load
}

// runAll runs all strategies side by side and returns their report. program is the program of a
// worker with its first arguments.
func runAll(ctx context.Context, o options, program []string, stderr io.Writer) (*report, error) {
	e, err := connect(ctx, o.Endpoint)
	if err != nil {
		return nil, err
	}
	defer e.close()
	now := clock.NewAt(clock.New().Now()) // monotonic
	r := &report{Seed: o.Seed, Endpoint: e.url, For: o.For.String(), Workers: o.Workers, Rate: o.Rate, Began: now.Now()}
	fmt.Fprintf(stderr, "chaos: seed %d at %s\n", o.Seed, e.url)
	trials, err := newTrials(ctx, o, e, now)
	if err == nil {
		err = runTrials(ctx, trials, program, stderr)
	}
	for _, t := range trials {
		r.Trials = append(r.Trials, t.report())
	}
	if !o.Keep {
		err = errors.Join(err, cleanUp(trials, e))
	}
	return r, err
}

// newTrials makes the tables. Without --strategy, it leaves out what the endpoint does not support.
func newTrials(ctx context.Context, o options, e *endpoint, now *clock.Clock) (all []*trial, err error) {
	chosen := strategies
	if o.Strategy != nil {
		chosen = nil
		for _, name := range o.Strategy {
			chosen = append(chosen, guard.Strategy(name))
		}
	}
	for _, s := range chosen {
		name := fmt.Sprintf("mayfly-chaos-%d-%s", o.Seed, s)
		supported, err := e.createTable(ctx, name, s)
		switch {
		case err != nil:
			return all, err
		case !supported && o.Strategy != nil:
			return all, advise(fmt.Errorf("%s has no streams", e.url), "use --strategy index,scan")
		case supported:
			all = append(all, newTrial(o, e, s, name, now))
		}
	}
	return all, nil
}

func newTrial(o options, e *endpoint, s guard.Strategy, table string, now *clock.Clock) *trial {
	t := &trial{options: o, e: e, strategy: s, table: table, clock: now, plan: newPlan(o.Seed, string(s), o.Faults)}
	allowed := int64(0)
	for _, f := range t.plan.chosen {
		if f.name == "date" {
			allowed = o.MaxSkew.Milliseconds()
		}
	}
	t.ledger = newLedger(allowed)
	t.proxy = &proxy{e: e, table: table, plan: t.plan, ledger: t.ledger, clock: now, maxSkew: o.MaxSkew}
	return t
}

// runTrials runs trials side by side, and prints their progress. It returns the first error, and
// nil after an interrupt, which only shortens the run.
func runTrials(ctx context.Context, trials []*trial, program []string, stderr io.Writer) error {
	var all sync.WaitGroup
	errs := make([]error, len(trials))
	for i, t := range trials {
		all.Go(func() { errs[i] = t.run(ctx, program, stderr) })
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintln(stderr, "chaos: interrupted; the report follows when the workers have settled")
	})()
	elapsed := clock.Stopwatch()
	for {
		clock.Pause(5*time.Second, over)
		select {
		case <-over:
			return errors.Join(errs...)
		default:
		}
		for _, t := range trials {
			c := t.ledger.snapshot()
			injected, _ := t.plan.counted()
			fmt.Fprintf(stderr, "chaos: %3.0f s, %s: %d items, %d removed, %d refused, %d early, %d wrong, %d faults\n",
				elapsed().Seconds(), t.strategy, c.Items, c.Removals, c.Refused, c.Early, c.Wrong, sum(injected))
		}
	}
}

// run runs one trial: the workers, the load, the faults, and the comparison at the end.
func (t *trial) run(ctx context.Context, program []string, stderr io.Writer) error {
	if err := t.proxy.start(); err != nil {
		return err
	}
	t.fleet = &fleet{program: program, plan: t.plan, ledger: t.ledger, config: workerConfig{
		URL: t.proxy.url, Region: t.e.region, Table: t.table, Strategy: t.strategy, Batch: t.Batch, MaxSkew: t.MaxSkew, Lease: t.Lease, Alone: t.Workers == 1,
	}}
	if t.Verbose {
		t.fleet.log = stderr
	}
	t.fleet.start(t.Workers)
	begun, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	err := t.fleet.awaitReady(begun)
	if err == nil {
		t.drive(ctx)
		t.settle(ctx)
	}
	t.fleet.stop()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if err := errors.Join(err, t.proxy.stop(stopping)); err != nil {
		return err
	}
	return t.compare(stopping)
}

// drive runs the load: a quarter of the time without faults, and then with them.
func (t *trial) drive(ctx context.Context) {
	began := t.clock.Millis()
	plain, end := t.For/4, began+t.For.Milliseconds()
	t.load = &load{db: t.e.once, table: t.table, strategy: t.strategy, seed: t.Seed, rate: t.Rate, faultsAt: clock.Never, ledger: t.ledger, clock: t.clock}
	if len(t.plan.chosen) > 0 {
		t.load.faultsAt = began + plain.Milliseconds()
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { t.load.run(writing) })
	_ = t.clock.Sleep(ctx, began+plain.Milliseconds(), nil) // an interrupt only shortens it
	healed := make(chan struct{})
	t.plan.on.Store(true)
	t.plan.begun.Store(true)
	parts.Go(func() { t.fleet.harass(healed) })
	_ = t.clock.Sleep(ctx, end, nil)
	stop()
	t.plan.on.Store(false)
	close(healed)
	parts.Wait()
}

// settle waits until every item with a near deadline is gone, or the workers have had their time.
// It looks into the table too, since the endpoint may have removed an item without an answer.
func (t *trial) settle(ctx context.Context) {
	near := t.clock.Millis() + nearMost + 1000
	limit := near + t.Settle.Milliseconds()
	for look := t.clock.Millis(); t.clock.Millis() < limit; {
		waiting := t.ledger.waiting(near)
		if len(waiting) == 0 || ctx.Err() != nil && t.clock.Millis() > near+stopLimit.Milliseconds() {
			return
		}
		clock.Pause(200*time.Millisecond, nil)
		if now := t.clock.Millis(); now-look >= lookEach.Milliseconds() && now > near-nearMost {
			look = now
			t.look(context.WithoutCancel(ctx), t.ledger.waiting(now))
		}
	}
}

// look reads the table, and notes the due items that are gone without a witness.
func (t *trial) look(ctx context.Context, keys []string) {
	items, err := t.e.contents(ctx, t.table)
	if err != nil {
		return // the comparison at the end reports it
	}
	var gone []string
	for _, key := range keys {
		if _, there := items[key]; !there {
			gone = append(gone, key)
		}
	}
	t.ledger.seenGone(gone)
}

// compare compares the table with the ledger.
func (t *trial) compare(ctx context.Context) error {
	at := t.clock.Millis()
	items, err := t.e.contents(ctx, t.table)
	if err != nil {
		return err
	}
	t.ledger.compare(items, at)
	return nil
}

// cleanUp deletes the tables of the run.
func cleanUp(trials []*trial, e *endpoint) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var errs []error
	for _, t := range trials {
		errs = append(errs, e.deleteTable(ctx, t.table))
	}
	return errors.Join(append(errs, e.deleteOwn(ctx))...)
}
