package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

const backupsPageMax = 100

var enumBackupType = []string{"USER", "SYSTEM", "AWS_BACKUP", "ALL"}

// ListBackups returns the backups of one table or of all, oldest first, a page at a time. They
// outlive their tables, so no table needs to exist.
//
// The order of checks: the shape, with the table's name; the forms of ExclusiveStartBackupArn, then of TableName.
func (s *Service) ListBackups(_ context.Context, in *ListBackupsInput) (*ListBackupsOutput, error) {
	table, after, err := listBackupsShape(in)
	if err != nil {
		return nil, err
	}
	all, err := s.engine.Backups()
	if err != nil {
		return nil, apiError(err, "")
	}
	out := &ListBackupsOutput{}
	for _, b := range all {
		if b.ID <= after || !listed(b, in, table) {
			continue
		}
		if int64(len(out.Backups)) == in.Limit.Or(backupsPageMax) {
			out.Last = out.Backups[len(out.Backups)-1].ARN
			break
		}
		out.Backups = append(out.Backups, BackupSummary{
			BackupDetails: *s.backupDetails(b), TableName: b.Table.Name, TableID: b.Table.UUID, TableARN: s.tableARN(b.Table.Name),
		})
	}
	return out, nil
}

// listed reports whether a request is about a backup.
func listed(b *engine.BackupDesc, in *ListBackupsInput, table string) bool {
	kind := in.Type.Or(backupTypeUser)
	return (kind == backupType(b) || kind == "ALL") &&
		(table == "" || b.Table.Name == table) &&
		(!in.From.Set || int64(b.Created) >= in.From.V) && (!in.Until.Set || int64(b.Created) < in.Until.V)
}

const (
	backupTypeUser   = "USER"   // a client has made it
	backupTypeSystem = "SYSTEM" // the deletion of a table with point-in-time recovery has made it
)

func backupType(b *engine.BackupDesc) string {
	if b.Kind == engine.BackupDeleted {
		return backupTypeSystem
	}
	return backupTypeUser
}

// listBackupsShape checks a request, and returns the table's name and the id to start after.
func listBackupsShape(in *ListBackupsInput) (table, after string, err error) {
	var sh shape
	var ref tableRef
	if in.TableName.Set {
		ref = sh.dataTable("tableName", in.TableName)
	}
	sh.limit(in.Limit, backupsPageMax)
	sh.length("exclusiveStartBackupArn", in.Start, backupARNLengthMin, arnLengthMax)
	sh.enum("backupType", in.Type, enumBackupType)
	if err := sh.err(); err != nil {
		return "", "", err
	}
	if in.Start.Set {
		if after, err = backupID(in.Start.V); err != nil {
			return "", "", err
		}
	}
	ref, err = ref.resolve()
	return ref.name, after, err
}
