package guard

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/invariant"
)

// arm keeps the entry in memory until its deadline, and removes the item then. A later entry of the
// same key replaces an earlier one. arm never blocks. The armer gets the outcome once; it must not
// block, and may arm and disarm.
func (g *Guard) arm(e armed.Entry) {
	if !g.first.sees(g, e) {
		return
	}
	g.armed.Arm(e)
	g.observe(g.about(Armed, e.Key))
}

// armNew is arm for a key that has no entry. It reports whether that was so.
func (g *Guard) armNew(e armed.Entry) bool {
	if !g.armed.ArmNew(e) {
		return false
	}
	g.observe(g.about(Armed, e.Key))
	return true
}

// disarm removes the key's entry, which ends as replaced.
func (g *Guard) disarm(k armed.Key) {
	if g.armed.Disarm(k) {
		g.observe(g.about(Disarmed, k))
	}
}

// graceRemovals is how long removals that are under way may take once guard is to end.
const graceRemovals = 5 * time.Second

// remove removes due items until ctx is done and all removals under way have ended.
func (g *Guard) remove(ctx context.Context) {
	defer g.allowance.join()()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	jobs := make(chan []armed.Removal)
	var workers sync.WaitGroup
	for range g.o.Concurrency {
		workers.Go(func() {
			for batch := range jobs {
				g.attempt(work, batch)
			}
		})
	}
	_ = g.pump(ctx, jobs)
	close(jobs)
	grace := clock.AfterFunc(graceRemovals, cancel)
	defer grace.Stop()
	workers.Wait()
	g.armed.Stop()
}

// pump passes due entries to the workers, in the order of their deadlines.
func (g *Guard) pump(ctx context.Context, jobs chan<- []armed.Removal) error {
	for {
		now := g.now()
		if g.trusted() != nil {
			if err := g.sleep(ctx, clock.Never, g.armed.Wake); err != nil {
				return err
			}
			continue
		}
		allowed, used := g.allowance.reserve(g.batchMax())
		if used {
			g.fail(g.allowance.problem())
			<-ctx.Done()
			return ctx.Err()
		}
		if allowed == 0 { // until a removal under way turns out not to be made
			if err := g.sleep(ctx, clock.Never, g.allowance.freed); err != nil {
				return err
			}
			continue
		}
		batch, next := g.armed.Take(now, allowed)
		g.allowance.begin(allowed, batch)
		if invariant.Enabled {
			g.checkDue(batch)
		}
		if len(batch) == 0 {
			if err := g.sleep(ctx, next, g.armed.Wake); err != nil {
				return err
			}
			continue
		}
		if err := g.pace.Wait(ctx, len(batch)); err != nil {
			return err
		}
		select {
		case jobs <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// checkDue checks that taken removals are due by the lower bound of the endpoint's clock.
func (g *Guard) checkDue(batch []armed.Removal) {
	now := g.local.Millis()
	low, _, _ := g.endpoint.At(now)
	for _, f := range batch {
		invariant.CheckUnless(f.At <= now+low, []invariant.Fault{invariant.UpperBound}, "item %q is due at %d and removed at %d or later", f.Key, f.At, now+low)
	}
}

// attempt makes an attempt at removals.
func (g *Guard) attempt(ctx context.Context, batch []armed.Removal) {
	batch = g.withoutResting(batch)
	switch {
	case g.o.DryRun:
		for _, f := range batch {
			g.spare(ctx, f)
		}
	case len(batch) > 1:
		g.removeAll(ctx, batch)
	default:
		for _, f := range batch {
			g.removeOne(ctx, f)
		}
	}
}

// removeOne removes an item, if it still has the deadline that armed it.
func (g *Guard) removeOne(ctx context.Context, f armed.Removal) {
	units, err := g.delete(ctx, f)
	if err == nil || renewed(err) {
		g.pace.Consumed(1, units, f.Tries > 0)
	}
	if err != nil {
		g.failure(ctx, f, err)
		return
	}
	g.removed(f)
}

// delete marks, archives, saves and deletes.
func (g *Guard) delete(ctx context.Context, f armed.Removal) (units float64, err error) {
	var image map[string]types.AttributeValue
	if g.o.Mark != "" {
		if image, units, err = g.mark(ctx, f.Entry); err != nil {
			return units, err
		}
	} else if g.needsImage() {
		armed := false
		if image, armed, err = g.read(ctx, f.Entry); err != nil {
			return 0, err
		} else if !armed {
			return 0, errRenewed
		}
	}
	if g.o.Archive != nil {
		if err := g.archive(ctx, f, image, false); err != nil {
			return units, err
		}
	}
	saved, err := g.save(ctx, f, image)
	if err != nil {
		return units, err
	}
	condition, names, values := g.table.Condition(f.Entry)
	if g.o.Mark != "" {
		names["#mark"] = g.o.Mark
		condition += " AND #mark = :armed"
	}
	in := &dynamodb.DeleteItemInput{
		TableName: &g.o.Table, Key: g.table.Attributes(f.Key), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if g.needsImage() || invariant.Enabled {
		in.ReturnValues = types.ReturnValueAllOld
	}
	if err := g.trusted(); err != nil {
		g.kept(saved, err)
		return units, err
	}
	out, err := g.once.DeleteItem(ctx, in)
	if err != nil {
		g.kept(saved, err)
		return units, err
	}
	g.recordRemoval(ctx, f, saved, out)
	if invariant.Enabled && out.Attributes != nil {
		same := g.table.Armed(out.Attributes, f.Entry)
		invariant.CheckUnless(same, []invariant.Fault{invariant.Unconditional}, "item %q was renewed and is removed for its deadline %s", f.Key, f.Text())
	}
	if g.o.Archive != nil {
		g.archiveFinal(ctx, f, image, out.Attributes)
	}
	return units + capacity(out.ConsumedCapacity), nil
}

// needsImage reports whether the item is read before its removal.
func (g *Guard) needsImage() bool { return g.o.Archive != nil || g.undo != nil }

// spare reads the item in place of its removal in a dry run.
func (g *Guard) spare(ctx context.Context, f armed.Removal) {
	_, same, err := g.read(ctx, f.Entry)
	switch {
	case err != nil:
		g.failure(ctx, f, err)
	case !same:
		g.refused(f)
	default:
		g.log.Debug("an item would be removed now", "table", g.o.Table, "key", g.table.KeyJSON(f.Key), "deadline", time.UnixMilli(f.At).UTC())
		g.spared.add(f.Entry)
		g.end(f, armed.Spared)
		g.observe(g.about(Spared, f.Key))
	}
}
