package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// TransactWriteItems executes up to 100 actions, all of them or none. If its token was used for the
// same actions in the last ten minutes, it executes nothing and succeeds.
//
// The order of checks: the shape; for each action that it is the only one in its entry, the checks of
// the single operation that need no table, and the table's name; the size of all; the existence of
// the tables; keys and paths that do not fit: the first one cancels the transaction; repeated
// items; the token; conditions and updates of the stored items. After the first validation error
// there, the following actions are not examined.
func (s *Service) TransactWriteItems(ctx context.Context, in *TransactWriteItemsInput) (*TransactWriteItemsOutput, error) {
	if err := transactWriteShape(in); err != nil {
		return nil, err
	}
	actions, err := newTransactWrites(in.Items)
	if err != nil {
		return nil, err
	}
	mode := capacityMode(in.ReturnConsumedCapacity.V)
	if err := s.bindTransaction(actions, mode); err != nil {
		return nil, err
	}
	again, err := s.transact(ctx, actions, in.ClientRequestToken, in.Digest)
	switch {
	case err != nil:
		return nil, err
	case again:
		return s.transactAgain(actions, mode), nil
	}
	return transactOutput(actions, in, mode), nil
}

// transact executes bound actions, all or none. again reports that the token shows the transaction to
// be done already: then it executes nothing. The error is the API's.
func (s *Service) transact(ctx context.Context, actions []*action, clientToken Opt[string], digest [32]byte) (again bool, err error) {
	writes := writesOf(actions)
	var token *tokenWrite
	if clientToken.Set {
		if token, err = s.newTokenWrite(ctx, clientToken.V, digest); err != nil {
			return false, err
		}
		writes = append(writes, &token.write)
	}
	err = s.engine.Write(ctx, writes...)
	if errors.Is(err, engine.ErrRefused) && token != nil && errors.Is(token.write.Err, errTokenSeen) {
		return true, nil
	}
	if err != nil {
		if errors.Is(err, engine.ErrRefused) {
			countRefused(actions, transactional)
		}
		return false, transactError(err, actions, token)
	}
	s.noteMistakes(actions...)
	return false, nil
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

// transactAgain returns the answer for a transaction that its token shows to be done already. Each
// action costs a transactional read, by the size of the item or key in the request, not by the size
// of the stored item.
func (s *Service) transactAgain(actions []*action, mode capacityMode) *TransactWriteItemsOutput {
	used := meters{mode: mode, transaction: meterReads}
	for _, a := range actions {
		units := readUnits(a.item.Size(), readTransactional)
		a.desc.Units.AddRead(units)
		used.table(a.ref.given).read(units)
	}
	return &TransactWriteItemsOutput{Capacity: used.results()}
}

// transactError returns the API's error for a batch that was not applied. The token's refusal
// precedes the reasons of the actions.
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
	firstInvalid(errs)
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
	for _, m := range a.members() {
		if m.in == nil {
			continue
		}
		path := path + "." + m.name + "."
		s.dataTable(path+"tableName", m.in.TableName)
		s.Required(path+m.item, m.in.Item.present())
		switch m.kind {
		case actionCheck:
			s.Required(path+"conditionExpression", m.in.Condition.Set)
		case actionUpdate:
			s.Required(path+"updateExpression", m.in.Update.Set)
		}
		s.enum(path+"returnValuesOnConditionCheckFailure", m.in.ReturnValuesOnConditionFail, enumReturnOnFail)
	}
}

// transactMember is a member of an entry: its name, the name of its item or key, and the action.
type transactMember struct {
	name, item string
	kind       actionKind
	in         *WriteInput // nil: absent
}

func (a *TransactAction) members() [4]transactMember {
	return [...]transactMember{
		{"conditionCheck", "key", actionCheck, a.Check},
		{"put", "item", actionPut, a.Put},
		{"update", "key", actionUpdate, a.Update},
		{"delete", "key", actionDelete, a.Delete},
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
	var only transactMember
	given := 0
	for _, m := range entry.members() {
		if m.in != nil {
			only = m
			given++
		}
	}
	if given != 1 {
		return nil, table, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	a, err = newAction(only.kind, only.in, wordBare)
	return a, only.in.TableName, err
}

// bindTransaction checks the actions against the tables' schemas.
func (s *Service) bindTransaction(actions []*action, mode capacityMode) error {
	bind := func(i int) error {
		actions[i].returnOld = mode.asked()
		if err := actions[i].bind(s); err != nil {
			return err
		}
		return s.admitWrite(actions[i])
	}
	return bindAll(len(actions), bind, func(i, j int) bool { return actions[i].sameItem(actions[j]) }, firstInvalid)
}

// tokenError refuses a ClientRequestToken that was used with other content before.
func tokenError() error {
	return &dynamo.Error{Code: dynamo.CodeIdempotentMismatch, Message: "Idempotent parameter mismatch: the ClientRequestToken was used with other parameters before"}
}
