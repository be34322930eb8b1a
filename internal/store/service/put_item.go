package service

import "context"

// PutItem creates an item or replaces a whole one.
func (s *Service) PutItem(ctx context.Context, in *WriteInput) (*WriteOutput, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := writeShape(in, "item"); err != nil {
		return nil, err
	}
	a, err := newAction(actionPut, in, wordEnveloped)
	if err != nil {
		return nil, err
	}
	a.ref = ref
	return s.writeOne(ctx, a, in.ReturnValues.V, in.ReturnConsumedCapacity.V, in.ReturnItemCollectionMetrics.V)
}
