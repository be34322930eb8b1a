package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/engine"
)

// DeleteTable removes a table with everything in it, at once; only its stream stays readable for the retention. The answer
// does not count what was in it.
func (s *Service) DeleteTable(ctx context.Context, in *TableNameInput) (*TableDescription, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	t, err := s.engine.Table(namespace, ref.name)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	if t.Desc().API.DeletionProtection {
		return nil, invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	d, err := s.engine.DropTable(ctx, namespace, ref.name)
	if err != nil {
		return nil, apiError(err, ref.name)
	}
	out := s.describe(d, engine.TableStats{})
	out.Status = statusDeleting
	return out, nil
}
