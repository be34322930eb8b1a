package items

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/retry"
)

// Action is one action of a transaction.
type Action = types.TransactWriteItem

// Condition is a condition expression with its names and values.
type Condition struct {
	Text   string
	Names  map[string]string
	Values attr.Item
}

// Absent returns the condition that an item does not exist. key is one of its key attributes.
func Absent(key string) *Condition {
	return &Condition{Text: "attribute_not_exists(#key)", Names: map[string]string{"#key": key}}
}

const allOld = types.ReturnValuesOnConditionCheckFailureAllOld

// Put returns the action that puts an item; a nil condition always holds. A failure returns the
// stored item.
func Put(table string, it attr.Item, c *Condition) Action {
	p := &types.Put{TableName: &table, Item: it}
	if c != nil {
		p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues = &c.Text, c.Names, c.Values
		p.ReturnValuesOnConditionCheckFailure = allOld
	}
	return Action{Put: p}
}

// Delete returns the action that deletes an item; a nil condition always holds.
func Delete(table string, key attr.Item, c *Condition) Action {
	d := &types.Delete{TableName: &table, Key: key}
	if c != nil {
		d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues = &c.Text, c.Names, c.Values
	}
	return Action{Delete: d}
}

// Update returns the action that updates an item. The condition also has the names and values of
// the update expression.
func Update(table string, key attr.Item, update string, c *Condition) Action {
	return Action{Update: &types.Update{
		TableName: &table, Key: key, UpdateExpression: &update,
		ConditionExpression: &c.Text, ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}}
}

// Check returns the action that only checks a condition. A failure returns the stored item.
func Check(table string, key attr.Item, c *Condition) Action {
	return Action{ConditionCheck: &types.ConditionCheck{
		TableName: &table, Key: key,
		ConditionExpression: &c.Text, ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
		ReturnValuesOnConditionCheckFailure: allOld,
	}}
}

// Refusal is the cancellation of a transaction by conditions. It has a reason for each action.
type Refusal []types.CancellationReason

// Failed reports whether the condition of action i failed.
func (r Refusal) Failed(i int) bool {
	return i < len(r) && aws.ToString(r[i].Code) == "ConditionalCheckFailed"
}

// Stored returns the item that failed the condition of action i; nil if there is none, or the
// endpoint does not return it.
func (r Refusal) Stored(i int) attr.Item { return r[i].Item }

// Attempts of a transaction that conflicts with another one: 0.6 s in all.
const conflictTries = 8

var conflicts = retry.Policy{First: 5 * time.Millisecond, Most: time.Second}

// Transact writes a transaction. If conditions fail, it writes nothing and returns a refusal, which
// is not an error. It tries again while the transaction conflicts with others.
//
// The transaction has no idempotency token, which would cost a write: if an answer is lost, the
// caller finds out from the table whether the transaction was written.
func Transact(ctx context.Context, db *dynamodb.Client, actions []Action) (Refusal, error) {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
	for pauses, tries := conflicts.Start(), 1; ; tries++ {
		_, err := db.TransactWriteItems(ctx, in, func(o *dynamodb.Options) { o.IdempotencyTokenProvider = nil })
		c := Cancelled(err)
		if c == nil {
			return nil, err
		}
		r := Refusal(c.CancellationReasons)
		for i := range r {
			if r.Failed(i) {
				return r, nil
			}
		}
		if !retry.Cancelled(r) || tries == conflictTries {
			return nil, err
		}
		if !pauses.Wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// Cancelled returns the cancellation of a transaction in an error, or nil for another error.
func Cancelled(err error) *types.TransactionCanceledException {
	var c *types.TransactionCanceledException
	errors.As(err, &c)
	return c
}

// TransactGroups writes groups of actions in one transaction. The first action of a group has the
// group's condition. If conditions fail, it writes nothing and calls refused for each of these
// groups.
func TransactGroups(ctx context.Context, db *dynamodb.Client, groups [][]Action, refused func(group int, stored attr.Item)) (written bool, err error) {
	var actions []Action
	for _, group := range groups {
		actions = append(actions, group...)
	}
	r, err := Transact(ctx, db, actions)
	if r == nil || err != nil {
		return err == nil, err
	}
	known := false
	first := 0
	for i, group := range groups {
		if r.Failed(first) {
			refused(i, r.Stored(first))
			known = true
		}
		first += len(group)
	}
	if !known {
		return false, errors.New("the transaction was cancelled without a reason")
	}
	return false, nil
}

// TransactEach writes the actions of elements in one transaction, and returns the elements that it
// has written. A refused element leaves the transaction, which is tried again with the others.
// again, if not nil, may change a refused element and keep it in the transaction.
func TransactEach[E any](ctx context.Context, db *dynamodb.Client, all []E, actions func(E) []Action, again func(e E, stored attr.Item) (bool, error)) (written []E, err error) {
	for len(all) > 0 {
		groups := make([][]Action, len(all))
		for i, e := range all {
			groups[i] = actions(e)
		}
		refused := map[int]attr.Item{}
		done, err := TransactGroups(ctx, db, groups, func(i int, stored attr.Item) { refused[i] = stored })
		if err != nil {
			return nil, err
		}
		if done {
			return all, nil
		}
		var left []E
		for i, e := range all {
			stored, out := refused[i]
			if out && again != nil {
				keep, err := again(e, stored)
				if err != nil {
					return nil, err
				}
				out = !keep
			}
			if !out {
				left = append(left, e)
			}
		}
		all = left
	}
	return nil, nil
}
