package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// arm puts the next firings of a batch in one transaction. A firing is armed if its definition has
// the same version, and nothing was armed after the firing that precedes it. So each is armed once,
// and none after a deletion or an update, except for the remains of an earlier version. Refused
// firings leave the transaction, and arm tries again with the others.
func (s *Scheduler) arm(ctx context.Context, batch []*outcome) error {
	arming := slices.DeleteFunc(slices.Clone(batch), func(o *outcome) bool { return !o.arms() })
	_, err := items.TransactEach(ctx, s.o.DB, arming, (*outcome).actions, func(o *outcome, stored item) (bool, error) {
		if !o.firing.until.IsZero() {
			return false, nil // of an earlier version, and armed already
		}
		return s.afterEnd(ctx, o, stored)
	})
	if err != nil && !noTable(err) { // without the table, the group is being deleted
		return fmt.Errorf("arm the next firings: %w", err)
	}
	return nil
}

// actions advance the definition and put the next firing.
func (o *outcome) actions() []action {
	advance := advance
	if !o.firing.until.IsZero() {
		advance = advanceTail
	}
	all := []action{advance(o)}
	if o.next != nil {
		all = append(all, items.Put(o.place.table, o.next.item(), nil))
	}
	return all
}

// advance increments the number of the definition's last armed occurrence.
func advance(o *outcome) action {
	f := current(o.firing.incarnation, o.firing.version)
	f[attrArmed] = attr.Int(o.firing.number)
	c := fenced(f)
	c.Names["#armed"], c.Names["#next"] = attrArmed, attrNext
	c.Values[":armed"], c.Values[":next"] = attr.Int(o.next.number), attr.Seconds(o.next.deadline)
	a := items.Update(o.place.table, key(o.firing.name, partDefinition), "SET #armed = :armed, #next = :next", c)
	a.Update.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return a
}
