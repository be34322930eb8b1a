package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func decodeExportTable(d *decoder, in *service.ExportTableInput) {
	d.read(members{
		{"TableArn", &in.TableARN},
		{"ExportTime", d.instant(&in.At)},
		{"ClientToken", &in.ClientToken},
		{"S3Bucket", &in.Bucket},
		{"S3BucketOwner", &in.BucketOwner},
		{"S3Prefix", &in.Prefix},
		{"S3SseAlgorithm", &in.Algorithm},
		{"S3SseKmsKeyId", &in.KMSKey},
		{"ExportFormat", &in.Format},
		{"ExportType", &in.Type},
		{"IncrementalExportSpecification", func() {
			in.Increment = structure(d, "IncrementalExportSpecification", decodeExportIncrement)
		}},
		{"FilterSpecification", func() {
			in.Filter = true
			d.Skip()
		}},
	})
}

func decodeExportIncrement(d *decoder, in *service.ExportIncrement) {
	d.read(members{
		{"ExportFromTime", d.instant(&in.From)},
		{"ExportToTime", d.instant(&in.To)},
		{"ExportViewType", &in.View},
	})
}

func decodeDescribeExport(d *decoder, in *service.DescribeExportInput) {
	d.read(members{{"ExportArn", &in.ARN}})
}

func decodeListExports(d *decoder, in *service.ListExportsInput) {
	d.read(members{{"TableArn", &in.TableARN}, {"MaxResults", &in.Limit}, {"NextToken", &in.Token}})
}

func decodeImportTable(d *decoder, in *service.ImportTableInput) {
	d.read(members{
		{"ClientToken", &in.ClientToken},
		{"S3BucketSource", func() { in.Source = structure(d, "S3BucketSource", decodeBucketSource) }},
		{"InputFormat", &in.Format},
		{"InputFormatOptions", func() {
			if d.Struct("InputFormatOptions") {
				d.read(members{{"Csv", func() { in.CSV = structure(d, "CsvOptions", decodeCSVOptions) }}})
			}
		}},
		{"InputCompressionType", &in.Compression},
		{"TableCreationParameters", func() { in.Table = structure(d, "TableCreationParameters", decodeTableCreation) }},
	})
}

func decodeBucketSource(d *decoder, in *service.BucketSource) {
	d.read(members{{"S3Bucket", &in.Bucket}, {"S3BucketOwner", &in.Owner}, {"S3KeyPrefix", &in.Prefix}})
}

func decodeCSVOptions(d *decoder, in *service.CSVOptions) {
	d.read(members{{"Delimiter", &in.Delimiter}, {"HeaderList", &in.Header}})
}

// decodeTableCreation reads the members of CreateTable that ImportTable has too.
func decodeTableCreation(d *decoder, in *service.CreateTableInput) {
	d.read(members{
		{"TableName", &in.TableName},
		{"AttributeDefinitions", &in.Attributes},
		{"KeySchema", &in.KeySchema},
		{"GlobalSecondaryIndexes", func() { in.Global = structs(d, "GlobalSecondaryIndex", decodeIndexSpec) }},
		{"BillingMode", &in.BillingMode},
		{"ProvisionedThroughput", &in.Throughput},
		{"OnDemandThroughput", &in.OnDemand},
		{"SSESpecification", d.encryption(&in.SSEEnabled, &in.SSEType)},
	})
}

func decodeDescribeImport(d *decoder, in *service.DescribeImportInput) {
	d.read(members{{"ImportArn", &in.ARN}})
}

func decodeListImports(d *decoder, in *service.ListImportsInput) {
	d.read(members{{"TableArn", &in.TableARN}, {"PageSize", &in.Limit}, {"NextToken", &in.Token}})
}
