package wire

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/service"
)

const tableCreation = `{"TableName":"T","AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],` +
	`"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],`

func TestDecodeExports(t *testing.T) {
	want(t, decodeAs(t, decodeExportTable, `{"TableArn":"t","ExportTime":1.5,"ClientToken":"c","S3Bucket":"b","S3BucketOwner":"o","S3Prefix":"p",
		"S3SseAlgorithm":"KMS","S3SseKmsKeyId":"k","ExportFormat":"ION","ExportType":"INCREMENTAL_EXPORT",
		"IncrementalExportSpecification":{"ExportFromTime":1700000000.001,"ExportToTime":1700000001,"ExportViewType":"NEW_IMAGE"},"FilterSpecification":{"x":[1]}}`),
		service.ExportTableInput{
			TableARN: text("t"), At: service.Some[int64](1500), ClientToken: text("c"), Bucket: text("b"), BucketOwner: text("o"), Prefix: text("p"),
			Algorithm: text("KMS"), KMSKey: text("k"), Format: text("ION"), Type: text("INCREMENTAL_EXPORT"),
			Increment: &service.ExportIncrement{From: service.Some[int64](1700000000001), To: service.Some[int64](1700000001000), View: text("NEW_IMAGE")},
			Filter:    true,
		})
	want(t, decodeAs(t, decodeExportTable, `{"ExportTime":null,"IncrementalExportSpecification":null,"FilterSpecification":null}`), service.ExportTableInput{})
	want(t, decodeAs(t, decodeExportTable, `{"IncrementalExportSpecification":{}}`), service.ExportTableInput{Increment: &service.ExportIncrement{}})
	want(t, decodeAs(t, decodeDescribeExport, `{"ExportArn":"e"}`), service.DescribeExportInput{ARN: text("e")})
	want(t, decodeAs(t, decodeListExports, `{"TableArn":"t","MaxResults":3,"NextToken":"n"}`),
		service.ListExportsInput{TableARN: text("t"), Limit: service.Some[int64](3), Token: text("n")})
}

func TestDecodeImports(t *testing.T) {
	index := service.IndexSpec{IndexName: text("I"), KeySchema: []service.KeySchemaElement{{Name: text("g"), Type: text("HASH")}},
		Projection: service.ProjectionSpec{Present: true, Type: text("ALL")}}
	want(t, decodeAs(t, decodeImportTable, `{"ClientToken":"c","S3BucketSource":{"S3Bucket":"b","S3BucketOwner":"o","S3KeyPrefix":"p"},"InputFormat":"CSV",
		"InputFormatOptions":{"Csv":{"Delimiter":"\t","HeaderList":["k","v"]}},"InputCompressionType":"GZIP","TableCreationParameters":`+tableCreation+
		`"BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":2},"OnDemandThroughput":{"MaxReadRequestUnits":3},
		"SSESpecification":{"Enabled":true},"Tags":[{"Key":"a","Value":"b"}],
		"GlobalSecondaryIndexes":[{"IndexName":"I","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}}`),
		service.ImportTableInput{
			ClientToken: text("c"), Source: &service.BucketSource{Bucket: text("b"), Owner: text("o"), Prefix: text("p")},
			Format: text("CSV"), Compression: text("GZIP"), CSV: &service.CSVOptions{Delimiter: text("\t"), Header: []string{"k", "v"}},
			Table: &service.CreateTableInput{
				TableName: text("T"), Attributes: []service.AttributeDefinition{{Name: text("k"), Type: text("S")}},
				KeySchema: []service.KeySchemaElement{{Name: text("k"), Type: text("HASH")}}, BillingMode: text("PROVISIONED"),
				Throughput: &service.Throughput{Read: service.Some[int64](1), Write: service.Some[int64](2)},
				OnDemand:   &service.OnDemandThroughput{MaxRead: service.Some[int64](3)}, SSEEnabled: service.Some(true), Global: []service.IndexSpec{index},
			},
		})
	want(t, decodeAs(t, decodeImportTable, `{"InputFormatOptions":{},"S3BucketSource":{},"TableCreationParameters":null}`),
		service.ImportTableInput{Source: &service.BucketSource{}})
	want(t, decodeAs(t, decodeDescribeImport, `{"ImportArn":"i"}`), service.DescribeImportInput{ARN: text("i")})
	want(t, decodeAs(t, decodeListImports, `{"TableArn":"t","PageSize":3,"NextToken":"n"}`),
		service.ListImportsInput{TableARN: text("t"), Limit: service.Some[int64](3), Token: text("n")})
}

func TestEncodeExports(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(1700000000000 + ms) }
	full := service.ExportDescription{
		ExportSummary: service.ExportSummary{ARN: "e", Status: "COMPLETED", Type: "FULL_EXPORT"},
		TableARN:      "t", TableID: "id", Started: at(0), Ended: at(1), At: at(2), ClientToken: "c", Bucket: "b", BucketOwner: "o", Prefix: "p",
		Algorithm: "KMS", KMSKey: "k", Manifest: "m", Items: service.Some[int64](0), Bytes: service.Some[int64](7),
	}
	want(t, encoded(t, encodeExport, full), `{"ExportDescription":{"ExportArn":"e","ExportStatus":"COMPLETED","ExportType":"FULL_EXPORT",`+
		`"StartTime":1700000000.000,"EndTime":1700000000.001,"ExportManifest":"m","TableArn":"t","TableId":"id","ExportTime":1700000000.002,"ClientToken":"c",`+
		`"S3Bucket":"b","S3BucketOwner":"o","S3Prefix":"p","S3SseAlgorithm":"KMS","S3SseKmsKeyId":"k","ExportFormat":"DYNAMODB_JSON","BilledSizeBytes":7,"ItemCount":0}}`)
	want(t, encoded(t, encodeExport, service.ExportDescription{
		ExportSummary: service.ExportSummary{ARN: "e", Status: "IN_PROGRESS", Type: "INCREMENTAL_EXPORT"},
		TableARN:      "t", TableID: "id", Started: at(0), From: at(1), To: at(2), View: "NEW_IMAGE", Bucket: "b",
	}), `{"ExportDescription":{"ExportArn":"e","ExportStatus":"IN_PROGRESS","ExportType":"INCREMENTAL_EXPORT","StartTime":1700000000.000,"TableArn":"t","TableId":"id",`+
		`"S3Bucket":"b","ExportFormat":"DYNAMODB_JSON","IncrementalExportSpecification":{"ExportFromTime":1700000000.001,"ExportToTime":1700000000.002,"ExportViewType":"NEW_IMAGE"}}}`)
	want(t, encoded(t, encodeListExports, service.ListExportsOutput{}), `{"ExportSummaries":[]}`)
	want(t, encoded(t, encodeListExports, service.ListExportsOutput{Exports: []service.ExportSummary{full.ExportSummary}, Token: "n"}),
		`{"ExportSummaries":[{"ExportArn":"e","ExportStatus":"COMPLETED","ExportType":"FULL_EXPORT"}],"NextToken":"n"}`)
}

func TestEncodeImports(t *testing.T) {
	source := service.BucketSource{Bucket: text("b"), Owner: text("o"), Prefix: text("p")}
	table := service.TableDescription{
		TableName: "T", Status: "CREATING", BillingMode: "PROVISIONED", Read: 1, Write: 2, SSEEnabled: true,
		Attributes: [][2]string{{"k", "S"}}, KeySchema: [][2]string{{"k", "HASH"}},
		Global: []service.IndexDescription{{Name: "I", Status: "ACTIVE", KeySchema: [][2]string{{"k", "HASH"}}, ProjectionType: "INCLUDE", NonKey: []string{"a"}, Read: 3, Write: 4}},
	}
	failed := service.ImportDescription{
		ImportSummary: service.ImportSummary{ARN: "i", Status: "FAILED", TableARN: "t", Format: "CSV", Source: source, Started: time.UnixMilli(5), Ended: time.UnixMilli(6)},
		TableID:       "id", ClientToken: "c", Compression: "ZSTD", CSV: &service.CSVOptions{Delimiter: text("\t"), Header: []string{"k"}}, Table: table,
		FailureCode: "S3NoSuchBucket", FailureMessage: "none", Errors: 1, Processed: 2, Imported: 3, Bytes: 4,
	}
	const summary = `"ImportArn":"i","ImportStatus":"FAILED","TableArn":"t","S3BucketSource":{"S3BucketOwner":"o","S3Bucket":"b","S3KeyPrefix":"p"},"InputFormat":"CSV","StartTime":0.005,"EndTime":0.006`
	want(t, encoded(t, encodeImport, failed), `{"ImportTableDescription":{`+summary+`,"TableId":"id","ClientToken":"c",`+
		`"InputFormatOptions":{"Csv":{"Delimiter":"\t","HeaderList":["k"]}},"InputCompressionType":"ZSTD","TableCreationParameters":`+tableCreation+
		`"BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":2},"SSESpecification":{"Enabled":true},`+
		`"GlobalSecondaryIndexes":[{"IndexName":"I","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["a"]},`+
		`"ProvisionedThroughput":{"ReadCapacityUnits":3,"WriteCapacityUnits":4}}]},`+
		`"ErrorCount":1,"ProcessedSizeBytes":4,"ProcessedItemCount":2,"ImportedItemCount":3,"FailureCode":"S3NoSuchBucket","FailureMessage":"none"}}`)
	table.BillingMode, table.OnDemand, table.SSEEnabled, table.Global = "PAY_PER_REQUEST", &service.OnDemandThroughput{MaxRead: service.Some[int64](9)}, false, nil
	want(t, encoded(t, encodeImport, service.ImportDescription{
		ImportSummary: service.ImportSummary{ARN: "i", Status: "IN_PROGRESS", TableARN: "t", Format: "DYNAMODB_JSON", Source: service.BucketSource{Bucket: text("b")}, Started: time.UnixMilli(5)},
		TableID:       "id", Compression: "NONE", Table: table,
	}), `{"ImportTableDescription":{"ImportArn":"i","ImportStatus":"IN_PROGRESS","TableArn":"t","S3BucketSource":{"S3Bucket":"b"},"InputFormat":"DYNAMODB_JSON","StartTime":0.005,"TableId":"id",`+
		`"InputCompressionType":"NONE","TableCreationParameters":`+tableCreation+`"BillingMode":"PAY_PER_REQUEST","OnDemandThroughput":{"MaxReadRequestUnits":9}},`+
		`"ErrorCount":0,"ProcessedSizeBytes":0,"ProcessedItemCount":0,"ImportedItemCount":0}}`)
	want(t, encoded(t, encodeListImports, service.ListImportsOutput{}), `{"ImportSummaryList":[]}`)
	want(t, encoded(t, encodeListImports, service.ListImportsOutput{Imports: []service.ImportSummary{failed.ImportSummary}, Token: "n"}),
		`{"ImportSummaryList":[{`+summary+`}],"NextToken":"n"}`)
}
