package service

import "context"

// PutItem creates an item or replaces a whole one.
//
// The order of checks: TableName, alone; the shape; mixed parameters and placeholders; the item's
// values, then its size; ReturnValues; the condition; unused placeholders; the table; its key and the
// keys of indexes; the condition on the stored item.
func (s *Service) PutItem(ctx context.Context, in *WriteInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := putItemShape(in); err != nil {
		return nil, err
	}
	a, err := newAction(actionPut, in, wordEnveloped)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}

func putItemShape(in *WriteInput) error {
	var s shape
	s.enum("returnConsumedCapacity", in.ReturnConsumedCapacity, enumCapacity)
	s.Required("item", in.Item.present())
	s.expected(&in.Legacy)
	s.enum("returnValues", in.ReturnValues, enumReturnValues)
	s.enum("returnValuesOnConditionCheckFailure", in.ReturnValuesOnConditionFail, enumReturnOnFail)
	s.enum("returnItemCollectionMetrics", in.ReturnItemCollectionMetrics, enumCollection)
	return s.err()
}
