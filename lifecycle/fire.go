package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Limits of a batch of firings.
const (
	batchBytes   = 2 << 20 // bytes of calls in a transaction; DynamoDB accepts 4 MB
	batchesAhead = 4       // concurrent transactions
)

// fireExpired makes the transitions and calls whose items have expired. Other items, such as
// history that has expired, are done at once.
func (l *Lifecycles) fireExpired(ctx context.Context, lifecycle string, expired []timer.Firing) error {
	var firings, calls []*firing
	for _, x := range expired {
		it := x.Item
		f := &firing{id: attr.String(it[attrEntity]), incarnation: attr.String(it[attrIncarnation]), generation: attr.Integer(it[attrGeneration]), done: x.Done}
		switch part := attr.String(it[attrPart]); {
		case part == partNext:
			firings = append(firings, f)
		case strings.HasPrefix(part, partCall):
			calls = append(calls, f)
		default:
			f.done()
		}
	}
	if len(firings)+len(calls) == 0 {
		return nil
	}
	p, err := l.cachedPlan(ctx, lifecycle)
	// not even a mark of deletion: the definition's item was deleted directly
	if errors.Is(err, ErrNoLifecycle) {
		l.o.Logger.Error("transitions are due, but the definition was deleted: they are dropped", "lifecycle", lifecycle, "transitions", len(firings))
		for _, f := range append(firings, calls...) {
			f.done()
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range calls {
		if err := l.callOf(ctx, p, f, f.generation); err != nil {
			return err
		}
	}
	for len(firings) > 0 {
		wave, others := firstOfEach(firings)
		if err := l.fireAll(ctx, p, wave); err != nil {
			return err
		}
		firings = others
	}
	return nil
}

// firstOfEach separates the first firing of each entity from the others.
func firstOfEach(firings []*firing) (wave, others []*firing) {
	seen := map[string]bool{}
	for _, f := range firings {
		if seen[f.id] {
			others = append(others, f)
		} else {
			seen[f.id] = true
			wave = append(wave, f)
		}
	}
	return wave, others
}

// fireAll makes the transitions of several entities, in concurrent batches.
func (l *Lifecycles) fireAll(ctx context.Context, p *plan, wave []*firing) error {
	var work sync.WaitGroup
	var mu sync.Mutex
	var failed error
	room := make(chan struct{}, batchesAhead)
	for len(wave) > 0 {
		n := min(batchFirings, len(wave))
		batch := wave[:n]
		wave = wave[n:]
		room <- struct{}{}
		work.Go(func() {
			defer func() { <-room }()
			if err := l.fire(ctx, p, batch); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	work.Wait()
	return failed
}

// fire makes the transitions of a batch. It retries those whose entities changed meanwhile.
func (l *Lifecycles) fire(ctx context.Context, p *plan, batch []*firing) error {
	for try := range changeTries {
		entities, version, err := l.readAll(ctx, p.Name, batch)
		if err == nil && version != p.version {
			p, err = l.latest(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("read entities of %s: %w", p.Name, err)
		}
		var changes []*change
		var fired []*firing
		var again []*firing
		now, bytes := l.now(), 0
		for _, f := range batch {
			e := entities[f.id]
			if e == nil || e.incarnation != f.incarnation || e.generation != f.generation || e.next == nil {
				// The firing is stale: its transition was made already, or another change came
				// first. Its call may still be due.
				if err := l.callOf(ctx, p, f, f.generation+1); err != nil {
					return err
				}
				continue
			}
			c, err := p.due(e, now)
			if err != nil {
				return fmt.Errorf("%s %q: %w", p.Name, e.id, err)
			}
			if p.deleted {
				c = cancelling(p, e, now)
				c.fired, c.event.Note = true, noteDeleted
			}
			if bytes += len(c.event.body); bytes > batchBytes && len(changes) > 0 {
				again = append(again, f)
				continue
			}
			changes, fired = append(changes, c), append(fired, f)
		}
		if len(changes) > 0 {
			refused, err := l.transact(ctx, changes)
			switch {
			// retry one by one, so that the faulty one does not hold up the others
			case impossible(err) && len(changes) > 1:
				for _, f := range fired {
					if err := l.fire(ctx, p, []*firing{f}); err != nil {
						return err
					}
				}
			case impossible(err):
				if err := l.giveUp(ctx, changes[0], err); err != nil {
					return err
				}
				fired[0].done()
			case err != nil:
				return fmt.Errorf("make transitions of %s: %w", p.Name, err)
			case len(refused) > 0:
				again = append(again, fired...)
			default:
				for i, f := range fired {
					if e := &changes[i].event; e.body != nil {
						l.hand(ctx, p, f.id, e, f.done)
					} else {
						f.done()
					}
				}
			}
		}
		if batch = again; len(batch) == 0 {
			return nil
		}
		clock.Pause(time.Duration(try)*time.Millisecond, ctx.Done())
	}
	return fmt.Errorf("make transitions of %s: %w", p.Name, ErrBusy)
}

// giveUp records that a transition can never be made, for example because the entity would exceed
// the size of an item.
func (l *Lifecycles) giveUp(ctx context.Context, c *change, why error) error {
	e, note := c.before, fmt.Sprintf("the transition to %q cannot be made: %s", c.event.To, reasonOf(why))
	l.o.Logger.Error("a transition cannot be made", "lifecycle", c.plan.Name, "entity", e.id, "from", c.event.From, "to", c.event.To, "error", why)
	// the second note fits any entity that had a pending transition
	for _, problem := range []string{note, "too large"} {
		_, err := l.change(ctx, c.plan.Name, e.id, func(p *plan, current *entity, now time.Time) (*change, error) {
			if current == nil || current.incarnation != e.incarnation || current.generation != e.generation {
				return nil, errNoEffect // changed meanwhile
			}
			noted := following(p, current, KindRefused, now)
			noted.fired, noted.after.next, noted.after.problem = true, nil, problem
			noted.event.Due, noted.event.Note = current.next.at, note
			return noted, nil
		})
		switch {
		case impossible(err):
			why = err
		case errors.Is(err, errNoEffect), errors.Is(err, ErrNoLifecycle):
			return nil
		default:
			return err
		}
	}
	l.o.Logger.Error("the entity cannot be changed at all", "lifecycle", c.plan.Name, "entity", e.id, "error", why)
	return nil
}

// readAll reads the entities of some firings and the version of the definition. Missing entities
// are left out.
func (l *Lifecycles) readAll(ctx context.Context, lifecycle string, batch []*firing) (out map[string]*entity, version int64, err error) {
	table := EntityTable(lifecycle)
	keys := make([]Item, len(batch))
	for i, f := range batch {
		keys[i] = key(f.id, partEntity)
	}
	out = make(map[string]*entity, len(batch))
	wanted := map[string]types.KeysAndAttributes{
		table: {Keys: keys, ConsistentRead: aws.Bool(true)},
		TableName: {
			Keys: []Item{{attrName: attr.S(lifecycle)}}, ConsistentRead: aws.Bool(true),
			ProjectionExpression: aws.String("#v"), ExpressionAttributeNames: map[string]string{"#v": attrVersion},
		},
	}
	err = items.BatchGet(ctx, l.o.DB, wanted, func(from string, it Item) error {
		if from == TableName {
			version = attr.Integer(it[attrVersion])
			return nil
		}
		e := readEntity(it)
		out[e.id] = e
		return nil
	})
	return out, version, err
}

// due computes the change of an entity whose pending transition is due. If the condition fails, it
// tries the state's next transition.
func (p *plan) due(e *entity, now time.Time) (*change, error) {
	stage, s := p.stage(e.state), p.stepOf(e)
	c := following(p, e, KindTransition, now)
	c.fired = true
	if s == nil { // a newer definition has dropped the pending transition
		c.event.Kind, c.event.Note = KindRescheduled, fmt.Sprintf("version %d of the definition has no transition from %q to %q", p.version, c.after.state, p.current(e.next.to))
		c.setNext(nil)
		return c.described(), nil
	}
	made := &candidate{s, e.next.at}
	for !made.guard.holds(e.own) {
		refused := made
		made, _ = p.first(stage, e.base, e.own, refused)
		if made != nil && !made.at.After(now) {
			continue
		}
		c.event.Kind, c.event.Due, c.event.Note = KindRefused, e.next.at, "condition: "+refused.When
		c.setNext(refused)
		return c.described(), nil
	}
	c.guard = made.guard
	c.event.Due = made.at
	c.enter(made.To, made.at)
	if p.called(made, c.after, now) {
		return c.described(), c.addCall(made.step, e.own)
	}
	if made.Handler != "" {
		c.event.Note = "missed, and " + made.late + ": no handler is called"
	}
	return c.described(), nil
}

// called reports whether a transition calls its handler. after is the entity after the transition.
func (p *plan) called(made *candidate, after *entity, now time.Time) bool {
	missed := func(at time.Time) bool { return now.Sub(at) > p.tolerance }
	switch {
	case !missed(made.at) || made.late == "" || made.late == LateAll:
		return true
	case made.late == LateSkip || after == nil:
		return made.late != LateSkip
	}
	stage := p.states[after.state]
	for c, _ := p.first(stage, after.base, after.own, nil); c != nil && missed(c.at); c, _ = p.first(stage, after.base, after.own, c) {
		if c.guard.holds(after.own) {
			return false // a later missed transition follows
		}
	}
	return true
}
