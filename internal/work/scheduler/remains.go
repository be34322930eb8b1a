package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/cron"
)

// Where firings lag behind by more than a period, an update finds occurrences that were due before it and are not even armed. They remain to the version that it ends:
// the definition says so, and the record of that version's last firing, which is still to be processed and carries all that its deliveries need, is followed
// by firings in a part of their own until the instant of the update.

// remains is what is left of an earlier version of a schedule: occurrences until an instant.
type remains struct {
	version int64     // 0: nothing remains
	armed   int64     // number of its occurrence armed last
	until   time.Time // of the update: what is due afterwards is the next version's
}

func (r remains) pending() bool { return r.version != 0 }

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

// untouched is the condition that nothing of the remains was armed meanwhile.
func (r remains) untouched(c *condition) {
	if r.pending() {
		c.text += " AND #remains = :rv AND #remained = :ra"
		c.names["#remains"], c.names["#remained"] = attrRemains, attrRemained
		c.values[":rv"], c.values[":ra"] = attr.Int(r.version), attr.Int(r.armed)
	}
}

// advanceRemains counts the occurrences of what remains up; after the last one, nothing remains.
func advanceRemains(o *outcome) action {
	f := o.firing
	u := &types.Update{
		TableName: &o.place.table, Key: key(f.name, partDefinition),
		ConditionExpression: aws.String("#incarnation = :i AND #remains = :v AND #remained = :was"),
		ExpressionAttributeNames: map[string]string{
			"#incarnation": attrIncarnation, "#remains": attrRemains, "#remained": attrRemained,
		},
		ExpressionAttributeValues: item{":i": attr.S(f.incarnation), ":v": attr.Int(f.version), ":was": attr.Int(f.number)},
	}
	if o.next != nil {
		u.UpdateExpression, u.ExpressionAttributeValues[":armed"] = aws.String("SET #remained = :armed"), attr.Int(o.next.number)
		return action{Update: u}
	}
	u.UpdateExpression, u.ExpressionAttributeNames["#until"] = aws.String("REMOVE #remains, #remained, #until"), attrUntil
	return action{Update: u}
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
