package service

import "context"

// DeleteItem deletes an item. It succeeds if there is none.
func (s *Service) DeleteItem(ctx context.Context, in *DeleteItemInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := deleteItemShape(in); err != nil {
		return nil, err
	}
	a, err := newDelete(in)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}

func deleteItemShape(in *DeleteItemInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.required("key", in.Key.present())
	s.expected(&in.Legacy)
	s.enum("returnValues", in.ReturnValues, enumReturnValues)
	s.enum("returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionFail, enumReturnOnFail)
	s.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection)
	return s.err()
}

// newDelete makes the remaining checks that need no table, compiles the condition and returns the
// action.
func newDelete(in *DeleteItemInput) (*action, error) {
	sess, err := conditionSession(in.Names, in.Values, in.Condition, &in.Legacy)
	if err != nil {
		return nil, err
	}
	if in.Key.Err != nil {
		return nil, in.Key.Err
	}
	if err := oldOrNone(in.ReturnValues); err != nil {
		return nil, err
	}
	a := &action{kind: actionDelete, item: in.Key.Item}
	a.returnOnFail = in.ReturnValuesOnConditionFail.V == returnAllOld
	a.condition, err = writeCondition(sess, in.Condition, &in.Legacy)
	if err == nil {
		err = unused(sess)
	}
	return a, err
}
