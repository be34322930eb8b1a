package strict

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// sentTransaction is a transaction of writes with guarded tables, which is sent until the endpoint
// answers to the caller's request.
type sentTransaction struct {
	*call
	member string // the list of actions in the request
	// actions returns the actions with conditions for an instant
	actions func(moment) ([]object, error)
}

// transaction is a TransactWriteItems with guarded tables.
type transaction struct {
	sentTransaction
	actions []object // unchanged
	kinds   []string // the name of each action's only member, "Put"
	writes  []*write // the writes of guarded tables; nil for others
}

// transactWriteItems answers TransactWriteItems.
func (c *call) transactWriteItems(ctx context.Context) (answer, error) {
	t := &transaction{sentTransaction: sentTransaction{call: c, member: "TransactItems"}}
	t.sentTransaction.actions = t.at
	guarded, err := t.read(ctx)
	if err != nil {
		return answer{}, err
	}
	if !guarded {
		return c.send(ctx, c.operation, c.in.bytes())
	}
	for range attemptsMax {
		a, out, reasons, err := t.execute(ctx, len(t.actions))
		if err != nil || reasons == nil {
			return a, err
		}
		again, err := t.clearAll(ctx, reasons, a.header.Get(headerDate))
		if err != nil {
			return answer{}, err
		}
		if !again {
			return t.show(a, out, reasons)
		}
	}
	return answer{}, busy()
}

// read reads the actions, and reports whether any is on a guarded table.
func (t *transaction) read(ctx context.Context) (guarded bool, err error) {
	var ok bool
	if t.actions, ok = readList(t.in["TransactItems"]); !ok {
		return false, nil // the endpoint refuses it
	}
	t.kinds, t.writes = make([]string, len(t.actions)), make([]*write, len(t.actions))
	for i, action := range t.actions {
		for _, kind := range []string{"ConditionCheck", "Put", "Update", "Delete"} {
			if !action.has(kind) {
				continue
			}
			if t.kinds[i] != "" {
				return false, dynamo.Invalid("TransactItems can only contain one of Check, Put, Update or Delete")
			}
			t.kinds[i] = kind
		}
		if t.kinds[i] == "" {
			continue
		}
		in, ok := action.member(t.kinds[i])
		if !ok {
			return false, wrongType("TransactItems")
		}
		attribute, err := t.attributeOf(ctx, in.text("TableName"))
		if err != nil {
			return false, err
		}
		if attribute == "" {
			continue
		}
		guarded = true
		if t.writes[i], err = readWrite(in, attribute, t.kinds[i] == "Update"); err != nil {
			return false, err
		}
	}
	return guarded, nil
}

// at returns the actions with conditions for an instant.
func (t *transaction) at(m moment) ([]object, error) {
	sent := make([]object, len(t.actions))
	for i, action := range t.actions {
		sent[i] = action
		if w := t.writes[i]; w != nil {
			raw, err := w.at(m)
			if err != nil {
				return nil, err
			}
			sent[i] = action.with(t.kinds[i], raw)
		}
	}
	return sent, nil
}

// execute sends the transaction of n actions once, or again under its token. It returns the answer, and
// the reasons if it is a cancellation.
func (t *sentTransaction) execute(ctx context.Context, n int) (a answer, out object, reasons []object, err error) {
	if a, err = t.attempt(ctx, t.call.at); err != nil {
		return a, nil, nil, err
	}
	if a.code() == dynamo.CodeIdempotentMismatch {
		if a, err = t.repeat(ctx, a); err != nil {
			return a, nil, nil, err
		}
	}
	if a.code() != dynamo.CodeTransactionCanceled {
		return a, nil, nil, nil
	}
	out, ok := readObject(a.body)
	if ok {
		reasons, ok = readList(out["CancellationReasons"])
	}
	if !ok || len(reasons) != n {
		return answer{}, nil, nil, errUnreadable
	}
	return a, out, reasons, nil
}

// attempt sends the transaction with conditions for an instant.
func (t *sentTransaction) attempt(ctx context.Context, m moment) (answer, error) {
	sent, err := t.actions(m)
	if err != nil {
		return answer{}, err
	}
	token, digest := t.in.text("ClientRequestToken"), digestOf(t.in[t.member])
	t.tokens.note(token, digest, m)
	a, err := t.send(ctx, t.operation, t.in.with(t.member, listBytes(sent)).bytes())
	if err == nil && !a.ok() && a.status < 500 {
		t.tokens.drop(token, digest, m) // it was not executed
	}
	return a, err
}

// repeat sends a transaction with the instants of its earlier attempts under the same token, the
// latest first, until the endpoint accepts one. The endpoint has refused it with conditions of a
// later instant, and a repeated request must get the first answer. If the endpoint accepts none,
// repeat returns mismatch.
func (t *sentTransaction) repeat(ctx context.Context, mismatch answer) (answer, error) {
	for _, m := range t.tokens.find(t.in.text("ClientRequestToken"), digestOf(t.in[t.member])) {
		a, err := t.attempt(ctx, m)
		if err != nil || a.code() != dynamo.CodeIdempotentMismatch {
			return a, err
		}
	}
	return mismatch, nil
}

const reasonCondition = "ConditionalCheckFailed"

// clearAll removes the expired items that made updates fail, and reports whether to repeat the
// transaction (see clear).
func (t *transaction) clearAll(ctx context.Context, reasons []object, date string) (again bool, err error) {
	for i, w := range t.writes {
		if w == nil || !w.removes() || reasons[i].text("Code") != reasonCondition {
			continue
		}
		item, err := reasons[i].part("Item")
		if err != nil {
			return false, err
		}
		cleared, err := t.clear(ctx, w, item, date)
		if err != nil {
			return false, err
		}
		again = again || cleared
	}
	return again, nil
}

// show changes a cancelled transaction's answer into the caller's.
func (t *transaction) show(a answer, out object, reasons []object) (answer, error) {
	for i, w := range t.writes {
		if w == nil {
			continue
		}
		if err := w.hide(t.call.at, reasons[i]); err != nil {
			return answer{}, err
		}
	}
	out["CancellationReasons"] = listBytes(reasons)
	return a.with(out.bytes()), nil
}
