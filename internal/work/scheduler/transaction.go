package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// action is one action of a transaction.
type action = types.TransactWriteItem

// condition is one on an item. The names that it has as #name are attributes.
type condition struct {
	text   string
	names  map[string]string
	values item
}

func put(table string, it item, c *condition) action {
	p := &types.Put{TableName: &table, Item: it}
	if c != nil {
		p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues = &c.text, c.names, c.values
		p.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return action{Put: p}
}

func remove(table string, k item, c *condition) action {
	d := &types.Delete{TableName: &table, Key: k}
	if c != nil {
		d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues = &c.text, c.names, c.values
	}
	return action{Delete: d}
}

// expire gives an item a deadline.
func expire(table string, k item, c *condition, deadline time.Time) action {
	c.names["#due"], c.values[":due"] = attrDue, attr.Seconds(deadline)
	return action{Update: &types.Update{
		TableName: &table, Key: k, UpdateExpression: aws.String("SET #due = :due"),
		ConditionExpression: &c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

func check(table string, k item, c *condition) action {
	return action{ConditionCheck: &types.ConditionCheck{
		TableName: &table, Key: k,
		ConditionExpression: &c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// absent is the condition that there is no such item.
var absent = &condition{text: "attribute_not_exists(#name)", names: map[string]string{"#name": attrName}}

// current is the condition that a definition has not been updated, nor deleted and made again. It may have fired.
func current(incarnation string, version int64) *condition {
	return &condition{
		text:   "#incarnation = :i AND #version = :v",
		names:  map[string]string{"#incarnation": attrIncarnation, "#version": attrVersion},
		values: item{":i": attr.S(incarnation), ":v": attr.Int(version)},
	}
}

// unchanged is the condition that a definition is still as it was read: neither has it fired.
func (e *entry) unchanged() *condition {
	c := current(e.incarnation, e.version)
	c.text += " AND #armed = :a"
	c.names["#armed"], c.values[":a"] = attrArmed, attr.Int(e.armed)
	e.remains.untouched(c)
	return c
}

// waiting is the condition that the firing that was armed last has not come yet.
func (e *entry) waiting() *condition {
	c := current(e.incarnation, e.version)
	c.text += " AND #occurrence = :n"
	c.names["#occurrence"], c.values[":n"] = attrOccurrence, attr.Int(e.armed)
	return c
}

// cancelled says why a transaction was not made: a reason for each action.
type cancelled struct{ reasons []types.CancellationReason }

// refused reports whether a condition did not hold.
func (c *cancelled) refused() bool {
	for i := range c.reasons {
		if c.failed(i) {
			return true
		}
	}
	return false
}

// failed reports whether the condition of an action did not hold.
func (c *cancelled) failed(i int) bool {
	return i < len(c.reasons) && aws.ToString(c.reasons[i].Code) == "ConditionalCheckFailed"
}

// found is the item on which the condition of an action did not hold; nil where there is none, or the endpoint does not say.
func (c *cancelled) found(i int) item { return c.reasons[i].Item }

// passing reports whether the same transaction may be made when tried again: nothing is wrong with it, but another one was in its way.
func (c *cancelled) passing() bool {
	busy := false
	for _, r := range c.reasons {
		switch aws.ToString(r.Code) {
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			busy = true
		case "None", "":
		default:
			return false
		}
	}
	return busy
}

// How often and how soon a transaction is tried that met another one.
const (
	passingTries = 6
	passingPause = 5 * time.Millisecond // doubled with each
)

// transact makes a transaction. One whose conditions do not hold is cancelled, which is no error.
//
// It has no token of its own, which would cost a write: that a transaction was made before is seen by what is there.
func (s *Scheduler) transact(ctx context.Context, actions []action) (*cancelled, error) {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
	for pause, tries := passingPause, 1; ; pause, tries = 2*pause, tries+1 {
		_, err := s.o.DB.TransactWriteItems(ctx, in, func(o *dynamodb.Options) { o.IdempotencyTokenProvider = nil })
		var cancellation *types.TransactionCanceledException
		if !errors.As(err, &cancellation) {
			return nil, err
		}
		switch c := (&cancelled{cancellation.CancellationReasons}); {
		case c.refused():
			return c, nil
		case !c.passing() || tries == passingTries:
			return nil, err
		}
		clock.Pause(pause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// get reads an item as it is; nil where there is none.
func (s *Scheduler) get(ctx context.Context, table string, k item) (item, error) {
	out, err := s.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// entry reads a definition; nil where there is none.
func (s *Scheduler) entry(ctx context.Context, table, name string) (*entry, error) {
	it, err := s.get(ctx, table, key(name, partDefinition))
	if it == nil || err != nil {
		return nil, err
	}
	return readEntry(it)
}
