package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/clock"
)

// change is one of an entity: what it was, what it is to be, and what follows. It is one transaction, alone or with those of other entities.
type change struct {
	plan   *plan
	before *entity // nil: it is to be created
	after  *entity // nil: its item is to be deleted
	guard  *guard  // has to hold
	event  Event
	set    Item // attributes of its own that are to be set, by Set
	remove []string
	fired  bool // the pending transition has expired: its item is gone
}

// actions are those of the transaction, the entity's first: it has the condition.
func (c *change) actions(now time.Time) []types.TransactWriteItem {
	table := EntityTable(c.plan.Name)
	all := []types.TransactWriteItem{c.entityAction(table, now)}
	id := c.id()
	switch {
	case c.after != nil && c.after.next != nil && c.after.paused.IsZero():
		all = append(all, put(table, c.after.pendingItem(now)))
	case !c.fired && c.before != nil && c.before.next != nil && c.before.paused.IsZero():
		all = append(all, types.TransactWriteItem{Delete: &types.Delete{TableName: &table, Key: key(id, partNext)}})
	}
	all = append(all, put(table, c.event.item(id, now.Add(c.plan.history))))
	if c.event.body != nil && !c.fired {
		all = append(all, put(table, callItem(id, &c.event, now)))
	}
	return all
}

// id is the entity's.
func (c *change) id() string {
	if c.before != nil {
		return c.before.id
	}
	return c.after.id
}

// callItem has the call of an event be handed over: its deadline is at once. The record of an expiry does that for a transition by time.
func callItem(id string, e *Event, now time.Time) Item {
	return Item{
		attrEntity: text(id), attrPart: text(numbered(partCall, e.incarnation, e.Generation)), attrDue: seconds(now),
		attrIncarnation: text(e.incarnation), attrGeneration: number(e.Generation),
	}
}

func put(table string, it Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: it}}
}

// entityAction writes the entity's own item, if it is still the one that was read.
func (c *change) entityAction(table string, now time.Time) types.TransactWriteItem {
	if c.before == nil {
		it := maps.Clone(c.after.own)
		it[attrEntity], it[attrPart] = text(c.after.id), text(partEntity)
		for name, v := range c.after.attributes() {
			if v != nil {
				it[name] = v
			}
		}
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &table, Item: it, ConditionExpression: aws.String("attribute_not_exists(#e)"), ExpressionAttributeNames: map[string]string{"#e": attrEntity},
		}}
	}
	names := map[string]string{"#mayfly_i": attrIncarnation, "#mayfly_g": attrGeneration}
	values := Item{":mayfly_i": text(c.before.incarnation), ":mayfly_g": number(c.before.generation)}
	condition := c.guard.join("#mayfly_i = :mayfly_i AND #mayfly_g = :mayfly_g", names, values)
	if c.after == nil {
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &table, Key: key(c.before.id, partEntity), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		}}
	}
	was, is := c.before.attributes(), c.after.attributes()
	if stage := c.plan.states[c.after.state]; stage != nil && stage.keep > 0 && c.after.ended != "" && c.before.ended == "" {
		is[attrDue] = seconds(now.Add(stage.keep))
	}
	for name, v := range c.set {
		is[name] = v
	}
	for _, name := range c.remove {
		was[name], is[name] = text(""), nil
	}
	var set, remove []string
	for i, name := range slices.Sorted(maps.Keys(is)) {
		switch short := fmt.Sprintf("mayfly_%d", i); {
		case is[name] != nil:
			if _, ours := was[name]; ours && same(was[name], is[name]) && name != attrGeneration {
				continue
			}
			names["#"+short], values[":"+short] = name, is[name]
			set = append(set, "#"+short+" = :"+short)
		case was[name] != nil:
			names["#"+short] = name
			remove = append(remove, "#"+short)
		}
	}
	update := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(c.before.id, partEntity), UpdateExpression: &update,
		ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}}
}

// same reports whether two texts or numbers of ours are.
func same(a, b types.AttributeValue) bool {
	return a != nil && b != nil && textOf(a) == textOf(b) && numberOf(a) == numberOf(b) && kindOf(a) == kindOf(b)
}

// How often and how soon a transaction is tried that met another one.
const (
	passingTries = 8
	passingPause = 5 * time.Millisecond // doubled with each
)

// transact makes a transaction of some changes. Where conditions do not hold nothing is made, and refused has their places.
func (l *Lifecycles) transact(ctx context.Context, changes []*change) (refused []int, err error) {
	var actions []types.TransactWriteItem
	first := make([]int, len(changes))
	now := l.now()
	for i, c := range changes {
		first[i] = len(actions)
		actions = append(actions, c.actions(now)...)
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
	for pause, tries := passingPause, 1; ; pause, tries = 2*pause, tries+1 {
		// It has no token of its own: that it was made before is seen by the generation.
		_, err := l.o.DB.TransactWriteItems(ctx, in, func(o *dynamodb.Options) { o.IdempotencyTokenProvider = nil })
		if err == nil {
			for _, c := range changes {
				l.o.Observe(Change{Lifecycle: c.plan.Name, Entity: c.id(), Event: c.event})
			}
			return nil, nil
		}
		cancelled := cancelledBy(err)
		if cancelled == nil {
			return nil, err
		}
		reason := func(i int) string {
			if i < len(cancelled.CancellationReasons) {
				return aws.ToString(cancelled.CancellationReasons[i].Code)
			}
			return ""
		}
		for i, at := range first {
			if reason(at) == "ConditionalCheckFailed" {
				refused = append(refused, i)
			}
		}
		if len(refused) > 0 {
			return refused, nil
		}
		if !passing(cancelled) || tries == passingTries {
			return nil, err
		}
		clock.Pause(pause, ctx.Done())
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// passing reports whether the same transaction may be made when tried again.
func passing(c *types.TransactionCanceledException) bool {
	busy := false
	for _, r := range c.CancellationReasons {
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

// impossible reports whether a transaction fails however often it is tried: its items are too large, say.
func impossible(err error) bool {
	if c := cancelledBy(err); c != nil {
		return slices.ContainsFunc(c.CancellationReasons, func(r types.CancellationReason) bool {
			return aws.ToString(r.Code) == "ValidationError" || aws.ToString(r.Code) == "ItemCollectionSizeLimitExceeded"
		})
	}
	var e smithy.APIError
	return errors.As(err, &e) && e.ErrorCode() == "ValidationException"
}

// inShort says what the endpoint has against a transaction.
func inShort(err error) string {
	if c := cancelledBy(err); c != nil {
		for _, r := range c.CancellationReasons {
			if m := aws.ToString(r.Message); m != "" {
				return m
			}
		}
	}
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorMessage()
	}
	return err.Error()
}

// cancelledBy is why a transaction was not made; nil where it is another error.
func cancelledBy(err error) *types.TransactionCanceledException {
	var c *types.TransactionCanceledException
	errors.As(err, &c)
	return c
}
