package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DeleteTable deletes a table and its contents at once. Its stream stays readable for the retention
// time. A table with point-in-time recovery leaves a SYSTEM backup. The answer does not count the
// items.
func (s *Service) DeleteTable(ctx context.Context, in *TableNameInput) (*TableDescription, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if gone := s.passing.of(ref.name).gone; gone != nil {
		return gone, nil
	}
	if err := s.passing.checkSettled(ref.name); err != nil {
		return nil, err
	}
	d, err := s.engine.DropTable(ctx, namespace, ref.name, mayDrop)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	s.off(ref.name)
	out := s.describe(d, engine.TableStats{})
	out.Status = statusDeleting
	s.passing.removed(out)
	return out, nil
}

// mayDrop refuses to delete a table that is protected or has an index under construction.
func mayDrop(d *engine.TableDesc) error {
	for i := range d.Indexes {
		if d.Indexes[i].Building {
			return &dynamo.Error{
				Code:    dynamo.CodeResourceInUse,
				Message: "Attempt to change a resource which is still in use: Cannot delete table while indexes are being created, updated, or deleted.",
			}
		}
	}
	if d.API.DeletionProtection {
		return invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	return nil
}
