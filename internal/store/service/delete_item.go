package service

import "context"

// DeleteItem deletes an item. It succeeds if there is none.
func (s *Service) DeleteItem(ctx context.Context, in *WriteInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := writeShape(in, "key"); err != nil {
		return nil, err
	}
	a, err := newAction(actionDelete, in, wordBare)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}
