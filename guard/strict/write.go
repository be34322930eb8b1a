package strict

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

const (
	memberOnFailure = "ReturnValuesOnConditionCheckFailure"
	allOld          = "ALL_OLD"
)

// write is a write of an item in a guarded table, or a transaction's check of one.
type write struct {
	*terms
	conditional bool // the caller has a condition
	absent      bool // and it holds for an item that is not there; true without one
	update      bool // the write begins with the item as it is, so it must not meet an expired one
	shows       bool // the caller wants the item of a failed condition
}

// readWrite reads what PutItem, DeleteItem, UpdateItem and the actions of TransactWriteItems have in common.
func readWrite(in object, attribute string, update bool) (*write, error) {
	if in.hasAny("Expected", "AttributeUpdates", "ConditionalOperator") {
		return nil, legacyError(in.text("TableName"), "Expected, AttributeUpdates and ConditionalOperator")
	}
	kinds := []string{memberCondition}
	if update {
		kinds = []string{memberUpdate, memberCondition}
	}
	t, err := readTerms(in, attribute, kinds...)
	if err != nil {
		return nil, err
	}
	w := &write{terms: t, update: update, absent: true, shows: in.text(memberOnFailure) == allOld}
	if w.conditional = t.condition != nil; w.conditional {
		w.absent = t.condition.Eval(nil)
	}
	return w, nil
}

// at is the request with its condition at an instant: one that takes an expired item for none, and for an update refuses one.
func (w *write) at(m moment) (json.RawMessage, error) {
	if !w.conditional && !w.update {
		return w.members.bytes(), nil
	}
	x := w.extend()
	expired := x.expired(w.attribute, m)
	fits := false
	if w.absent && !w.update {
		fits = x.connect(memberCondition, expired, "OR")
	} else {
		fits = x.connect(memberCondition, "NOT "+expired, "AND")
	}
	if !fits {
		return nil, dynamo.Invalid("strict reads: the condition is too long; leave 64 bytes and 5 operators for the expiry condition that is added")
	}
	if w.removes() && (!w.members.has(memberOnFailure) || w.members.text(memberOnFailure) == "NONE") {
		x.members[memberOnFailure] = quoted(allOld) // which tells whether that was because the item has expired
	}
	return x.bytes(), nil
}

// removes reports whether the write would go on where an expired item is removed first.
func (w *write) removes() bool { return w.update && w.absent }

// hide takes what the caller must not see, or has not asked for, out of a failed condition's answer.
func (w *write) hide(m moment, out object) error {
	item, ok := out.member("Item")
	if !ok {
		return errUnreadable
	}
	if item != nil && (!w.shows || m.expired(item[w.attribute])) {
		delete(out, "Item")
	}
	return nil
}

// enveloped puts what is wrong with a request as PutItem and UpdateItem do.
func enveloped(err error) error {
	if e, ok := err.(*dynamo.Error); ok && e.Code == dynamo.CodeValidation {
		return dynamo.Invalid("1 validation error detected: " + e.Message)
	}
	return err
}

// putItem answers PutItem.
func (c *call) putItem(ctx context.Context) (answer, error) { return c.replace(ctx, enveloped) }

// deleteItem answers DeleteItem.
func (c *call) deleteItem(ctx context.Context) (answer, error) {
	return c.replace(ctx, func(err error) error { return err })
}

// replace makes a write that does not depend on the item as it was, but for its condition and its answer.
func (c *call) replace(ctx context.Context, word func(error) error) (answer, error) {
	attribute, err := c.attributeOf(ctx, c.in.text("TableName"))
	if err != nil {
		return answer{}, err
	}
	if attribute == "" {
		return c.forward(ctx)
	}
	w, err := readWrite(c.in, attribute, false)
	if err != nil {
		return answer{}, word(err)
	}
	body, err := w.at(c.at)
	if err != nil {
		return answer{}, err
	}
	a, err := c.send(ctx, c.operation, body)
	if err != nil {
		return a, err
	}
	return c.showWrite(w, a), nil
}

// showWrite makes the endpoint's answer to a write the caller's.
func (c *call) showWrite(w *write, a answer) answer {
	if !a.ok() && a.code() != dynamo.CodeConditionalCheckFailed {
		return a
	}
	out, ok := readObject(a.body)
	if !ok {
		return unreadable(c.operation)
	}
	if !a.ok() {
		if w.hide(c.at, out) != nil {
			return unreadable(c.operation)
		}
		return a.with(out.bytes())
	}
	if w.update {
		return a // it began with what had not expired
	}
	old, ok := out.member("Attributes")
	if !ok {
		return unreadable(c.operation)
	}
	if old == nil || !c.at.expired(old[w.attribute]) {
		return a
	}
	delete(out, "Attributes")
	return a.with(out.bytes())
}

// updateItem answers UpdateItem. An update that meets an expired item removes that first.
func (c *call) updateItem(ctx context.Context) (answer, error) {
	table := c.in.text("TableName")
	attribute, err := c.attributeOf(ctx, table)
	if err != nil {
		return answer{}, err
	}
	if attribute == "" {
		return c.forward(ctx)
	}
	w, err := readWrite(c.in, attribute, true)
	if err != nil {
		return answer{}, enveloped(err)
	}
	body, err := w.at(c.at)
	if err != nil {
		return answer{}, err
	}
	for range attemptsMax {
		a, err := c.send(ctx, c.operation, body)
		if err != nil || a.code() != dynamo.CodeConditionalCheckFailed || !w.removes() {
			return c.showWrite(w, a), err
		}
		out, _ := readObject(a.body)
		item, shown := out.member("Item")
		if !shown {
			return unreadable(c.operation), nil
		}
		if again, err := c.clear(ctx, w, table, c.in["Key"], item, a.header.Get(headerDate)); err != nil || !again {
			return c.showWrite(w, a), err
		}
	}
	return answer{}, busy()
}

// clear removes the item that a condition failed for, where it has expired. It reports whether the write is to be made again: because the item was removed, or has gone by
// itself. item is what the endpoint has shown of it, and nil where it shows nothing; date is when it said so, by its own clock.
func (c *call) clear(ctx context.Context, w *write, table string, key json.RawMessage, item object, date string) (again bool, err error) {
	if item == nil { // gone, or the endpoint does not show items of failed conditions
		if item, err = c.lookUp(ctx, table, key); err != nil {
			return false, err
		}
	}
	if item == nil {
		return true, nil
	}
	if !c.at.expired(item[w.attribute]) {
		return false, nil
	}
	if due, err := c.due(ctx, item[w.attribute], date); !due || err != nil {
		return true, err
	}
	x := &extended{object{"TableName": quoted(table), "Key": key}, object{}, object{}}
	x.members[memberCondition] = quoted(x.name(w.attribute) + " = " + x.value(item[w.attribute]))
	a, err := c.send(ctx, "DeleteItem", x.bytes())
	if err != nil {
		return false, err
	}
	if !a.ok() && a.code() != dynamo.CodeConditionalCheckFailed {
		return false, advised(a, "DeleteItem", table, "because the update must first remove the expired item")
	}
	return true, nil
}

// busy is the answer to a write that others got in between of, again and again.
func busy() error {
	return &dynamo.Error{Code: dynamo.CodeTransactionConflict, Message: "strict reads: others wrote to the item in between, " + strconv.Itoa(attemptsMax) + " times"}
}
