package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/cron"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// If firings lag behind by more than a period, an update finds occurrences that were due before it
// and are not armed. They remain with the version that it ends. The definition records them. The
// record of that version's last firing is still to be processed and has all that its deliveries
// need; further firings follow it, in a part of their own, until the instant of the update.

// keepTail keeps the occurrences of an ended version that were due before the update and are not
// armed. old is that version's timing, and e is the definition after the update.
//
// Only one version can have a tail. If an earlier one still has its tail, the occurrences of the
// version that ends now are dropped, except for the armed firing.
func (e *entry) keepTail(before *entry, old timing, now time.Time) {
	if !before.tail.pending() && before.lags(old, now) {
		e.tail = tail{version: before.version, armed: before.armed, until: now}
	}
}

// lags reports whether the last armed firing and the occurrence after it are both due.
func (e *entry) lags(t timing, now time.Time) bool {
	if e.next.IsZero() || e.next.After(now) || t.expression.Kind() == cron.At {
		return false
	}
	// the occurrence lies within the window before the deadline
	next, ok := t.after(e.next.Add(-t.window))
	return ok && !next.After(now)
}

// before returns the timing that ends at an instant. The zero instant leaves it unchanged.
func (t timing) before(until time.Time) timing {
	if !until.IsZero() && (t.end.IsZero() || until.Before(t.end)) {
		t.end = until
	}
	return t
}

// advanceTail counts the occurrences of the earlier version; after its last one it forgets the
// version.
func advanceTail(o *outcome) action {
	f := o.firing
	c := fenced(timer.Fence{attrIncarnation: attr.S(f.incarnation), attrRemains: attr.Int(f.version), attrRemained: attr.Int(f.number)})
	c.Names["#remained"] = attrRemained
	update := "SET #remained = :remained"
	if o.next != nil {
		c.Values[":remained"] = attr.Int(o.next.number)
	} else {
		c.Names["#remains"], c.Names["#until"] = attrRemains, attrUntil
		update = "REMOVE #remains, #remained, #until"
	}
	return items.Update(o.place.table, key(f.name, partDefinition), update, c)
}

// afterEnd computes the outcome of a firing again whose definition has refused it: the firing's
// version has ended, or the firing that follows is armed already. It reports whether the firing
// still arms one, since its version is the tail of the definition. found is the definition, or nil
// if the endpoint does not return it.
func (s *Scheduler) afterEnd(ctx context.Context, o *outcome, found item) (arms bool, err error) {
	f := o.firing
	if found == nil {
		if found, err = s.get(ctx, o.place.table, key(f.name, partDefinition)); err != nil && !noTable(err) {
			return false, err
		}
	}
	if found == nil {
		return false, nil // deleted
	}
	e, err := readEntry(found)
	if err != nil {
		return false, err
	}
	if e.incarnation != f.incarnation || e.version == f.version {
		return false, nil // a new schedule with that name, or armed already
	}
	f.until = f.occurrence // nothing follows, so this is the latest, whatever the expression says
	if arms = e.tail.version == f.version; arms {
		f.until = e.tail.until
	}
	if err := s.compute(o, s.now()); err != nil {
		return false, fmt.Errorf("the firings of an earlier version: %w", err)
	}
	return arms, nil
}
