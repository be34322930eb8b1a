package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/expr"
)

// TransactWriteItems executes up to 100 actions, all of them or none.
func (s *Service) TransactWriteItems(ctx context.Context, in *TransactWriteItemsInput) (*TransactWriteItemsOutput, error) {
	if err := transactWriteShape(in); err != nil {
		return nil, err
	}
	actions, err := newTransactWrites(in.Items)
	if err != nil {
		return nil, err
	}
	mode := capacityModeOf(in.ReturnConsumedCapacity.V)
	if err := s.bindTransaction(actions, mode); err != nil {
		return nil, err
	}
	writes := writesOf(actions)
	var token *tokenWrite
	if in.ClientRequestToken.Set {
		if token, err = s.newTokenWrite(ctx, in.ClientRequestToken.V, in.Digest); err != nil {
			return nil, err
		}
		writes = append(writes, &token.write)
	}
	err = s.engine.Write(ctx, writes...)
	if err != nil && token != nil && errors.Is(token.write.Err, errTokenSeen) {
		return s.transactAgain(actions, mode), nil
	}
	if err != nil {
		if errors.Is(err, engine.ErrRefused) {
			countRefused(actions, transactional)
		}
		return nil, transactError(err, actions, token)
	}
	return transactOutput(actions, in, mode), nil
}

func transactOutput(actions []*action, in *TransactWriteItemsInput, mode capacityMode) *TransactWriteItemsOutput {
	out := &TransactWriteItemsOutput{
		Capacity: writesCapacity(actions, meters{mode: mode, transaction: meterWrites}, transactional),
	}
	if in.ReturnItemCollectionMetrics.V == collectionSize {
		out.Collections = collectionsOf(actions)
	}
	return out
}

// transactAgain returns the answer for a transaction that its token shows to be done already. It
// costs a read of the items.
func (s *Service) transactAgain(actions []*action, mode capacityMode) *TransactWriteItemsOutput {
	used := meters{mode: mode, transaction: meterReads}
	for _, a := range actions {
		units := readUnits(a.item.Size(), readTransactional)
		a.desc.Units.AddRead(units)
		used.table(a.ref.given).read(units)
	}
	return &TransactWriteItemsOutput{Capacity: used.results()}
}

// transactError returns the API's error for a batch that was not applied.
func transactError(err error, actions []*action, token *tokenWrite) error {
	if !errors.Is(err, engine.ErrRefused) {
		return apiError(err, "")
	}
	if token != nil && token.write.Err != nil {
		return token.write.Err
	}
	errs := make([]error, len(actions))
	for i, a := range actions {
		errs[i] = apiError(a.write.Err, "")
	}
	return cancelled(errs)
}

func transactWriteShape(in *TransactWriteItemsInput) error {
	var s shape
	s.transactItems(len(in.Items), in.Items != nil)
	for i := range in.Items {
		s.transactAction(member("transactItems", i), &in.Items[i])
	}
	s.length("clientRequestToken", in.ClientRequestToken, 1, tokenLengthMax)
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection)
	return s.err()
}

// transactAction checks the shape of one entry. The number of its actions is checked later.
func (s *shape) transactAction(path string, a *TransactAction) {
	onFail := "returnValuesOnConditionCheckFailure"
	if c := a.Check; c != nil {
		path := path + ".conditionCheck."
		s.dataTable(path+"tableName", c.TableName)
		s.required(path+"key", c.Key.present())
		s.required(path+"conditionExpression", c.Condition.Set)
		s.enum(path+onFail, c.ReturnValuesOnConditionFail, enumReturnOnFail)
	}
	if p := a.Put; p != nil {
		path := path + ".put."
		s.dataTable(path+"tableName", p.TableName)
		s.required(path+"item", p.Item.present())
		s.enum(path+onFail, p.ReturnValuesOnConditionFail, enumReturnOnFail)
	}
	if u := a.Update; u != nil {
		path := path + ".update."
		s.dataTable(path+"tableName", u.TableName)
		s.required(path+"key", u.Key.present())
		s.required(path+"updateExpression", u.Update.Set)
		s.enum(path+onFail, u.ReturnValuesOnConditionFail, enumReturnOnFail)
	}
	if d := a.Delete; d != nil {
		path := path + ".delete."
		s.dataTable(path+"tableName", d.TableName)
		s.required(path+"key", d.Key.present())
		s.enum(path+onFail, d.ReturnValuesOnConditionFail, enumReturnOnFail)
	}
}

// newTransactWrites returns the actions of a request after the checks that need no table.
func newTransactWrites(entries []TransactAction) ([]*action, error) {
	actions := make([]*action, len(entries))
	size := 0
	for i := range entries {
		a, table, err := newTransactWrite(&entries[i])
		if err != nil {
			return nil, err
		}
		if a.ref, err = (tableRef{name: table.V, given: table.V}).resolve(); err != nil {
			return nil, err
		}
		size += a.item.Size()
		actions[i] = a
	}
	if size > transactBytesMax {
		return nil, invalid(msgTransactBytes)
	}
	return actions, nil
}

// newTransactWrite returns the action of one entry and its TableName.
func newTransactWrite(entry *TransactAction) (a *action, table Opt[string], err error) {
	given := 0
	for _, present := range [...]bool{entry.Check != nil, entry.Put != nil, entry.Update != nil, entry.Delete != nil} {
		if present {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, table, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	case entry.Put != nil:
		a, err = newPut(entry.Put, wordBare)
		return a, entry.Put.TableName, err
	case entry.Update != nil:
		a, err = newUpdate(entry.Update, wordBare)
		return a, entry.Update.TableName, err
	case entry.Delete != nil:
		a, err = newDelete(entry.Delete)
		return a, entry.Delete.TableName, err
	default:
		a, err = newCheck(entry.Check)
		return a, entry.Check.TableName, err
	}
}

func newCheck(in *ConditionCheck) (*action, error) {
	sess, err := conditionSession(in.Names, in.Values, in.Condition, &Legacy{})
	if err != nil {
		return nil, err
	}
	if in.Key.Err != nil {
		return nil, in.Key.Err
	}
	a := &action{kind: actionCheck, item: in.Key.Item}
	a.returnOnFail = in.ReturnValuesOnConditionFail.V == returnAllOld
	if a.condition, err = sess.Condition(expr.ConditionExpression, in.Condition.V); err != nil {
		return nil, err
	}
	return a, sess.Unused()
}

// bindTransaction binds the actions and refuses two actions on one item.
func (s *Service) bindTransaction(actions []*action, mode capacityMode) error {
	errs := make([]error, len(actions))
	for i, a := range actions {
		a.returnOld = mode != capacityNone
		err := a.bind(s.engine)
		if err != nil && !cancels(err) {
			return apiError(err, "")
		}
		errs[i] = apiError(err, "")
	}
	if someError(errs) {
		return cancelled(errs)
	}
	for i, a := range actions {
		for _, b := range actions[:i] {
			if a.sameItem(b) {
				return invalid(msgSameItem)
			}
		}
	}
	return nil
}

// tokenError refuses a ClientRequestToken that was used with other content before.
func tokenError() error {
	return &dynamo.Error{Code: dynamo.CodeIdempotentMismatch, Message: "Idempotent parameter mismatch: the ClientRequestToken was used with other parameters before"}
}
