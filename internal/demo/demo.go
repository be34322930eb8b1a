// Package demo is an experiment on a running database: it writes real readings with deadlines in
// the next half minute, observes each expiry as a client, and checks its observations against laws.
//
// It uses two clients of the AWS SDK and the database's time. Three activities run in parallel:
//
//	write    batches of readings, each an item of a device with a deadline
//	read     every item shortly before its deadline and again at once after it
//	records  the table's stream, from the first record on
//
// Deadlines are at whole seconds, as real TTL values are, so that all items of a second are due at
// one instant. This is the harder form for a database: it has to remove thousands of items at once.
// The other form spreads the deadlines evenly over milliseconds, so that few items are due together.
//
// # Laws
//
//	early      an item was gone, or its removal's record arrived, before its deadline
//	visible    a read that began at or after an item's deadline still returned it
//	lost       an item without a removal's record after the grace period
//	twice      a second record of the same insertion or removal
//	unmarked   a removal's record without the service's identity
//	altered    a record whose image differs from the written item
//	remaining  items that a scan finds at the end
//
// Each count must be zero. Lateness is the arrival of a removal's record at the reader minus the
// deadline, so it contains the removal, its disk sync and the way through the stream.
package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"golang.org/x/sync/errgroup"
)

// Options configure the experiment. All are required.
type Options struct {
	DB      *dynamodb.Client
	Streams *dynamodbstreams.Client
	Now     func() time.Time // the database's clock, which must run with real time
	Items   int              // 1 to 1,000,000
	Spread  time.Duration    // range of the deadlines; 1 s to 1 h
	Unit    Unit             // of the deadlines
}

const (
	itemsMax  = 1_000_000
	spreadMin = time.Second
	spreadMax = time.Hour // itemsMax times spreadMax must be a time.Duration
)

func (o Options) check() error {
	var errs []error
	if o.Items < 1 || o.Items > itemsMax {
		errs = append(errs, fmt.Errorf("--items: %d is not between 1 and %d", o.Items, itemsMax))
	}
	if o.Spread < spreadMin || o.Spread > spreadMax {
		errs = append(errs, fmt.Errorf("--spread: %s is not between 1s and 1h", o.Spread))
	}
	if o.Unit != Seconds && o.Unit != Milliseconds {
		errs = append(errs, fmt.Errorf("--deadline-unit: %q is not one of %s, %s", string(o.Unit), Seconds, Milliseconds))
	}
	return errors.Join(errs...)
}

// Demo is one run of the experiment.
type Demo struct {
	Options
	plan   []*entry          // in order of the deadlines
	byKey  map[string]*entry // by the item's key
	atOnce int               // largest number of items with the same deadline
	tally  *tally
}

// New returns a planned run. It writes nothing before Run.
func New(o Options) (*Demo, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	readings, err := readReadings()
	if err != nil {
		return nil, err
	}
	d := &Demo{Options: o, tally: newTally(o.Items)}
	d.plan, d.byKey = makePlan(readings, o)
	d.atOnce = countBehind(d.plan)
	return d, nil
}

// Run runs the experiment and returns its report. An error means that the run failed; broken laws
// are in the report. If ctx is done early, Run returns its error.
func (d *Demo) Run(ctx context.Context) (Report, error) {
	if err := d.createTable(ctx); err != nil {
		return Report{}, fmt.Errorf("create the table: %w", err)
	}
	parts, running := errgroup.WithContext(ctx)
	start := func(what string, part func(context.Context) error) {
		parts.Go(func() error {
			if err := part(running); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		})
	}
	start("write the readings", d.write)
	start("read the items before their deadlines", d.readBefore)
	start("read the items after their deadlines", d.readAfter)
	start("read the stream", d.readStream)
	if err := parts.Wait(); err != nil {
		return d.Snapshot(), err
	}
	if err := d.countRemaining(ctx); err != nil {
		return d.Snapshot(), fmt.Errorf("scan the table: %w", err)
	}
	return d.finalReport(), nil
}
