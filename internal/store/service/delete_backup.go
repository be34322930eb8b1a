package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DeleteBackup deletes a backup, and describes what it was. A backup from which a table is being
// restored stays.
//
// The order of checks: the shape; the ARN's form; the backup's existence; restores from it.
func (s *Service) DeleteBackup(ctx context.Context, in *BackupInput) (*BackupDescription, error) {
	if err := backupShape(in); err != nil {
		return nil, err
	}
	id, err := backupID(in.ARN.V)
	if err != nil {
		return nil, err
	}
	b, err := s.engine.DeleteBackup(ctx, id, func(b *engine.BackupDesc) error {
		if !isBackupOf(b, in.ARN.V) {
			return engine.ErrBackupNotFound
		}
		return nil
	})
	if err != nil {
		return nil, backupError(err, "", in.ARN.V)
	}
	out := s.describeBackup(b)
	out.Status = backupDeleted
	return out, nil
}
