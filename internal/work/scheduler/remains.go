package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/cron"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// Where firings lag behind by more than a period, an update finds occurrences that were due before it and are not even armed. They remain to the version that it ends:
// the definition says so, and the record of that version's last firing, which is still to be processed and carries all that its deliveries need, is followed
// by firings in a part of their own until the instant of the update.

// outlive lets what was due before an update, and is not armed, remain to the version that it ends, whose timing is was. e is the definition after the update.
//
// There is one version that has remains. Where an earlier one has some still, those of the version that ends now are given up, but for the firing that is armed.
func (e *entry) outlive(before *entry, was timing, now time.Time) {
	if !before.remains.pending() && before.lags(was, now) {
		e.remains = remains{version: before.version, armed: before.armed, until: now}
	}
}

// lags reports whether the firing armed last is due, and another occurrence after it that is not armed.
func (e *entry) lags(t timing, now time.Time) bool {
	if e.next.IsZero() || e.next.After(now) || t.expression.Kind() == cron.At {
		return false
	}
	next, ok := t.after(e.next.Add(-t.window)) // the occurrence lies within the window before the deadline
	return ok && !next.After(now)
}

// before is the timing without what comes after an instant. The zero instant leaves it as it is.
func (t timing) before(until time.Time) timing {
	if !until.IsZero() && (t.end.IsZero() || until.Before(t.end)) {
		t.end = until
	}
	return t
}

// advanceRemains counts the occurrences of the earlier version; after its last one it forgets the
// version.
func advanceRemains(o *outcome) action {
	f := o.firing
	c := fenced(timer.Fence{attrIncarnation: attr.S(f.incarnation), attrRemains: attr.Int(f.version), attrRemained: attr.Int(f.number)})
	c.names["#remained"] = attrRemained
	update := "SET #remained = :remained"
	if o.next != nil {
		c.values[":remained"] = attr.Int(o.next.number)
	} else {
		c.names["#remains"], c.names["#until"] = attrRemains, attrUntil
		update = "REMOVE #remains, #remained, #until"
	}
	return action{Update: &types.Update{
		TableName: &o.place.table, Key: key(f.name, partDefinition), UpdateExpression: &update,
		ConditionExpression: &c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// outlived works out anew what follows from a firing whose version was found to have ended: nothing, but for what remains; some says that this may be something. found is the
// definition; nil where the endpoint does not say.
func (s *Scheduler) outlived(ctx context.Context, o *outcome, found item) (some bool, err error) {
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
		return false, nil // another schedule of that name; or followed already
	}
	f.until = f.occurrence // nothing follows: so it is the latest, whatever the expression says
	if some = e.remains.version == f.version; some {
		f.until = e.remains.until
	}
	if err := s.workOut(o, s.now()); err != nil {
		return false, fmt.Errorf("what remains of a schedule's earlier version: %w", err)
	}
	return some, nil
}
