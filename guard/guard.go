package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/pace"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/clock"
)

// New checks the options. It asks the endpoint for nothing yet.
func New(o Options) (*Guard, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	g := &Guard{o: o, log: slog.New(quietly{o.Logger.Handler()}), armed: armed.New(), pace: pace.New(o.MaxWCU, o.MaxRate), failures: make(chan *Problem, 1), checkEach: checkEach, countMost: countMost, firstPassMin: firstPassMin, patience: prepareLimit,
		bad: newMessageFilter(), failed: newMessageFilter(), given: newGivenUp(), allowance: newAllowance(o.MaxRemovals, o.Removals)}
	if o.Undo != nil {
		g.undo = o.Undo.Writer(o.Owner, g.wrote)
	}
	g.readiness.yes = make(chan struct{})
	g.troubles.changed = make(chan struct{}, 1)
	g.first.ended = make(chan struct{}, 1)
	g.wall, g.local = o.clock, o.clock
	if o.clock == nil {
		g.wall = clock.New()
		g.local = clock.NewAt(g.wall.Now())
	}
	g.endpoint = g.newEndpointClock()
	g.derive()
	return g, nil
}

// Run guards the table until ctx is done, and returns nil then. It returns an error, mostly a
// *Problem, if guarding is impossible or no longer possible. It is called once.
func (g *Guard) Run(ctx context.Context) error {
	if err := g.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	native, sure := g.nativeTTL(ctx)
	name, s := g.choose(ctx)
	if err := checked(s); err != nil {
		return err
	}
	if err := g.admit(ctx, name, native, sure); err != nil {
		return strategy.EndOf(ctx, err)
	}
	if g.o.LocalClock {
		g.log.Warn("guard takes this machine's clock for the endpoint's and would not notice a difference", "table", g.o.Table)
	}
	g.log.Info("guarding", "table", g.table.Name, "attribute", g.o.Attribute, "strategy", string(name), "dryRun", g.o.DryRun)
	g.beReady(name, s)
	err := g.work(ctx, s)
	g.refuseFirstPass(ctx, err)
	g.leaveNothing(ctx, err)
	return err
}

// checked returns the error of a strategy that needs an index or a stream which the table lacks. So
// Run does not report that it guards such a table.
func checked(s runner) error {
	if s, ok := s.(interface{ Check() error }); ok {
		return s.Check()
	}
	return nil
}

// prepareLimit is how long an endpoint has for the first answers.
const prepareLimit = 30 * time.Second

// prepare finds the table, its clock and its TTL attribute.
func (g *Guard) prepare(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	if g.table, err = g.describe(ctx); err != nil {
		return g.atStart("DescribeTable", err)
	}
	if p := g.doubt(); p != nil {
		return p
	}
	if _, _, known := g.endpoint.At(g.local.Millis()); !known {
		return &Problem{Code: NoDate, Message: "the endpoint's answers have no Date header, so its clock is unknown",
			Next: "if the endpoint's clock agrees with this machine's, use that (--endpoint-clock local)"}
	}
	if g.o.Attribute == "" {
		g.o.Attribute, err = table.TTLAttribute(ctx, g.db, g.o.Table)
		switch {
		case table.Unsupported(err):
			return &Problem{Code: NoAttribute, Message: "no TTL attribute is given, and the endpoint does not support DescribeTimeToLive",
				Next: "name the attribute with the deadlines in epoch seconds (--attribute)", Err: err}
		case err != nil:
			return g.atStart("DescribeTimeToLive", err)
		}
		g.attributeFound = true
	}
	if g.table.Attribute = g.o.Attribute; g.table.Attribute == "" {
		return &Problem{Code: NoAttribute, Message: fmt.Sprintf("no TTL attribute is given, and the TTL of table %s is off", g.o.Table),
			Next: "name the attribute with the deadlines in epoch seconds (--attribute)"}
	}
	if err := g.checkJournal(ctx); err != nil {
		return err
	}
	return g.checkMark()
}

// describe describes the table. It returns a *Problem if that cannot be guarded.
func (g *Guard) describe(ctx context.Context) (*table.Table, error) {
	t, err := table.Describe(ctx, g.db, g.o.Table)
	if err == nil {
		t.Attribute, t.Version = g.o.Attribute, g.o.Version
		g.items.Store(t.Items)
	}
	return t, err
}

// checkMark returns a problem if the attribute that marks expiries cannot be set, or would have
// another meaning.
func (g *Guard) checkMark() error {
	kind, isKey := g.table.Kinds[g.o.Mark]
	why := ""
	switch {
	case g.o.Mark == "":
		return nil
	case g.o.Mark == g.o.Attribute:
		why = "is the TTL attribute itself"
	case slices.Contains(g.table.Names(), g.o.Mark):
		why = "is a key of the table"
	case isKey && kind != types.ScalarAttributeTypeN:
		why = "is a key of an index and not a number"
	default:
		return nil
	}
	return &Problem{Code: Misconfigured, Message: fmt.Sprintf("%s cannot mark the expired items of table %s: it %s", g.o.Mark, g.o.Table, why), Next: "choose an attribute that the items do not use (--mark)"}
}

// work runs the strategy and the removals. The removals end first, so that the strategy can record
// their outcomes.
func (g *Guard) work(ctx context.Context, s runner) error {
	removing, stopRemoving := context.WithCancel(ctx)
	defer stopRemoving()
	finding, stopFinding := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFinding()
	var all sync.WaitGroup
	defer all.Wait()
	found := make(chan error, 1)
	all.Go(func() { found <- s.Run(finding) })
	if g.undo != nil {
		all.Go(func() { g.undo.Run(finding) })
	}
	all.Go(func() { g.watchTable(removing) })
	all.Go(func() { g.followFirstPass(removing) })
	all.Go(func() { g.audit(removing, s) })
	all.Go(func() {
		if p := g.problem("Scan", g.fallBack(finding)); p != nil {
			g.fail(p)
		}
	})
	all.Go(func() {
		g.remove(removing)
		stopFinding()
	})
	select {
	case p := <-g.failures:
		stopRemoving()
		<-found
		if ctx.Err() != nil { // it met that when it was ending anyway
			return nil
		}
		return p
	case err := <-found:
		stopRemoving()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		select {
		case p := <-g.failures: // the cause of the strategy's end
			if ctx.Err() == nil {
				return p
			}
		default:
		}
		// lease.Hold does not wrap its errors
		if p := g.problem("Query, GetItem, PutItem and DeleteItem on "+g.o.Tables.Leases, err); p != nil {
			return p
		}
		return err
	}
}
