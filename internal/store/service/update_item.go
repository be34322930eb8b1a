package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/expr"
)

// UpdateItem changes attributes of an item, and creates the item if there is none.
func (s *Service) UpdateItem(ctx context.Context, in *UpdateItemInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := updateItemShape(in); err != nil {
		return nil, err
	}
	a, err := newUpdate(in, wordEnveloped)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}

// updateItemShape names only the first bad enumeration, unlike the other writes, and ReturnValues
// before all.
func updateItemShape(in *UpdateItemInput) error {
	var s shape
	s.required("key", in.Key.present())
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

// newUpdate makes the remaining checks that need no table, compiles the expressions and returns the
// action.
func newUpdate(in *UpdateItemInput, w wording) (*action, error) {
	sess, err := updateSession(in)
	if err != nil {
		return nil, w.request(err)
	}
	if in.Key.Err != nil {
		return nil, w.value(in.Key.Err)
	}
	a := &action{kind: actionUpdate, item: in.Key.Item, legacy: !in.Update.Set}
	a.returnOnFail = in.ReturnValuesOnConditionFail.V == returnAllOld
	if a.update, err = compileUpdate(sess, in.Update, &in.Legacy); err != nil {
		return nil, w.request(err)
	}
	if a.condition, err = writeCondition(sess, in.Condition, &in.Legacy); err != nil {
		return nil, w.request(err)
	}
	return a, w.request(unused(sess))
}

// compileUpdate returns the compiled update, from UpdateExpression or AttributeUpdates. A request
// without either leaves the item unchanged, or creates one that has only its key.
func compileUpdate(sess *expr.Session, text Opt[string], legacy *Legacy) (*expr.Update, error) {
	if text.Set {
		return sess.Update(text.V)
	}
	return legacyUpdate(legacy)
}

func updateSession(in *UpdateItemInput) (*expr.Session, error) {
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
