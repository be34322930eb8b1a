package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func encodeCreateBackup(w *writer, out *service.BackupDetails) {
	object(w.name("BackupDetails"), out, encodeBackupDetails)
}

func encodeBackupDetails(w *writer, b *service.BackupDetails) {
	w.name("BackupArn").text(b.ARN)
	w.name("BackupName").text(b.Name)
	w.name("BackupSizeBytes").integer(b.SizeBytes)
	w.name("BackupStatus").text(b.Status)
	w.name("BackupType").text(b.Type)
	w.name("BackupCreationDateTime").instant(b.Created)
	w.optionalInstant("BackupExpiryDateTime", b.Expires)
}

func encodeBackup(w *writer, out *service.BackupDescription) {
	w.name("BackupDescription").beginObject()
	object(w.name("BackupDetails"), &out.BackupDetails, encodeBackupDetails)
	object(w.name("SourceTableDetails"), &out.Source, encodeSourceTable)
	object(w.name("SourceTableFeatureDetails"), out, encodeSourceFeatures)
	w.endObject()
}

func encodeSourceTable(w *writer, t *service.TableDescription) {
	w.name("TableName").text(t.TableName)
	w.name("TableId").text(t.TableID)
	w.name("TableArn").text(t.ARN)
	w.name("TableSizeBytes").integer(t.SizeBytes)
	encodePairs(w, "KeySchema", t.KeySchema, "AttributeName", "KeyType")
	w.name("TableCreationDateTime").instant(t.Created)
	encodeSourceUnits(w, t.Read, t.Write)
	encodeOnDemand(w, t.OnDemand)
	w.name("ItemCount").integer(t.ItemCount)
	w.name("BillingMode").text(t.BillingMode)
}

// encodeSourceUnits writes a provisioned throughput without its history.
func encodeSourceUnits(w *writer, read, write int64) {
	w.name("ProvisionedThroughput").beginObject()
	w.name("ReadCapacityUnits").integer(read)
	w.name("WriteCapacityUnits").integer(write)
	w.endObject()
}

// encodeSourceFeatures writes the features that the table had: nothing for one without any.
func encodeSourceFeatures(w *writer, b *service.BackupDescription) {
	if len(b.Source.Local) > 0 {
		objects(w.name("LocalSecondaryIndexes"), b.Source.Local, encodeIndexInfo)
	}
	if len(b.Source.Global) > 0 {
		objects(w.name("GlobalSecondaryIndexes"), b.Source.Global, func(w *writer, x *service.IndexDescription) {
			encodeIndexInfo(w, x)
			encodeSourceUnits(w, x.Read, x.Write)
			encodeOnDemand(w, x.OnDemand)
		})
	}
	if b.Source.StreamViewType != "" {
		w.name("StreamDescription").beginObject()
		w.name("StreamEnabled").boolean(true)
		w.name("StreamViewType").text(b.Source.StreamViewType)
		w.endObject()
	}
	if b.TTLAttribute != "" {
		w.name("TimeToLiveDescription").beginObject()
		w.name("TimeToLiveStatus").text(b.TTLStatus)
		w.name("AttributeName").text(b.TTLAttribute)
		w.endObject()
	}
	encodeSSE(w, &b.Source)
}

func encodeIndexInfo(w *writer, x *service.IndexDescription) {
	w.name("IndexName").text(x.Name)
	encodePairs(w, "KeySchema", x.KeySchema, "AttributeName", "KeyType")
	encodeProjection(w, x)
}

func encodeContinuousBackups(w *writer, out *service.ContinuousBackups) {
	w.name("ContinuousBackupsDescription").beginObject()
	w.name("ContinuousBackupsStatus").text("ENABLED")
	w.name("PointInTimeRecoveryDescription").beginObject()
	if out.Days == 0 {
		w.name("PointInTimeRecoveryStatus").text("DISABLED")
	} else {
		w.name("PointInTimeRecoveryStatus").text("ENABLED")
		w.name("RecoveryPeriodInDays").integer(out.Days)
		w.name("EarliestRestorableDateTime").instant(out.Earliest)
		w.name("LatestRestorableDateTime").instant(out.Latest)
	}
	w.endObject()
	w.endObject()
}

func encodeListBackups(w *writer, out *service.ListBackupsOutput) {
	objects(w.name("BackupSummaries"), out.Backups, func(w *writer, b *service.BackupSummary) {
		w.name("TableName").text(b.TableName)
		w.name("TableId").text(b.TableID)
		w.name("TableArn").text(b.TableARN)
		encodeBackupDetails(w, &b.BackupDetails)
	})
	w.optionalText("LastEvaluatedBackupArn", out.Last)
}
