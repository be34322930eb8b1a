package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/expr"
)

// PutItem creates an item or replaces a whole one.
func (s *Service) PutItem(ctx context.Context, in *PutItemInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := putItemShape(in); err != nil {
		return nil, err
	}
	a, err := newPut(in, wordEnveloped)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}

func putItemShape(in *PutItemInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.required("item", in.Item.present())
	s.expected(&in.Legacy)
	s.enum("returnValues", in.ReturnValues, enumReturnValues)
	s.enum("returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionFail, enumReturnOnFail)
	s.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection)
	return s.err()
}

func (a ItemArg) present() bool { return a.Item != nil || a.Err != nil }

// newPut makes the remaining checks that need no table, compiles the condition and returns the
// action.
func newPut(in *PutItemInput, w wording) (*action, error) {
	sess, err := conditionSession(in.Names, in.Values, in.Condition, &in.Legacy)
	if err != nil {
		return nil, w.request(err)
	}
	if in.Item.Err != nil {
		return nil, w.value(in.Item.Err)
	}
	if itemTooLarge(in.Item.Item) {
		return nil, invalid(msgItemTooLarge)
	}
	if err := oldOrNone(in.ReturnValues); err != nil {
		return nil, w.request(err)
	}
	a := &action{kind: actionPut, item: in.Item.Item}
	a.returnOnFail = in.ReturnValuesOnConditionFail.V == returnAllOld
	a.condition, err = writeCondition(sess, in.Condition, &in.Legacy)
	if err == nil {
		err = unused(sess)
	}
	return a, w.request(err)
}

// oldOrNone checks the ReturnValues of an operation that cannot return a new item.
func oldOrNone(v Opt[string]) error {
	if v.Set && v.V != returnAllOld && v.V != returnNone {
		return invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return nil
}

// writeCondition returns the compiled condition of a write, from ConditionExpression or Expected.
func writeCondition(sess *expr.Session, text Opt[string], legacy *Legacy) (*expr.Condition, error) {
	if text.Set {
		return sess.Condition(expr.ConditionExpression, text.V)
	}
	return legacyExpected(legacy)
}
