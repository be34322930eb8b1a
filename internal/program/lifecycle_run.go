package program

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/host"
	"github.com/mayflydb/mayfly/lifecycle"
)

type lifecycleRunCommand struct {
	targetFlags
	workFlags
}

func (lifecycleRunCommand) Help() string {
	return `Examples:

    mayfly serve --data ./data --database-only
    mayfly lifecycle run --endpoint http://127.0.0.1:8000 --targets targets.yaml

It runs the transitions of all lifecycles at the endpoint when they are due, and calls their handlers. Any number of
workers share the work. A transition is as punctual as the endpoint's removal of expired items: to the millisecond if it
is mayfly or a guarded table.`
}

// Run runs lifecycles until ctx is done.
func (c lifecycleRunCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	if err := e.checkAlone(ctx); err != nil {
		return err
	}
	targets, shut, err := openTargets(ctx, c.Targets, c.logger(s.err))
	if err != nil {
		return err
	}
	unmapped := c.Unmapped == mayfly.UnmappedAccept
	l, err := newLifecycles(c.options(s, e, host.Options{Targets: targets, Unmapped: unmapped}))
	if err != nil {
		return errors.Join(err, shut())
	}
	fmt.Fprintf(s.out, "running transitions at %s\n", e.name())
	return errors.Join(e.advise(l.Run(ctx)), shut())
}

// runLifecycles runs the lifecycles of a database in this process until stop is called, which must
// happen before the database is closed.
func runLifecycles(db *mayfly.DB, o mayfly.Options, inMemory bool, log io.Writer) (stop func() error, err error) {
	if o.DatabaseOnly {
		return func() error { return nil }, nil
	}
	l, err := lifecycle.New(lifecycle.Options{
		DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Registry: db.Registry(), Alone: true, Targets: o.Targets,
		Unmapped: o.Unmapped == mayfly.UnmappedAccept || o.Unmapped == mayfly.UnmappedDefault && inMemory, Region: o.Region, Account: o.Account, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() {
		err := l.Run(ctx)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(log, "mayfly: lifecycles have stopped: %v\n", err)
		}
		ran <- err
	}()
	return func() error {
		cancel()
		return <-ran
	}, nil
}
