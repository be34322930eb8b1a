package service

import "time"

// ExportTableInput is an ExportTableToPointInTime. Times are in ms since 1970.
type ExportTableInput struct {
	TableARN, ClientToken       Opt[string]
	Bucket, BucketOwner, Prefix Opt[string]
	Algorithm, KMSKey           Opt[string]
	Format, Type                Opt[string]
	At                          Opt[int64] // ExportTime
	Increment                   *ExportIncrement
	Filter                      bool // FilterSpecification is there
}

// ExportIncrement is IncrementalExportSpecification.
type ExportIncrement struct {
	From, To Opt[int64]
	View     Opt[string]
}

type DescribeExportInput struct{ ARN Opt[string] }

type ListExportsInput struct {
	TableARN, Token Opt[string]
	Limit           Opt[int64]
}

type ListExportsOutput struct {
	Exports []ExportSummary
	Token   string // of the next page; empty: the last page
}

// ExportSummary is an export in a list.
type ExportSummary struct{ ARN, Status, Type string }

// ExportDescription answers ExportTableToPointInTime and DescribeExport. Empty texts and zero times
// are unknown or were not in the request.
type ExportDescription struct {
	ExportSummary
	TableARN, TableID           string
	Started, Ended              time.Time
	At                          time.Time // of a full export
	From, To                    time.Time // of an incremental export
	View                        string    // of an incremental export: NEW_IMAGE or NEW_AND_OLD_IMAGES
	ClientToken                 string
	Bucket, BucketOwner, Prefix string
	Algorithm, KMSKey           string
	FailureCode, FailureMessage string
	Manifest                    string
	Items, Bytes                Opt[int64] // of a completed export
}

// ImportTableInput is an ImportTable.
type ImportTableInput struct {
	ClientToken         Opt[string]
	Source              *BucketSource
	Format, Compression Opt[string]
	CSV                 *CSVOptions
	Table               *CreateTableInput // TableCreationParameters
}

// BucketSource is S3BucketSource.
type BucketSource struct{ Bucket, Owner, Prefix Opt[string] }

type CSVOptions struct {
	Delimiter Opt[string]
	Header    []string // nil when absent
}

type DescribeImportInput struct{ ARN Opt[string] }

type ListImportsInput struct {
	TableARN, Token Opt[string]
	Limit           Opt[int64]
}

type ListImportsOutput struct {
	Imports []ImportSummary
	Token   string // of the next page; empty: the last page
}

// ImportSummary is an import in a list.
type ImportSummary struct {
	ARN, Status, TableARN, Format string
	Source                        BucketSource
	Started, Ended                time.Time // Ended is zero while the import is in progress
}

// ImportDescription answers ImportTable and DescribeImport. Empty texts are unknown or were not in
// the request.
type ImportDescription struct {
	ImportSummary
	TableID, ClientToken        string
	Compression                 string
	CSV                         *CSVOptions // nil: the request had none
	Table                       TableDescription
	FailureCode, FailureMessage string
	Errors, Processed, Imported int64 // items
	Bytes                       int64 // that were processed
}
