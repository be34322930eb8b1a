package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/expr"
)

// UpdateItem changes attributes of an item, and creates the item if there is none.
//
// The order of checks: TableName, alone; the shape, with one bad enumeration at most; mixed
// parameters and placeholders; the key's values; the update, then the condition; unused placeholders;
// the table; the key; paths into keys; the condition on the stored item; the operands there; the new
// item's size, depth and keys of indexes.
func (s *Service) UpdateItem(ctx context.Context, in *WriteInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := updateItemShape(in); err != nil {
		return nil, err
	}
	a, err := newAction(actionUpdate, in, wordEnveloped)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}

// updateItemShape names only the first bad enumeration, unlike the other writes, and ReturnValues
// before all.
func updateItemShape(in *WriteInput) error {
	var s shape
	s.Required("key", in.Item.present())
	s.expected(&in.Legacy)
	s.attributeUpdates(&in.Legacy)
	enums := [...]struct {
		path string
		v    Opt[string]
		set  []string
	}{
		{"returnValues", in.ReturnValues, enumReturnValues},
		{"returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity},
		{"returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionFail, enumReturnOnFail},
		{"returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection},
	}
	for _, e := range enums {
		if !s.enum(e.path, e.v, e.set) {
			break
		}
	}
	return s.err()
}

// compileUpdate returns the compiled update, from UpdateExpression or AttributeUpdates. A request
// without either leaves the item unchanged, or creates one that has only its key.
func compileUpdate(sess *expr.Session, text Opt[string], legacy *Legacy) (*expr.Update, error) {
	if text.Set {
		return sess.Update(text.V)
	}
	return legacyUpdate(legacy)
}

func updateSession(in *WriteInput) (*expr.Session, error) {
	if !in.Update.Set && !in.Condition.Set && in.Names == nil && !in.Values.present() {
		return nil, nil
	}
	p := parameters{
		names: in.Names, values: in.Values,
		legacy: []parameter{
			{"AttributeUpdates", in.Legacy.AttributeUpdates != nil}, {"Expected", in.Legacy.Expected != nil},
		},
		expressions: []parameter{
			{expr.UpdateExpression, in.Update.Set}, {expr.ConditionExpression, in.Condition.Set},
		},
		valued: []string{expr.UpdateExpression, expr.ConditionExpression},
	}
	return p.session()
}
