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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/items"
)

const batchFirings = 20 // firings in a transaction; each has up to four actions

// change is a change of one entity: before, after and event. It is written in one transaction,
// alone or with changes of other entities.
type change struct {
	plan   *plan
	before *entity // nil: the change creates the entity
	after  *entity // nil: the change deletes the entity's item
	guard  *guard  // must hold
	event  Event
	set    Item // attributes that Set writes
	remove []string
	fired  bool // the pending transition has expired, so its item is gone
}

// actions returns the actions of the transaction. The entity's action is first, since it has the
// condition.
func (c *change) actions(now time.Time) []items.Action {
	table := EntityTable(c.plan.Name)
	all := []items.Action{c.entityAction(table, now)}
	id := c.id()
	switch {
	case c.after != nil && c.after.next != nil && c.after.paused.IsZero():
		all = append(all, items.Put(table, c.after.pendingItem(now), nil))
	case !c.fired && c.before != nil && c.before.next != nil && c.before.paused.IsZero():
		all = append(all, items.Delete(table, key(id, partNext), nil))
	}
	all = append(all, items.Put(table, c.event.item(id, now.Add(c.plan.history)), nil))
	if c.event.body != nil && !c.fired {
		all = append(all, items.Put(table, callItem(id, &c.event, now), nil))
	}
	return all
}

// id returns the entity's name.
func (c *change) id() string {
	if c.before != nil {
		return c.before.id
	}
	return c.after.id
}

// callItem returns an item that hands over the call of an event: its deadline is at once. A timed
// transition needs none, since the record of its expiry hands over the call.
func callItem(id string, e *Event, now time.Time) Item {
	return Item{
		attrEntity: attr.S(id), attrPart: attr.S(numbered(partCall, e.incarnation, e.Generation)), attrDue: attr.Seconds(now),
		attrIncarnation: attr.S(e.incarnation), attrGeneration: attr.Int(e.Generation),
	}
}

// entityAction writes the entity's item if it is still the version that was read.
func (c *change) entityAction(table string, now time.Time) items.Action {
	if c.before == nil {
		it := maps.Clone(c.after.own)
		it[attrEntity], it[attrPart] = attr.S(c.after.id), attr.S(partEntity)
		for name, v := range c.after.attributes() {
			if v != nil {
				it[name] = v
			}
		}
		return items.Put(table, it, items.Absent(attrEntity))
	}
	condition := c.before.unchanged()
	c.guard.join(condition)
	if c.after == nil {
		return items.Delete(table, key(c.before.id, partEntity), condition)
	}
	before, after := c.before.attributes(), c.after.attributes()
	if stage := c.plan.states[c.after.state]; stage != nil && stage.keep > 0 && c.after.end != "" && c.before.end == "" {
		after[attrDue] = attr.Seconds(now.Add(stage.keep))
	}
	maps.Copy(after, c.set)
	for _, name := range c.remove {
		before[name], after[name] = attr.S(""), nil
	}
	var set, remove []string
	for i, name := range slices.Sorted(maps.Keys(after)) {
		switch short := fmt.Sprintf("mayfly_%d", i); {
		case after[name] != nil:
			if _, ours := before[name]; ours && same(before[name], after[name]) && name != attrGeneration {
				continue
			}
			condition.Names["#"+short], condition.Values[":"+short] = name, after[name]
			set = append(set, "#"+short+" = :"+short)
		case before[name] != nil:
			condition.Names["#"+short] = name
			remove = append(remove, "#"+short)
		}
	}
	update := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}
	return items.Update(table, key(c.before.id, partEntity), update, condition)
}

// unchanged returns the condition that an entity has not changed since it was read.
func (e *entity) unchanged() *items.Condition {
	return &items.Condition{
		Text:   "#mayfly_i = :mayfly_i AND #mayfly_g = :mayfly_g",
		Names:  map[string]string{"#mayfly_i": attrIncarnation, "#mayfly_g": attrGeneration},
		Values: Item{":mayfly_i": attr.S(e.incarnation), ":mayfly_g": attr.Int(e.generation)},
	}
}

// same reports whether two texts or two numbers are equal.
func same(a, b types.AttributeValue) bool {
	return a != nil && b != nil && attr.String(a) == attr.String(b) && attr.Integer(a) == attr.Integer(b) && kindOf(a) == kindOf(b)
}

// transact writes several changes in one transaction. If conditions fail, nothing is written, and
// refused has the positions of the refused changes. It observes each written change.
func (l *Lifecycles) transact(ctx context.Context, changes []*change) (refused []int, err error) {
	now := l.now()
	groups := make([][]items.Action, len(changes))
	for i, c := range changes {
		groups[i] = c.actions(now)
	}
	written, err := items.TransactGroups(ctx, l.o.DB, groups, func(i int, _ Item) { refused = append(refused, i) })
	if written {
		for _, c := range changes {
			l.o.Observe(Change{Lifecycle: c.plan.Name, Entity: c.id(), Event: c.event})
		}
	}
	return refused, err
}

// impossible reports whether a transaction fails at every attempt, for example because an item is
// too large.
func impossible(err error) bool {
	if c := items.Cancelled(err); c != nil {
		return slices.ContainsFunc(c.CancellationReasons, func(r types.CancellationReason) bool {
			return aws.ToString(r.Code) == "ValidationError" || aws.ToString(r.Code) == "ItemCollectionSizeLimitExceeded"
		})
	}
	var e smithy.APIError
	return errors.As(err, &e) && e.ErrorCode() == "ValidationException"
}

// reasonOf returns the endpoint's reason for refusing a transaction.
func reasonOf(err error) string {
	if c := items.Cancelled(err); c != nil {
		for _, r := range c.CancellationReasons {
			if m := aws.ToString(r.Message); m != "" {
				return m
			}
		}
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorMessage()
	}
	return err.Error()
}
