package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/internal/clock"
)

const (
	fleetTable = "mayfly-chaos-fleet"
	scanLimit  = time.Hour // for the first scan of the pending items
)

// fleetRun is a run of a fleet under load.
type fleetRun struct {
	fleetOptions
	program []string // of a worker, with its first arguments
	stderr  io.Writer
	saying  sync.Mutex // of stderr

	e      *endpoint
	clock  *clock.Clock
	ledger *ledger
	proxy  *proxy
	fleet  *fleet
	wave   *wave
	events []event
	took   fleetTimes
}

// event is a change of the fleet.
type event struct {
	Second float64 `json:"second"` // after the first deadline
	What   string  `json:"what"`
}

// fleetTimes are the durations of the parts of a run in seconds.
type fleetTimes struct {
	Fill float64 `json:"fill_s"` // of the table with pending items
	Scan float64 `json:"scan_s"` // the workers' first scan
}

// run runs everything, and returns the report. An interrupt ends the run with an error.
func (f *fleetRun) run(ctx context.Context) (r *fleetReport, err error) {
	db, err := mayfly.Open(f.Dir, mayfly.Options{DatabaseOnly: true, Shards: f.Shards})
	if err != nil {
		return nil, fmt.Errorf("start a mayfly in this process: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f.clock = clock.NewAt(clock.New().Now()) // monotonic
	began := f.clock.Now()
	f.e = &endpoint{region: "us-east-1", db: db.DynamoDB(), once: db.DynamoDB()}
	if _, err := f.e.createTable(ctx, fleetTable, guard.Stream); err != nil {
		return nil, err
	}
	f.ledger = newLedger(0)
	f.ledger.seesAll = true
	f.wave = f.newWave()
	if err := f.fill(ctx); err != nil {
		return nil, err
	}
	plan := newPlan(1, string(guard.Stream), nil)
	f.proxy = &proxy{e: f.e, table: fleetTable, plan: plan, ledger: f.ledger, clock: f.clock, direct: db.Handler()}
	if err := f.proxy.start(); err != nil {
		return nil, err
	}
	f.fleet = &fleet{program: f.program, plan: plan, ledger: f.ledger, config: workerConfig{
		URL: f.proxy.url, Region: f.e.region, Table: fleetTable, Strategy: guard.Stream, MaxSkew: 5 * time.Second, Lease: f.Lease, Batch: guard.BatchFree,
	}}
	if f.Verbose {
		f.fleet.log = f.stderr
	}
	f.fleet.start(f.Workers)
	err = f.drive(ctx)
	f.fleet.stop()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if err := errors.Join(err, f.proxy.stop(stopping)); err != nil {
		return nil, err
	}
	if err := f.compare(ctx); err != nil {
		return nil, err
	}
	return f.report(began), nil
}

// say prints a line of progress.
func (f *fleetRun) say(format string, args ...any) {
	f.saying.Lock()
	defer f.saying.Unlock()
	fmt.Fprintf(f.stderr, "chaos: "+format+"\n", args...)
}

// fill writes the pending items.
func (f *fleetRun) fill(ctx context.Context) error {
	elapsed := clock.Stopwatch()
	var next, done atomic.Int64
	errs := make([]error, writers)
	from := f.clock.Millis()/1000 + int64((24*time.Hour + f.For).Seconds())
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for errs[i] == nil {
				first := next.Add(batchMost) - batchMost
				if first >= int64(f.Pending) {
					return
				}
				last := min(first+batchMost, int64(f.Pending))
				var items []types.WriteRequest
				for n := first; n < last; n++ {
					items = append(items, putOf(fmt.Sprint("pending-", n), "0", seconds((from+n%(30*86400))*1000)))
				}
				errs[i] = writeBatch(ctx, f.e.db, items)
				done.Add(last - first)
			}
		})
	}
	f.await(&all, func() { f.say("%d of %d pending items written", done.Load(), f.Pending) })
	f.took.Fill = elapsed().Seconds()
	return errors.Join(errs...)
}

// await waits for all, and calls progress every five seconds.
func (f *fleetRun) await(all *sync.WaitGroup, progress func()) {
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	for {
		clock.Pause(5*time.Second, over)
		select {
		case <-over:
			return
		default:
			progress()
		}
	}
}

// untilDeath returns a context that ends after a limit, and when a worker has ended without a reason.
func (f *fleetRun) untilDeath(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limited, cancelLimit := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %v", limit))
	c, cancel := context.WithCancelCause(limited)
	go func() {
		select {
		case <-f.ledger.death:
			cancel(f.ledger.firstDeath())
		case <-c.Done():
		}
	}()
	return c, func() {
		cancel(nil)
		cancelLimit()
	}
}

// drive waits for the workers' first scan, and then runs the load and the events, until every due
// item is gone or the settling is over.
func (f *fleetRun) drive(ctx context.Context) error {
	if err := f.awaitScan(ctx); err != nil {
		return err
	}
	f.wave.begin(f.clock.Millis())
	f.ledger.mu.Lock()
	f.ledger.course = &course{first: f.wave.first}
	f.ledger.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var load sync.WaitGroup
	load.Go(func() { f.wave.run(ctx) })
	load.Go(func() {
		if err := f.changeFleet(ctx); err != nil {
			cancel(err)
		}
	})
	load.Go(func() { f.settle(ctx) })
	f.await(&load, func() {
		c := f.ledger.snapshot()
		f.say("second %d: %d items, %d removed, %d early, %d wrong", (f.clock.Millis()-f.wave.first)/1000, c.Items, c.Removals, c.Early, c.Wrong)
	})
	return context.Cause(ctx)
}

// awaitScan waits until each worker guards the table, and one has scanned it.
func (f *fleetRun) awaitScan(ctx context.Context) error {
	elapsed := clock.Stopwatch()
	begun, cancel := f.untilDeath(ctx, readyLimit)
	defer cancel()
	if err := f.fleet.awaitReady(begun); err != nil {
		return err
	}
	limited, cancel := f.untilDeath(ctx, scanLimit)
	defer cancel()
	var scan sync.WaitGroup
	scan.Go(func() {
		select {
		case <-f.fleet.scanned:
		case <-limited.Done():
		}
	})
	f.await(&scan, func() { f.say("%.0f s of the first scan", elapsed().Seconds()) })
	if limited.Err() != nil {
		return fmt.Errorf("the first scan of the pending items did not end: %w", context.Cause(limited))
	}
	f.took.Scan = elapsed().Seconds()
	return nil
}

// changeFleet kills a worker after a fifth of the time, stops one after two fifths, and adds one
// after three. It returns an error if one of these had no effect.
func (f *fleetRun) changeFleet(ctx context.Context) error {
	at := func(fifths int64) bool {
		return f.clock.Sleep(ctx, f.wave.first+f.For.Milliseconds()*fifths/5, nil) == nil
	}
	if !at(1) {
		return nil
	}
	if err := f.fleet.workers[0].retire(); err != nil {
		return err
	}
	f.note("killed")
	if !at(2) {
		return nil
	}
	proceed, err := f.fleet.workers[1].suspend()
	if err != nil {
		return err
	}
	f.note("paused")
	var paused sync.WaitGroup
	defer paused.Wait()
	paused.Go(func() {
		clock.Pause(f.Pause, ctx.Done())
		proceed()
	})
	if !at(3) {
		return nil
	}
	added := f.fleet.add()
	f.note("added")
	begun, cancel := f.untilDeath(ctx, readyLimit)
	defer cancel()
	return added.awaitReady(begun)
}

// note records a change of the fleet.
func (f *fleetRun) note(what string) {
	e := event{float64(f.clock.Millis()-f.wave.first) / 1000, what}
	f.say("second %.0f: a worker is %s", e.Second, e.What)
	f.events = append(f.events, e)
}

// settle waits until every item of the load with a deadline is gone, or until the time for that is
// over.
func (f *fleetRun) settle(ctx context.Context) {
	last := f.wave.last()
	if f.clock.Sleep(ctx, last+1000, nil) != nil {
		return
	}
	for f.clock.Millis() < last+1000+f.Settle.Milliseconds() && f.ledger.remaining() > 0 && ctx.Err() == nil {
		clock.Pause(500*time.Millisecond, ctx.Done())
	}
}

const segments = 8 // in which the table is read

// compare compares the table with the ledger, and counts the pending items. No write and no removal
// is under way.
func (f *fleetRun) compare(ctx context.Context) error {
	at := f.clock.Millis()
	var mu sync.Mutex
	items, pending := map[string]image{}, 0
	errs := make([]error, segments)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			pages := dynamodb.NewScanPaginator(f.e.db, &dynamodb.ScanInput{
				TableName: aws.String(fleetTable), ConsistentRead: aws.Bool(true), Segment: aws.Int32(int32(i)), TotalSegments: aws.Int32(segments),
				FilterExpression:          aws.String("NOT begins_with(" + keyAttribute + ", :p)"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: "pending-"}},
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					errs[i] = fmt.Errorf("scan table %s: %w", fleetTable, err)
					return
				}
				mu.Lock()
				pending += int(page.ScannedCount - page.Count)
				for _, item := range page.Items {
					one := imageOf(item)
					items[one.key] = one
				}
				mu.Unlock()
			}
		})
	}
	f.await(&all, func() { f.say("the table is compared with the ledger") })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f.ledger.compare(items, at)
	f.ledger.comparePending(pending, f.Pending)
	return nil
}
