package scheduler

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// arm puts the next firing of each, where its definition is still of the same version and nothing was armed after this firing: each exactly once, whatever comes
// twice, and none after a deletion, or after an update but for what remains of the version before it. All of a batch is one transaction; what is not to be armed leaves it, and the rest is tried again.
func (s *Scheduler) arm(ctx context.Context, batch []*outcome) error {
	var left []*outcome
	for _, o := range batch {
		if o.arms() {
			left = append(left, o)
		}
	}
	for len(left) > 0 {
		actions := make([]action, 0, 2*len(left))
		first := make([]int, len(left)) // each one's first action
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
		var rest []*outcome
		refused := 0
		for i, o := range left {
			if !c.failed(first[i]) {
				rest = append(rest, o)
				continue
			}
			refused++
			if !o.firing.until.IsZero() {
				continue // of what remained, and followed already
			}
			some, err := s.outlived(ctx, o, c.found(first[i]))
			if err != nil {
				return err
			}
			if some {
				rest = append(rest, o)
			}
		}
		if refused == 0 {
			return fmt.Errorf("arm the next firings: the transaction was cancelled without a reason")
		}
		left = rest
	}
	return nil
}

// advance counts a definition's occurrences up.
func advance(o *outcome) action {
	if !o.firing.until.IsZero() {
		return advanceRemains(o)
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
