package strict

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

const memberTransact = "TransactStatements"

// statementTransaction is an ExecuteTransaction with guarded tables.
type statementTransaction struct {
	sentTransaction
	list       []object     // of the request
	statements []*statement // nil: passed unchanged
}

// executeTransaction answers ExecuteTransaction.
func (c *call) executeTransaction(ctx context.Context) (answer, error) {
	t := &statementTransaction{sentTransaction: sentTransaction{call: c, member: memberTransact}}
	t.actions = t.at
	var ok bool
	if t.list, ok = readList(c.in[memberTransact]); !ok {
		return c.send(ctx, c.operation, c.in.bytes())
	}
	t.statements = make([]*statement, len(t.list))
	for i, in := range t.list {
		var err error
		if t.statements[i], err = c.readStatement(ctx, in, "transactStatements."+strconv.Itoa(i+1)+".member."); err != nil {
			return answer{}, inTransaction(i, err)
		}
	}
	for range attemptsMax {
		a, out, reasons, err := t.execute(ctx, len(t.list))
		switch {
		case err != nil:
			return a, err
		case reasons == nil:
			return t.showReads(a)
		}
		again, err := t.clearAll(ctx, reasons, a.header.Get(headerDate))
		if err != nil {
			return answer{}, err
		}
		if !again {
			return t.showReasons(a, out, reasons)
		}
	}
	return answer{}, busy()
}

// inTransaction returns the error for a statement that cannot be read, with its number.
func inTransaction(i int, err error) error {
	var wrong *dynamo.Error
	if !errors.As(err, &wrong) || wrong.Code != dynamo.CodeValidation {
		return err
	}
	return dynamo.Invalid("Validation failed in TransactStatements[" + strconv.Itoa(i) + "]: " + wrong.Message)
}

// at returns the statements with conditions for an instant.
func (t *statementTransaction) at(m moment) ([]object, error) {
	sent := slices.Clone(t.list)
	for i, s := range t.statements {
		if s != nil {
			sent[i] = s.at(m)
		}
	}
	return sent, nil
}

// showReads changes the answer to a transaction of reads into the caller's. Others have no items.
func (t *statementTransaction) showReads(a answer) (answer, error) {
	if !a.ok() || !slices.ContainsFunc(t.statements, (*statement).readsOnly) {
		return a, nil
	}
	out, ok := readObject(a.body)
	if !ok {
		return answer{}, errUnreadable
	}
	responses, err := partList(out[memberResponses])
	if err != nil || len(responses) != len(t.statements) {
		return answer{}, errUnreadable
	}
	for i, s := range t.statements {
		if s != nil {
			if err := s.showItem(t.call.at, responses[i]); err != nil {
				return answer{}, err
			}
		}
	}
	out[memberResponses] = listBytes(responses)
	return a.with(out.bytes()), nil
}

// clearAll removes the expired items that made statements fail, and reports whether to repeat the
// transaction (see clear).
func (t *statementTransaction) clearAll(ctx context.Context, reasons []object, date string) (again bool, err error) {
	for i, s := range t.statements {
		if s == nil || !s.repeats(reasons[i].text("Code")) {
			continue
		}
		item, err := reasons[i].part("Item")
		if err != nil {
			return false, err
		}
		if s.Verb == partiql.Exists && !t.call.at.expired(item[s.attribute]) {
			continue // it failed for a live item, or for none
		}
		cleared, err := t.clearFor(ctx, s, item, date)
		if err != nil {
			return false, err
		}
		again = again || cleared
	}
	return again, nil
}

// showReasons changes a cancelled transaction's answer into the caller's.
func (t *statementTransaction) showReasons(a answer, out object, reasons []object) (answer, error) {
	for i, s := range t.statements {
		if s == nil {
			continue
		}
		if s.in.text(memberOnFailure) != allOld {
			delete(reasons[i], "Item")
		}
		if err := s.showItem(t.call.at, reasons[i]); err != nil {
			return answer{}, err
		}
	}
	out["CancellationReasons"] = listBytes(reasons)
	return a.with(out.bytes()), nil
}
