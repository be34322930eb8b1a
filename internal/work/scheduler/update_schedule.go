package scheduler

import (
	"context"
	"maps"
	"time"

	"github.com/mayflydb/mayfly/internal/work/cron"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// UpdateSchedule replaces a schedule except for its name and group, and resets missing members.
// When it returns, definition and next firing are durable.
func (s *Scheduler) UpdateSchedule(ctx context.Context, in *UpdateScheduleInput) (*UpdateScheduleOutput, error) {
	c, err := s.checkSchedule((*ScheduleInput)(in), s.now())
	if err != nil {
		return nil, err
	}
	err = s.inGroup(ctx, c.group, func(table string) error { return s.update(ctx, table, (*ScheduleInput)(in), c) })
	if err != nil {
		return nil, err
	}
	return &UpdateScheduleOutput{s.scheduleARN(c.group, in.Name)}, nil
}

func (s *Scheduler) update(ctx context.Context, table string, in *ScheduleInput, c *checked) error {
	return s.retryChange(ctx, "Schedule "+in.Name, func(missing bool) error {
		before, err := s.entry(ctx, table, in.Name)
		if err != nil {
			return err
		}
		if before == nil {
			return noSchedule(in.Name)
		}
		now := s.now()
		after, f, err := s.updated(before, c, now)
		if err != nil {
			return err
		}
		ch := &change{table: table, before: before, after: after, firing: f, now: now, missing: missing}
		if in.ClientToken != nil {
			ch.token, ch.digest = *in.ClientToken, in.digest()
		}
		return s.apply(ctx, ch)
	})
}

// updated computes the definition after an update, and its next firing.
func (s *Scheduler) updated(before *entry, c *checked, now time.Time) (after *entry, f *firing, err error) {
	old, wasTiming, err := s.readDocument(before.document, before.input)
	if err != nil {
		return nil, nil, err
	}
	d := document{Settings: *c.settings, CatchUp: c.catchUp, Anchor: anchor(c.settings, now)}
	same := d.samePace(old)
	if same {
		d.Anchor = old.Anchor
	}
	copied := *before
	after = &copied
	after.version++
	after.next, after.gone = time.Time{}, time.Time{}
	after.keepTail(before, wasTiming, now)
	after.describe(d, now)
	if err := after.checkSize(); err != nil {
		return nil, nil, err
	}
	if !d.enabled() {
		return after, nil, nil
	}
	t := d.timing(c.expression)
	occurrence, ok := t.first(now)
	switch fired := !before.next.IsZero() && !before.next.After(now); {
	case c.expression.Kind() == cron.At && same && old.enabled() && fired:
		// complete: neither this update nor the next one makes it fire again
		after.next = before.next
		after.complete(&d, t, now)
		return after, nil, nil
	case c.expression.Kind() != cron.At && same:
		occurrence, ok = t.after(now)
	}
	if ok {
		return after, after.arm(t, occurrence, now), nil
	}
	after.complete(&d, t, now)
	return after, nil, nil
}

// change is the change of a definition and its next firing.
type change struct {
	table         string
	before, after *entry
	firing        *firing // nil: none
	now           time.Time
	token         string // of the request; empty: none
	digest        []byte
	missing       bool // the firing of before may be deleted
}

// apply writes a change, or returns errChanged if the table no longer has the state that the change
// was computed from. The same transaction decides about the armed firing of before. If it was not
// due, its item is replaced or deleted, so it never comes. If it was due, its item must have
// expired, so it comes.
func (s *Scheduler) apply(ctx context.Context, ch *change) error {
	actions := []action{items.Put(ch.table, ch.after.item(), ch.before.unchanged())}
	expected := absent()
	waits := ch.before.next.After(ch.now)
	if waits {
		missing := expected
		expected = ch.before.waiting()
		if ch.missing {
			expected.Text = missing.Text + " OR " + expected.Text
			maps.Copy(expected.Names, missing.Names)
		}
	}
	switch {
	case ch.firing != nil:
		actions = append(actions, items.Put(ch.table, ch.firing.item(), expected))
	case waits:
		actions = append(actions, items.Delete(ch.table, key(ch.after.name, partFiring), expected))
	}
	tokenAction := len(actions)
	if ch.token != "" {
		actions = append(actions, items.Put(ch.table, tokenItem(ch.after.name, tokenUpdate, ch.token, ch.digest, ch.now), absent()))
	}
	r, err := s.transact(ctx, actions)
	switch {
	case r == nil:
		return err
	case r.Failed(tokenAction):
		return s.tokenUsed(ctx, ch.table, ch.after.name, tokenPart(tokenUpdate, ch.token), r.Stored(tokenAction), ch.digest)
	default:
		return errChanged
	}
}
