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
	"github.com/mayflydb/mayfly/internal/work/retry"
	"github.com/mayflydb/mayfly/internal/work/timer"
)

// action is one action of a transaction.
type action = types.TransactWriteItem

// condition is a condition expression with its names and values.
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

// expire sets the deadline of an item.
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

// absent is the condition that the item does not exist.
var absent = &condition{text: "attribute_not_exists(#name)", names: map[string]string{"#name": attrName}}

// fenced returns the condition that an item is in a state.
func fenced(f timer.Fence) *condition {
	text, names, values := f.Condition()
	return &condition{text, names, values}
}

// current returns the state of a definition that is neither updated, nor deleted and created again.
// It may have fired.
func current(incarnation string, version int64) timer.Fence {
	return timer.Fence{attrIncarnation: attr.S(incarnation), attrVersion: attr.Int(version)}
}

// unchanged returns the condition that a definition is as it was read, so it has not fired either.
func (e *entry) unchanged() *condition {
	f := current(e.incarnation, e.version)
	f[attrArmed] = attr.Int(e.armed)
	if r := e.tail; r.pending() {
		f[attrRemains], f[attrRemained] = attr.Int(r.version), attr.Int(r.armed)
	}
	return fenced(f)
}

// waiting returns the condition that a firing's item is the one that was armed last.
func (e *entry) waiting() *condition {
	f := current(e.incarnation, e.version)
	f[attrOccurrence] = attr.Int(e.armed)
	return fenced(f)
}

// cancelled has the reasons for the cancellation of a transaction, one for each action.
type cancelled struct{ reasons []types.CancellationReason }

// refused reports whether a condition failed.
func (c *cancelled) refused() bool {
	for i := range c.reasons {
		if c.failed(i) {
			return true
		}
	}
	return false
}

// failed reports whether the condition of action i failed.
func (c *cancelled) failed(i int) bool {
	return i < len(c.reasons) && aws.ToString(c.reasons[i].Code) == "ConditionalCheckFailed"
}

// found returns the item that failed the condition of action i; nil if there is none, or the
// endpoint does not return it.
func (c *cancelled) found(i int) item { return c.reasons[i].Item }

// Attempts of a transaction that conflicts with another one.
const (
	passingTries = 6
	passingPause = 5 * time.Millisecond // doubled after each attempt
)

// transact writes a transaction. Failed conditions cancel it, which is not an error.
//
// It has no idempotency token, which would cost a write: the table shows whether it was written
// before.
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
		case !retry.Cancelled(c.reasons) || tries == passingTries:
			return nil, err
		}
		clock.Pause(pause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// get returns an item by a consistent read; nil if there is none.
func (s *Scheduler) get(ctx context.Context, table string, k item) (item, error) {
	out, err := s.o.DB.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// entry returns a definition; nil if there is none.
func (s *Scheduler) entry(ctx context.Context, table, name string) (*entry, error) {
	it, err := s.get(ctx, table, key(name, partDefinition))
	if it == nil || err != nil {
		return nil, err
	}
	return readEntry(it)
}

// errChanged means that an item has changed since it was read, so the change must be computed
// again.
var errChanged = errors.New("changed meanwhile")

// retryChange calls f until it no longer conflicts with a concurrent change. In further calls
// missing is true: a missing firing that is not due counts as deleted.
func (s *Scheduler) retryChange(ctx context.Context, name string, f func(missing bool) error) error {
	pause := changePause
	for try := range changeTries {
		if try > 1 {
			clock.Pause(pause, ctx.Done())
			pause *= 2
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(try > 0); !errors.Is(err, errChanged) {
			return err
		}
	}
	return conflict(name + " is changed or fires at this moment. Try again.")
}

// Attempts of a change that conflicts with a firing or another change, or whose due firing has not
// expired yet, as the expiry may take a moment.
const (
	changeTries = 13
	changePause = time.Millisecond // real time before the third attempt, then doubled: 2 s in all
)

// batchFirings is the number of firings in a transaction, which has two actions for each.
const batchFirings = 50
