package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The states of a backup. A change is complete when it is answered, so CREATING and DELETED occur
// only in the answers to CreateBackup and DeleteBackup.
const (
	backupCreating  = "CREATING"
	backupAvailable = "AVAILABLE"
	backupDeleted   = "DELETED"
)

const backupARNLengthMin = 37

// CreateBackup makes a backup of a table. When it returns, the backup can be restored.
//
// The order of checks: the shape, with the table's name; the form of an ARN; the table's existence and
// state; the number of backups.
func (s *Service) CreateBackup(ctx context.Context, in *CreateBackupInput) (*BackupDetails, error) {
	var sh shape
	sh.backupName(in.BackupName)
	ref := sh.dataTable("tableName", in.TableName)
	if err := sh.err(); err != nil {
		return nil, err
	}
	ref, err := ref.resolve()
	if err != nil {
		return nil, err
	}
	b, err := s.engine.CreateBackup(ctx, namespace, ref.name, in.BackupName.V)
	if err != nil {
		return nil, backupError(err, ref.name, "")
	}
	out := s.backupDetails(b)
	out.Status = backupCreating
	return out, nil
}

// backupName checks the name of a backup.
func (s *shape) backupName(v Opt[string]) {
	if !v.Set {
		s.Null("backupName")
		return
	}
	s.name("backupName", v)
}

// backupARN checks the ARN of a backup.
func (s *shape) backupARN(v Opt[string]) {
	s.Required("backupArn", v.Set)
	s.length("backupArn", v, backupARNLengthMin, arnLengthMax)
}

// backupError is apiError for the operations on backups, which have errors of their own.
func backupError(err error, table, arn string) error {
	switch {
	case errors.Is(err, engine.ErrTableCreating):
		return &dynamo.Error{Code: dynamo.CodeTableInUse, Message: "Table is being created: " + table}
	case errors.Is(err, engine.ErrTableNotFound):
		return &dynamo.Error{Code: dynamo.CodeTableNotFound, Message: "Table not found: " + table}
	case errors.Is(err, engine.ErrTableExists):
		return &dynamo.Error{Code: dynamo.CodeTableAlreadyExists, Message: "Table already exists: " + table}
	case errors.Is(err, engine.ErrBackupNotFound):
		return backupNotFound(arn)
	case errors.Is(err, engine.ErrBackupInUse):
		return &dynamo.Error{Code: dynamo.CodeBackupInUse, Message: "Backup is being used to restore a table: " + arn}
	case errors.Is(err, engine.ErrNoHistory):
		return &dynamo.Error{Code: dynamo.CodePointInTimeRecovery, Message: "Point in time recovery is not enabled for table '" + table + "'"}
	case errors.Is(err, engine.ErrRestoreInstant):
		return &dynamo.Error{Code: dynamo.CodeInvalidRestoreTime, Message: "RestoreDateTime must be between EarliestRestorableDateTime and LatestRestorableDateTime of table: " + table}
	case errors.Is(err, engine.ErrTooManyBackups):
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: "There are as many backups as a database can have: delete some with DeleteBackup"}
	case errors.Is(err, engine.ErrTooManyRestores):
		return &dynamo.Error{Code: dynamo.CodeLimitExceeded, Message: "Up to 50 tables can be restored at once: wait until one is ACTIVE"}
	default:
		return apiError(err, table)
	}
}

func backupNotFound(arn string) error {
	return &dynamo.Error{Code: dynamo.CodeBackupNotFound, Message: "Backup not found: " + arn}
}

func (s *Service) backupARN(b *engine.BackupDesc) string { return s.backupOf(b.Table.Name, b.ID) }

func (s *Service) backupOf(table, id string) string { return s.tableARN(table) + backupPath + id }

// backupPath stands between the table and the id in the ARN of a backup.
const backupPath = "/backup/"

// backupByARN returns the backup that an ARN names. As for tables, any region and account will do.
func (s *Service) backupByARN(arn string) (*engine.BackupDesc, error) {
	id, err := backupID(arn)
	if err != nil {
		return nil, err
	}
	b, err := s.engine.Backup(id)
	if err == nil && !isBackupOf(b, arn) {
		err = engine.ErrBackupNotFound
	}
	if err != nil {
		return nil, backupError(err, "", arn)
	}
	return b, nil
}

// backupDetails describes a backup.
func (s *Service) backupDetails(b *engine.BackupDesc) *BackupDetails {
	status := backupAvailable
	if b.Creating {
		status = backupCreating
	}
	return &BackupDetails{ARN: s.backupARN(b), Name: b.Name, Status: status, Type: backupType(b), Created: b.Created.Time(), Expires: timeOrZero(b.Expires), SizeBytes: b.Bytes}
}
