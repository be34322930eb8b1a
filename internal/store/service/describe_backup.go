package service

import (
	"context"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DescribeBackup returns a backup and what its table was.
//
// The order of checks: the shape; the ARN's form; the backup's existence.
func (s *Service) DescribeBackup(_ context.Context, in *BackupInput) (*BackupDescription, error) {
	if err := backupShape(in); err != nil {
		return nil, err
	}
	b, err := s.backupByARN(in.ARN.V)
	if err != nil {
		return nil, err
	}
	return s.describeBackup(b), nil
}

func backupShape(in *BackupInput) error {
	var sh shape
	sh.backupARN(in.ARN)
	return sh.err()
}

func (s *Service) describeBackup(b *engine.BackupDesc) *BackupDescription {
	return &BackupDescription{
		BackupDetails: *s.backupDetails(b),
		Source:        *s.describe(&b.Table, engine.TableStats{Items: b.Items, Bytes: b.Bytes}),
		TTLStatus:     ttlStatus(&b.Table.TTL),
		TTLAttribute:  b.Table.TTL.Attribute,
	}
}

// backupID returns the id in a backup's ARN. An ARN of anything else has an id that no backup has.
func backupID(arn string) (string, error) {
	resource, err := arnResource(arn)
	if err != nil {
		return "", err
	}
	parts := strings.Split(resource, "/")
	if len(parts) != 4 {
		return "", nil
	}
	return parts[3], nil
}

// isBackupOf reports whether an ARN names the backup and its table, and nothing else: policies match
// its whole resource.
func isBackupOf(b *engine.BackupDesc, arn string) bool {
	resource, err := arnResource(arn)
	return err == nil && resource == "table/"+b.Table.Name+backupPath+b.ID
}
