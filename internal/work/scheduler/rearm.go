package scheduler

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// arm puts the next firings of a batch in one transaction. A firing is armed if its definition has
// the same version, and nothing was armed after the firing that precedes it. So each is armed once,
// and none after a deletion or an update, except for the remains of an earlier version. Refused
// firings leave the transaction, and arm tries again with the others.
func (s *Scheduler) arm(ctx context.Context, batch []*outcome) error {
	var left []*outcome
	for _, o := range batch {
		if o.arms() {
			left = append(left, o)
		}
	}
	for len(left) > 0 {
		actions := make([]action, 0, 2*len(left))
		first := make([]int, len(left)) // index of the first action of each
		for i, o := range left {
			first[i] = len(actions)
			actions = append(actions, advance(o))
			if o.next != nil {
				actions = append(actions, put(o.place.table, o.next.item(), nil))
			}
		}
		c, err := s.transact(ctx, actions)
		switch {
		case noTable(err): // the group is being deleted
			return nil
		case err != nil:
			return fmt.Errorf("arm the next firings: %w", err)
		case c == nil:
			return nil
		}
		var remaining []*outcome
		refused := 0
		for i, o := range left {
			if !c.failed(first[i]) {
				remaining = append(remaining, o)
				continue
			}
			refused++
			if !o.firing.until.IsZero() {
				continue // of an earlier version, and armed already
			}
			arms, err := s.afterEnd(ctx, o, c.found(first[i]))
			if err != nil {
				return err
			}
			if arms {
				remaining = append(remaining, o)
			}
		}
		if refused == 0 {
			return fmt.Errorf("arm the next firings: the transaction was cancelled without a reason")
		}
		left = remaining
	}
	return nil
}

// advance increments the number of the definition's last armed occurrence.
func advance(o *outcome) action {
	if !o.firing.until.IsZero() {
		return advanceTail(o)
	}
	f := current(o.firing.incarnation, o.firing.version)
	f[attrArmed] = attr.Int(o.firing.number)
	c := fenced(f)
	c.names["#armed"], c.names["#next"] = attrArmed, attrNext
	c.values[":armed"], c.values[":next"] = attr.Int(o.next.number), attr.Seconds(o.next.deadline)
	return action{Update: &types.Update{
		TableName: &o.place.table, Key: key(o.firing.name, partDefinition),
		UpdateExpression:          aws.String("SET #armed = :armed, #next = :next"),
		ConditionExpression:       &c.text,
		ExpressionAttributeNames:  c.names,
		ExpressionAttributeValues: c.values,

		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
