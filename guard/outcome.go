package guard

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

const (
	backoffFirst = 25 * time.Millisecond
	backoffMost  = 10 * time.Second
)

// backoff returns how long an entry rests after its failed attempts. The maximum doubles each time;
// the pause is random in its upper half, so that removals which failed together do not return
// together.
func backoff(tries int, err error) time.Duration {
	most := min(backoffFirst<<min(tries, 12), backoffMost)
	if a, ok := errors.AsType[*archiveError](err); ok {
		most = max(most, min(a.cause.After*2, time.Hour))
	}
	return most/2 + rand.N(most/2)
}

func pauseFor(ctx context.Context, d time.Duration) { clock.Pause(d, ctx.Done()) }

// renewed reports whether the item no longer is as it was when it was armed. The removal is not
// repeated.
func renewed(err error) bool {
	var unmet *types.ConditionalCheckFailedException
	return errors.As(err, &unmet) || errors.Is(err, errRenewed)
}

// errRenewed means that the item no longer is as it was when it was armed.
var errRenewed = errors.New("the item was renewed or is gone")

// removed ends a removal that has succeeded, and records its lateness.
func (g *Guard) removed(f armed.Removal) {
	late := time.Duration(max(g.latest()-f.At, 0)) * time.Millisecond
	g.totals.addRemoval(late)
	g.given.end(f.Entry)
	g.end(f, armed.Removed)
	e := g.about(Removed, f.Key)
	e.Late = late
	g.observe(e)
}

// removedBySchedule counts a removal that a schedule has made.
func (g *Guard) removedBySchedule(k armed.Key, late time.Duration) {
	g.totals.addRemoval(late)
	e := g.about(Removed, k)
	e.Late = late
	g.observe(e)
}

func (g *Guard) refused(f armed.Removal) {
	g.given.end(f.Entry)
	g.end(f, armed.Refused)
	g.observe(g.about(Refused, f.Key))
}

// failure handles a failed removal: it ends as refused, is repeated, or is given up.
func (g *Guard) failure(ctx context.Context, f armed.Removal, err error) {
	if renewed(err) {
		g.refused(f)
		return
	}
	if errors.Is(err, errDoubt) { // the pump waits for the clock
		g.again(f, backoffFirst, false)
		return
	}
	// guard ends: the outcome is unknown, and another worker finds the item again
	if ctx.Err() != nil {
		g.again(f, time.Hour, true)
		return
	}
	e := g.about(Retried, f.Key)
	e.Err = err
	switch p := g.problem("DeleteItem", err); {
	case p != nil:
		g.fail(g.gone(p))
	case throttling(err):
		if e.What = Throttled; partitionFull(err) {
			g.pace.ThrottledPart(f.Tries > 0)
		} else {
			g.pace.Throttled(f.Tries > 0)
		}
	case permanent(err):
		g.giveUp(f, err)
		return
	case !conflict(err):
		g.notNow(f, err)
		g.pace.Troubled()
	}
	g.again(f, backoff(f.Tries, err), !certain(err))
	g.observe(e)
}

// end ends a removal with an outcome.
func (g *Guard) end(f armed.Removal, how armed.Outcome) {
	g.allowance.end(f, how == armed.Removed)
	g.armed.End(f, how)
}

// again lets a removal rest before its next attempt. unknown is true if the endpoint may have made
// the last one without answering.
func (g *Guard) again(f armed.Removal, after time.Duration, unknown bool) {
	g.allowance.again(f, unknown)
	g.armed.Retry(f, after)
}

// giveUp ends a rejected removal. It logs that once for a while, however often the item is found.
func (g *Guard) giveUp(f armed.Removal, err error) {
	now := g.local.Millis()
	g.given.add(f.Entry, now)
	cause := cmp.Or(retry.Code(err), err.Error())
	switch first, last := g.failed.first(string(f.Key)+"\x00"+cause, now); {
	case last:
		g.log.Error("items cannot be removed; guard tries again at growing intervals and does not log the next ones one by one", "table", g.o.Table, "key", g.table.KeyJSON(f.Key), "error", err)
	case first:
		g.log.Error("an item cannot be removed; guard tries again at growing intervals", "table", g.o.Table, "key", g.table.KeyJSON(f.Key), "error", err)
	}
	g.end(f, armed.Failed)
	e := g.about(Failed, f.Key)
	e.Err = err
	g.observe(e)
}

// notNow logs a transient failure of a removal, once a minute for each cause.
func (g *Guard) notNow(f armed.Removal, err error) {
	cause := cmp.Or(retry.Code(err), "no answer")
	if g.passing.now(cause, g.local.Millis()) {
		g.log.Warn("an item cannot be removed for now; others may be affected", "table", g.o.Table, "key", g.table.KeyJSON(f.Key), "error", err)
	}
}
