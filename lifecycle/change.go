package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/template"
)

const (
	idMost      = 512 // bytes of an entity's name
	changeTries = 20
)

// ErrID is the error for an invalid entity name.
var ErrID = fmt.Errorf("an entity's name has 1 to %d bytes", idMost)

// alter is change for an entity that is alive.
func (l *Lifecycles) alter(ctx context.Context, lifecycle, id string, work func(p *plan, e *entity, now time.Time) (*change, error)) (Event, error) {
	return l.change(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if err := alive(e); err != nil {
			return nil, err
		}
		return work(p, e, now)
	})
}

// change reads an entity and applies the change that work computes, in one transaction. If another
// writer was faster, it reads and computes again.
func (l *Lifecycles) change(ctx context.Context, lifecycle, id string, work func(p *plan, e *entity, now time.Time) (*change, error)) (Event, error) {
	wrap := func(err error) error { return fmt.Errorf("%s %q: %w", lifecycle, id, err) }
	if id == "" || len(id) > idMost {
		return Event{}, wrap(ErrID)
	}
	for try := range changeTries {
		p, err := l.plan(ctx, lifecycle)
		if err != nil {
			return Event{}, err
		}
		e, err := l.read(ctx, lifecycle, id)
		if err != nil {
			return Event{}, wrap(err)
		}
		c, err := work(p, e, l.now())
		if err != nil {
			return Event{}, wrap(err)
		}
		refused, err := l.transact(ctx, []*change{c})
		if err != nil {
			return Event{}, wrap(err)
		}
		if len(refused) == 0 {
			return c.event, nil
		}
		clock.Pause(time.Duration(try)*time.Millisecond, ctx.Done())
	}
	return Event{}, wrap(ErrBusy)
}

// read returns an entity, or nil if it does not exist.
func (l *Lifecycles) read(ctx context.Context, lifecycle, id string) (*entity, error) {
	it, err := items.Get(ctx, l.o.DB, EntityTable(lifecycle), key(id, partEntity))
	if ensure.Missing(err) {
		return nil, nil
	}
	if it == nil || err != nil {
		return nil, err
	}
	return readEntity(it), nil
}

// following returns a change of an entity to the next generation.
func following(p *plan, e *entity, kind string, now time.Time) *change {
	after := *e
	after.generation++
	after.definition = p.version
	after.state = p.current(e.state)
	c := &change{plan: p, before: e, after: &after}
	c.event = Event{Generation: after.generation, Kind: kind, From: after.state, To: after.state, At: now, incarnation: e.incarnation}
	return c
}

// described fills in the event's description of the next transition.
func (c *change) described() *change {
	if c.after != nil && c.after.next != nil && c.after.paused.IsZero() {
		c.event.Next, c.event.NextTo = c.after.next.at, c.after.next.to
	}
	return c
}

// enter brings an entity to a state at an instant. A state with Remove deletes the entity.
func (c *change) enter(state string, at time.Time) {
	stage := c.plan.states[state]
	c.event.To = state
	if stage.Remove {
		c.after = nil
		return
	}
	c.after.state, c.after.since, c.after.base, c.after.paused = state, at, at, time.Time{}
	c.setNext(nil)
	if stage.final() {
		c.after.end = endReached
	}
}

// setNext makes the earliest transition pending. If earlier is not nil, only transitions after it
// count.
func (c *change) setNext(earlier *candidate) {
	var first *candidate
	problem := c.plan.noState(c.after.state)
	if stage := c.plan.states[c.after.state]; stage != nil {
		first, problem = c.plan.first(stage, c.after.base, c.after.own, earlier)
	}
	c.after.next, c.after.problem = first.pending(), ""
	if problem != nil {
		c.after.problem = problem.Error()
		c.event.Note = c.after.problem
	}
}

func (c *candidate) pending() *pending {
	if c == nil {
		return nil
	}
	return &pending{at: c.at, via: c.index, to: c.To}
}

// addCall adds the call of a transition's handler to the change.
func (c *change) addCall(s *step, attributes Item) error {
	if s.Handler == "" {
		return nil
	}
	c.event.Handler, c.event.ID = s.Handler, callID(c.plan.Name, c.before.id, c.before.incarnation, c.event.Generation)
	call := Call{
		ID: c.event.ID, Lifecycle: c.plan.Name, Entity: c.before.id, From: c.event.From, To: c.event.To, Due: c.event.instant(), Generation: c.event.Generation,
		Attributes: plainItem(attributes),
	}
	if s.input != nil {
		call.Input, c.event.shape = s.fill(&call, attributes)
	}
	return c.event.setCall(call)
}

// setCall stores a call in the event. A call that is too large loses its attributes, and then its
// input.
func (e *Event) setCall(call Call) (err error) {
	if e.body, err = call.marshal(); err != nil || len(e.body) <= bodyMost {
		return err
	}
	call.Attributes = nil
	if e.body, err = call.marshal(); err != nil || len(e.body) <= bodyMost {
		return err
	}
	call.Input, e.shape = fmt.Append(nil, len(e.body)), shapeTooLarge
	e.body, err = call.marshal()
	return err
}

// marshal returns the call as JSON.
func (c Call) marshal() ([]byte, error) { return template.CompactJSON(c) }

// Create starts an entity's lifecycle. attributes must include those that the definition requires,
// and may include others. Create returns ErrExists if the entity exists.
func (l *Lifecycles) Create(ctx context.Context, lifecycle, id string, attributes Item) (Event, error) {
	var made *change
	event, err := l.change(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if e != nil {
			return nil, ErrExists
		}
		if err := p.checkItem(attributes); err != nil {
			return nil, err
		}
		after := &entity{id: id, incarnation: newIncarnation(now), generation: 1, definition: p.version, own: maps.Clone(attributes)}
		if after.own == nil {
			after.own = Item{}
		}
		c := &change{plan: p, after: after, event: Event{Generation: 1, Kind: KindCreated, At: now, incarnation: after.incarnation}}
		c.enter(p.StartState(), now)
		if c.after.problem != "" {
			return nil, errors.New(c.after.problem)
		}
		made = c
		return c.described(), nil
	})
	if err == nil {
		err = l.cancelIfDeleted(ctx, made)
	}
	if err != nil {
		return Event{}, err
	}
	return event, nil
}

// cancelIfDeleted cancels a new entity if its lifecycle was deleted meanwhile. Delete marks the
// lifecycle before it looks for entities. So either Delete finds the new entity, or cancelIfDeleted
// finds the mark.
func (l *Lifecycles) cancelIfDeleted(ctx context.Context, made *change) error {
	d, err := l.load(ctx, made.plan.Name)
	if err != nil || !d.deleted {
		return err
	}
	c := following(made.plan, made.after, KindDeleted, l.now())
	c.after, c.event.Note = nil, noteDeleted
	// a refusal is fine too: another client has cancelled the entity
	if _, err := l.transact(ctx, []*change{c}); err != nil {
		return err
	}
	return fmt.Errorf("%w: %q", ErrNoLifecycle, made.plan.Name)
}

// alive returns an error if the entity does not exist or its lifecycle has ended.
func alive(e *entity) error {
	switch {
	case e == nil:
		return ErrNoEntity
	case e.end != "":
		return fmt.Errorf("%w (%s)", ErrEnded, e.end)
	}
	return nil
}

// Move takes an entity to another state now, by a transition of its present state, with or without
// a time. The transition's condition must hold, and its handler is called.
func (l *Lifecycles) Move(ctx context.Context, lifecycle, id, to string) (Event, error) {
	return l.alter(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if !e.paused.IsZero() {
			return nil, ErrPaused
		}
		s, err := p.stepTo(e, to)
		if err != nil {
			return nil, err
		}
		c := following(p, e, KindMoved, now)
		c.guard = s.guard
		c.enter(to, now)
		if c.after != nil && c.after.problem != "" {
			return nil, errors.New(c.after.problem)
		}
		if err := c.addCall(s, e.own); err != nil || c.event.shape != shapeTooLarge {
			return c.described(), err
		}
		return nil, fmt.Errorf("%s: %s", s.Handler, tooLarge(c.event.body))
	})
}

// stepTo returns the transition that takes an entity to a state.
func (p *plan) stepTo(e *entity, to string) (*step, error) {
	if p.states[to] == nil {
		return nil, fmt.Errorf("%w: there is no state %q", ErrNotAllowed, to)
	}
	stage := p.stage(e.state)
	if stage == nil { // a newer definition dropped the state, so any move out of it is allowed
		return &step{Transition: &Transition{To: to}}, nil
	}
	err := fmt.Errorf("%w: from %q to %q", ErrNotAllowed, e.state, to)
	for _, manual := range []bool{true, false} {
		for _, s := range stage.next {
			if s.To != to || s.timed() == manual {
				continue
			}
			if s.guard.holds(e.own) {
				return s, nil
			}
			err = fmt.Errorf("%w: %s", ErrRefused, s.When)
		}
	}
	return nil, err
}

// Set changes attributes of an entity, and recomputes its pending transition from them. A nil value
// removes the attribute. A direct write to the entity's item affects only conditions, and the times
// of later states.
func (l *Lifecycles) Set(ctx context.Context, lifecycle, id string, attributes Item) (Event, error) {
	return l.change(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if e == nil {
			return nil, ErrNoEntity
		}
		c := following(p, e, KindChanged, now)
		c.after.own, c.set = maps.Clone(e.own), Item{}
		for name, v := range attributes {
			if v == nil {
				delete(c.after.own, name)
				c.remove = append(c.remove, name)
			} else {
				c.after.own[name], c.set[name] = v, v
			}
		}
		for _, name := range c.remove {
			if reserved(name) {
				return nil, fmt.Errorf("attribute %q is reserved for the lifecycle", name)
			}
		}
		if err := p.checkItem(c.after.own); err != nil {
			return nil, err
		}
		if stage := p.stage(e.state); stage != nil && e.end == "" {
			before, _ := p.first(stage, e.base, e.own, nil)
			after, problem := p.first(stage, e.base, c.after.own, nil)
			if problem != nil {
				return nil, problem
			}
			if !before.pending().equal(after.pending()) || e.problem != "" {
				c.after.next, c.after.problem = after.pending(), ""
			}
		}
		return c.described(), nil
	})
}

// Pause stops an entity's time until Resume.
func (l *Lifecycles) Pause(ctx context.Context, lifecycle, id string) (Event, error) {
	return l.alter(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if !e.paused.IsZero() {
			return nil, ErrPaused
		}
		c := following(p, e, KindPaused, now)
		c.after.paused = now
		return c.described(), nil
	})
}

// Resume restarts an entity's time. The pending transition comes after the time that remained at
// the pause. A transition bound to an instant by From or At keeps the instant, or comes at once if
// it has passed.
func (l *Lifecycles) Resume(ctx context.Context, lifecycle, id string) (Event, error) {
	return l.alter(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if e.paused.IsZero() {
			return nil, ErrNotPaused
		}
		c := following(p, e, KindResumed, now)
		rested := now.Sub(e.paused)
		c.after.paused, c.after.base = time.Time{}, e.base.Add(rested)
		if e.next != nil {
			next := *e.next
			if s := p.stepOf(e); s != nil && s.anchored() {
				next.at = later(next.at, now)
			} else {
				next.at = next.at.Add(rested)
			}
			c.after.next = &next
		}
		return c.described(), nil
	})
}

// Reschedule moves the pending transition to another instant. No other transition happens before
// it.
func (l *Lifecycles) Reschedule(ctx context.Context, lifecycle, id string, at time.Time) (Event, error) {
	return l.alter(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		switch {
		case !e.paused.IsZero():
			return nil, ErrPaused
		case e.next == nil:
			return nil, ErrNothingNext
		case at.Before(earliest) || at.After(latest):
			return nil, fmt.Errorf("%s is not between 1970 and 9999", at)
		}
		c := following(p, e, KindRescheduled, now)
		next := *e.next
		next.at = later(ceil(at), now)
		c.after.next = &next
		return c.described(), nil
	})
}

// Cancel ends an entity's lifecycle in its present state. No further transition happens; the
// entity's item stays.
func (l *Lifecycles) Cancel(ctx context.Context, lifecycle, id string) (Event, error) {
	return l.alter(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		return cancelling(p, e, now), nil
	})
}

// cancelling returns the change that ends an entity's lifecycle in its present state.
func cancelling(p *plan, e *entity, now time.Time) *change {
	c := following(p, e, KindCancelled, now)
	c.after.next, c.after.end, c.after.problem = nil, endCancelled, ""
	return c
}

// Delete removes an entity and its pending transition. Its history stays until it expires.
func (l *Lifecycles) Delete(ctx context.Context, lifecycle, id string) (Event, error) {
	return l.change(ctx, lifecycle, id, func(p *plan, e *entity, now time.Time) (*change, error) {
		if e == nil {
			return nil, ErrNoEntity
		}
		c := following(p, e, KindDeleted, now)
		c.after = nil
		return c, nil
	})
}

// stepOf returns the definition's step for an entity's pending transition, or nil if the definition
// has none.
func (p *plan) stepOf(e *entity) *step {
	stage := p.stage(e.state)
	if stage == nil || e.next == nil {
		return nil
	}
	to := p.current(e.next.to)
	if via := e.next.via; via < len(stage.next) && stage.next[via].To == to && stage.next[via].timed() {
		return stage.next[via]
	}
	for _, s := range stage.next {
		if s.To == to && s.timed() {
			return s
		}
	}
	return nil
}
