package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func decodeCreateBackup(d *decoder, in *service.CreateBackupInput) {
	d.read(members{{"TableName", &in.TableName}, {"BackupName", &in.BackupName}})
}

func decodeBackup(d *decoder, in *service.BackupInput) {
	d.read(members{{"BackupArn", &in.ARN}})
}

func decodeListBackups(d *decoder, in *service.ListBackupsInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"Limit", &in.Limit},
		{"TimeRangeLowerBound", d.instant(&in.From)},
		{"TimeRangeUpperBound", d.instant(&in.Until)},
		{"ExclusiveStartBackupArn", &in.Start},
		{"BackupType", &in.Type},
	})
}

func decodeRestoreTable(d *decoder, in *service.RestoreTableInput) {
	d.read(append(members{{"BackupArn", &in.BackupARN}}, restoreMembers(d, in)...))
}

func decodeRestoreToTime(d *decoder, in *service.RestoreToTimeInput) {
	d.read(append(members{
		{"SourceTableName", &in.Source},
		{"SourceTableArn", &in.SourceARN},
		{"UseLatestRestorableTime", &in.Latest},
		{"RestoreDateTime", d.instant(&in.At)},
	}, restoreMembers(d, &in.RestoreTableInput)...))
}

// restoreMembers returns the members that all restores share.
func restoreMembers(d *decoder, in *service.RestoreTableInput) members {
	return members{
		{"TargetTableName", &in.Target},
		{"BillingModeOverride", &in.BillingMode},
		{"GlobalSecondaryIndexOverride", func() { in.Global = structs(d, "GlobalSecondaryIndex", decodeIndexSpec) }},
		{"LocalSecondaryIndexOverride", func() { in.Local = structs(d, "LocalSecondaryIndex", decodeIndexSpec) }},
		{"VectorIndexOverride", func() {
			in.Vectors = len(list(d, func(d *decoder, _ *struct{}) { d.Skip() }))
		}},
		{"ProvisionedThroughputOverride", &in.Throughput},
		{"OnDemandThroughputOverride", &in.OnDemand},
		{"SSESpecificationOverride", d.encryption(&in.SSEEnabled, &in.SSEType)},
	}
}

func decodeUpdateContinuousBackups(d *decoder, in *service.UpdateContinuousBackupsInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"PointInTimeRecoverySpecification", func() {
			if d.Struct("PointInTimeRecoverySpecification") {
				in.Present = true
				d.read(members{{"PointInTimeRecoveryEnabled", &in.Enabled}, {"RecoveryPeriodInDays", &in.Days}})
			}
		}},
	})
}

// instant returns a function that reads a member that is a Timestamp.
func (d *decoder) instant(into *service.Opt[int64]) func() {
	return func() { *into = service.Some(d.Instant()) }
}
