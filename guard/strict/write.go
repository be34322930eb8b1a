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

// write is a write of an item in a guarded table, or a transaction's condition check.
type write struct {
	*terms
	conditional bool // the caller has a condition
	absent      bool // the condition is true for a missing item; true without one
	update      bool // the write starts from the stored item, so it must not meet an expired one
	shows       bool // the caller wants the item if the condition fails
}

// readWrite reads the common members of PutItem, DeleteItem, UpdateItem and the actions of
// TransactWriteItems.
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

// at returns the request with its condition for an instant. The condition treats an expired item as
// missing; for an update, it fails on one.
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
		// shows whether the condition failed because the item has expired
		x.members[memberOnFailure] = quoted(allOld)
	}
	return x.bytes(), nil
}

// removes reports whether the write can go on after removing an expired item.
func (w *write) removes() bool { return w.update && w.absent }

// hide removes the item from a failed condition's answer if it has expired, or if the caller did
// not request it.
func (w *write) hide(m moment, out object) error {
	item, err := out.part("Item")
	if item != nil && (!w.shows || m.expired(item[w.attribute])) {
		delete(out, "Item")
	}
	return err
}

// enveloped returns an error with the text of PutItem and UpdateItem.
func enveloped(err error) error {
	if e, ok := err.(*dynamo.Error); ok && e.Code == dynamo.CodeValidation {
		return dynamo.Invalid("1 validation error detected: " + e.Message)
	}
	return err
}

// putItem answers PutItem.
func (c *call) putItem(ctx context.Context, attribute string) (answer, error) {
	return c.replace(ctx, attribute, enveloped)
}

// deleteItem answers DeleteItem.
func (c *call) deleteItem(ctx context.Context, attribute string) (answer, error) {
	return c.replace(ctx, attribute, func(err error) error { return err })
}

// replace executes a write that depends on the old item only in its condition and its answer: a put
// or a delete. word changes the text of errors in the request's expressions.
func (c *call) replace(ctx context.Context, attribute string, word func(error) error) (answer, error) {
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
	return c.showWrite(w, a)
}

// showWrite changes the endpoint's answer to a write into the caller's.
func (c *call) showWrite(w *write, a answer) (answer, error) {
	if !a.ok() && a.code() != dynamo.CodeConditionalCheckFailed {
		return a, nil
	}
	out, ok := readObject(a.body)
	if !ok {
		return answer{}, errUnreadable
	}
	if !a.ok() {
		err := w.hide(c.at, out)
		return a.with(out.bytes()), err
	}
	if w.update {
		return a, nil // it started from a live item
	}
	old, err := out.part("Attributes")
	if err != nil || old == nil || !c.at.expired(old[w.attribute]) {
		return a, err
	}
	delete(out, "Attributes")
	return a.with(out.bytes()), nil
}

// updateItem answers UpdateItem. If the update meets an expired item, it removes that first.
func (c *call) updateItem(ctx context.Context, attribute string) (answer, error) {
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
		if err != nil {
			return a, err
		}
		if a.code() != dynamo.CodeConditionalCheckFailed || !w.removes() {
			return c.showWrite(w, a)
		}
		out, _ := readObject(a.body)
		item, err := out.part("Item")
		if err != nil {
			return a, err
		}
		again, err := c.clear(ctx, w, item, a.header.Get(headerDate))
		switch {
		case err != nil:
			return a, err
		case !again:
			return c.showWrite(w, a)
		}
	}
	return answer{}, busy()
}

// clear removes the item that made a condition fail, if it has expired. It reports whether to
// repeat the write, because the item was removed, has changed, is gone already, or is not yet due.
// item is the endpoint's copy, nil if it returned none; date is the Date of that answer.
func (c *call) clear(ctx context.Context, w *write, item object, date string) (again bool, err error) {
	table, key := w.members.text("TableName"), w.members["Key"]
	if item == nil { // gone, or not returned by the endpoint
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

// busy returns the error for a write that concurrent writes have interrupted too often.
func busy() error {
	return &dynamo.Error{Code: dynamo.CodeTransactionConflict, Message: "strict reads: concurrent writes changed the item " + strconv.Itoa(attemptsMax) + " times; try again"}
}
