package scheduler

import (
	"context"
	"fmt"

	"github.com/mayflydb/mayfly/internal/work/items"
)

// CreateSchedule creates a schedule. When it returns, definition and next firing are durable.
func (s *Scheduler) CreateSchedule(ctx context.Context, in *CreateScheduleInput) (*CreateScheduleOutput, error) {
	now := s.now()
	c, err := s.checkSchedule((*ScheduleInput)(in), now)
	if err != nil {
		return nil, err
	}
	if s.o.Refuse != nil {
		if err := s.o.Refuse(); err != nil {
			return nil, throttled(err.Error())
		}
	}
	e := &entry{edition: edition{name: in.Name, incarnation: newIncarnation(), version: 1}, created: now}
	if in.ClientToken != nil {
		e.token, e.digest = *in.ClientToken, (*ScheduleInput)(in).digest()
	}
	d := document{Settings: *c.settings, CatchUp: c.catchUp, Anchor: anchor(c.settings, now)}
	e.describe(d, now)
	if err := e.checkSize(); err != nil {
		return nil, err
	}
	var f *firing
	if t := d.timing(c.expression); d.enabled() {
		if occurrence, ok := t.first(now); ok {
			f = e.arm(t, occurrence, now)
		} else {
			e.complete(&d, t, now)
		}
	}
	err = s.inGroup(ctx, c.group, func(table string) error { return s.putNew(ctx, table, e, f) })
	if err != nil {
		return nil, err
	}
	return &CreateScheduleOutput{s.scheduleARN(c.group, in.Name)}, nil
}

// putNew writes a new schedule and its first firing, without reading first.
func (s *Scheduler) putNew(ctx context.Context, table string, e *entry, f *firing) error {
	actions := []action{items.Put(table, e.item(), absent())}
	if f != nil {
		actions = append(actions, items.Put(table, f.item(), nil))
	}
	if e.token != "" {
		actions = append(actions, items.Check(table, key(e.name, tokenPart(tokenCreate, e.token)), absent()))
	}
	r, err := s.transact(ctx, actions)
	switch {
	case r == nil:
		return err
	case r.Failed(0):
		return s.exists(ctx, table, e, r.Stored(0))
	case e.token != "" && r.Failed(len(actions)-1):
		return s.tokenUsed(ctx, table, e.name, tokenPart(tokenCreate, e.token), r.Stored(len(actions)-1), e.digest)
	default:
		return fmt.Errorf("create schedule %q: the transaction was cancelled without a reason", e.name)
	}
}

// exists returns the result of creating a schedule whose name is in use. It is success if this call
// has created the schedule and its response was lost, or an earlier call of the same request, which
// the token shows. Otherwise it is a conflict. found is the definition; nil if the endpoint does
// not return it.
func (s *Scheduler) exists(ctx context.Context, table string, e *entry, found item) error {
	if found == nil { // the endpoint does not return the item
		var err error
		if found, err = s.get(ctx, table, key(e.name, partDefinition)); err != nil {
			return err
		}
	}
	r := reader{from: found}
	switch {
	case r.text(attrIncarnation) == e.incarnation:
		return nil
	case e.token != "" && r.has(attrToken) && r.text(attrToken) == e.token:
		return repeated(digestOf(found), e.digest)
	default:
		return conflict("Schedule " + e.name + " already exists.")
	}
}
