package wire

import "github.com/mayflydb/mayfly/internal/store/service"

// encodeExport writes the answer to ExportTableToPointInTime and DescribeExport.
func encodeExport(w *writer, out *service.ExportDescription) {
	object(w.name("ExportDescription"), out, encodeExportDescription)
}

func encodeExportDescription(w *writer, e *service.ExportDescription) {
	encodeExportSummary(w, &e.ExportSummary)
	w.name("StartTime").instant(e.Started)
	w.optionalInstant("EndTime", e.Ended)
	w.optionalText("ExportManifest", e.Manifest)
	w.name("TableArn").text(e.TableARN)
	w.name("TableId").text(e.TableID)
	w.optionalInstant("ExportTime", e.At)
	w.optionalText("ClientToken", e.ClientToken)
	w.name("S3Bucket").text(e.Bucket)
	w.optionalText("S3BucketOwner", e.BucketOwner)
	w.optionalText("S3Prefix", e.Prefix)
	w.optionalText("S3SseAlgorithm", e.Algorithm)
	w.optionalText("S3SseKmsKeyId", e.KMSKey)
	w.optionalText("FailureCode", e.FailureCode)
	w.optionalText("FailureMessage", e.FailureMessage)
	w.name("ExportFormat").text("DYNAMODB_JSON")
	w.optionalInteger("BilledSizeBytes", e.Bytes)
	w.optionalInteger("ItemCount", e.Items)
	if e.View != "" {
		w.name("IncrementalExportSpecification").beginObject()
		w.name("ExportFromTime").instant(e.From)
		w.name("ExportToTime").instant(e.To)
		w.name("ExportViewType").text(e.View)
		w.endObject()
	}
}

func encodeExportSummary(w *writer, e *service.ExportSummary) {
	w.name("ExportArn").text(e.ARN)
	w.name("ExportStatus").text(e.Status)
	w.name("ExportType").text(e.Type)
}

func encodeListExports(w *writer, out *service.ListExportsOutput) {
	objects(w.name("ExportSummaries"), out.Exports, encodeExportSummary)
	w.optionalText("NextToken", out.Token)
}

// encodeImport writes the answer to ImportTable and DescribeImport.
func encodeImport(w *writer, out *service.ImportDescription) {
	object(w.name("ImportTableDescription"), out, encodeImportDescription)
}

func encodeImportDescription(w *writer, i *service.ImportDescription) {
	encodeImportSummary(w, &i.ImportSummary)
	w.name("TableId").text(i.TableID)
	w.optionalText("ClientToken", i.ClientToken)
	if i.CSV != nil {
		w.name("InputFormatOptions").beginObject()
		object(w.name("Csv"), i.CSV, encodeCSVOptions)
		w.endObject()
	}
	w.name("InputCompressionType").text(i.Compression)
	object(w.name("TableCreationParameters"), &i.Table, encodeTableCreation)
	w.name("ErrorCount").integer(i.Errors)
	w.name("ProcessedSizeBytes").integer(i.Bytes)
	w.name("ProcessedItemCount").integer(i.Processed)
	w.name("ImportedItemCount").integer(i.Imported)
	w.optionalText("FailureCode", i.FailureCode)
	w.optionalText("FailureMessage", i.FailureMessage)
}

func encodeImportSummary(w *writer, i *service.ImportSummary) {
	w.name("ImportArn").text(i.ARN)
	w.name("ImportStatus").text(i.Status)
	w.name("TableArn").text(i.TableARN)
	object(w.name("S3BucketSource"), &i.Source, encodeBucketSource)
	w.name("InputFormat").text(i.Format)
	w.name("StartTime").instant(i.Started)
	w.optionalInstant("EndTime", i.Ended)
}

func encodeBucketSource(w *writer, b *service.BucketSource) {
	w.optionalText("S3BucketOwner", b.Owner.V)
	w.name("S3Bucket").text(b.Bucket.V)
	w.optionalText("S3KeyPrefix", b.Prefix.V)
}

func encodeCSVOptions(w *writer, o *service.CSVOptions) {
	w.optionalText("Delimiter", o.Delimiter.V)
	if o.Header != nil {
		w.name("HeaderList").texts(o.Header)
	}
}

// encodeTableCreation writes the settings of a table, in the form of a request to create it.
func encodeTableCreation(w *writer, t *service.TableDescription) {
	w.name("TableName").text(t.TableName)
	encodePairs(w, "AttributeDefinitions", t.Attributes, "AttributeName", "AttributeType")
	encodePairs(w, "KeySchema", t.KeySchema, "AttributeName", "KeyType")
	w.name("BillingMode").text(t.BillingMode)
	provisioned := t.BillingMode == "PROVISIONED"
	if provisioned {
		encodeSourceUnits(w, t.Read, t.Write)
	}
	encodeOnDemand(w, t.OnDemand)
	if t.SSEEnabled {
		w.name("SSESpecification").beginObject()
		w.name("Enabled").boolean(true)
		w.endObject()
	}
	if len(t.Global) == 0 {
		return
	}
	objects(w.name("GlobalSecondaryIndexes"), t.Global, func(w *writer, x *service.IndexDescription) {
		encodeIndexInfo(w, x)
		if provisioned {
			encodeSourceUnits(w, x.Read, x.Write)
		}
	})
}

func encodeListImports(w *writer, out *service.ListImportsOutput) {
	objects(w.name("ImportSummaryList"), out.Imports, encodeImportSummary)
	w.optionalText("NextToken", out.Token)
}
