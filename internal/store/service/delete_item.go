package service

import "context"

// DeleteItem deletes an item. It succeeds if there is none.
//
// The order of checks: the shape, with TableName; mixed parameters and placeholders; the key's values;
// ReturnValues; the condition; unused placeholders; the table; the key; the condition on the stored
// item.
func (s *Service) DeleteItem(ctx context.Context, in *WriteInput) (*WriteOutput, error) {
	ref, err := deleteItemShape(in)
	if err != nil {
		return nil, err
	}
	a, err := newAction(actionDelete, in, wordBare)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}

// deleteItemShape names a bad TableName together with the other faults, unlike PutItem and UpdateItem.
func deleteItemShape(in *WriteInput) (tableRef, error) {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	ref := s.dataTable("tableName", in.TableName)
	s.enum("returnValues", in.ReturnValues, enumReturnValues)
	s.enum("returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionFail, enumReturnOnFail)
	s.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection)
	s.Required("key", in.Item.present())
	s.expected(&in.Legacy)
	if err := s.err(); err != nil {
		return ref, err
	}
	return ref.resolve()
}
