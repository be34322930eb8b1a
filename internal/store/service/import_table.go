package service

import (
	"context"
	"errors"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/bulk"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	compressionNone = "NONE"

	headerNamesMax  = 255
	headerLengthMax = 65536
)

var (
	enumInputFormat = []string{formatJSON, formatION, formatCSV}
	enumCompression = []string{"GZIP", "ZSTD", compressionNone}

	delimiterPattern = lazyPattern(`^[,;:|\t ]$`)
	headerPattern    = lazyPattern(`^[\x20-\x21\x23-\x2B\x2D-\x7E]*$`)
)

// ImportTable begins to create a table with the items of files in a bucket. The table is CREATING
// until the import has ended.
//
// The order of checks: the shape, with the table's; the format and its options; the prefix; the
// rules of a new table, as checkNewTable lists them; a table of the same name that is being deleted; the
// CSV header; the client token; the number of imports; a table of the same name.
func (s *Service) ImportTable(ctx context.Context, in *ImportTableInput) (*ImportDescription, error) {
	if err := checkImport(in); err != nil {
		return nil, err
	}
	if s.passing.of(in.Table.TableName.V).gone != nil {
		return nil, importError(engine.ErrTableExists, in.Table.TableName.V)
	}
	j, err := s.bulk.Import(ctx, s.importRequest(in))
	if err != nil {
		return nil, importError(err, in.Table.TableName.V)
	}
	return s.describeImport(j), nil
}

func checkImport(in *ImportTableInput) error {
	if err := importShape(in); err != nil {
		return err
	}
	switch {
	case in.Format.V == formatION:
		return invalid(invalidValues + "InputFormat ION is not supported: mayfly reads DYNAMODB_JSON and CSV")
	case in.CSV != nil && in.Format.V != formatCSV:
		return invalid(invalidValues + "InputFormatOptions.Csv is for InputFormat CSV, not " + in.Format.V)
	}
	if err := checkPrefix("S3KeyPrefix", in.Source.Prefix); err != nil {
		return err
	}
	return checkNewTable(in.Table)
}

func importShape(in *ImportTableInput) error {
	var sh shape
	sh.clientToken(in.ClientToken)
	sh.Required("s3BucketSource", in.Source != nil)
	if in.Source != nil {
		sh.bucket("s3BucketSource.", in.Source, "s3KeyPrefix")
	}
	sh.Required("inputFormat", in.Format.Set)
	sh.enum("inputFormat", in.Format, enumInputFormat)
	if in.CSV != nil {
		sh.csv("inputFormatOptions.csv.", in.CSV)
	}
	sh.enum("inputCompressionType", in.Compression, enumCompression)
	sh.Required("tableCreationParameters", in.Table != nil)
	if in.Table != nil {
		sh.Required("tableCreationParameters.tableName", in.Table.TableName.Set)
		sh.name("tableCreationParameters.tableName", in.Table.TableName)
		sh.createTable("tableCreationParameters.", in.Table)
	}
	return sh.err()
}

// csv checks the options of CSV. at is the path of the structure around them.
func (s *shape) csv(at string, o *CSVOptions) {
	s.match(at+"delimiter", o.Delimiter, delimiterPattern, `[,;:|\t ]`)
	if o.Header == nil {
		return
	}
	s.Count(at+"headerList", len(o.Header), 1, headerNamesMax, func() string { return printedList(o.Header) })
	for i, name := range o.Header {
		path := member(at+"headerList", i)
		s.match(path, Some(name), headerPattern, `[\x20-\x21\x23-\x2B\x2D-\x7E]*`)
		s.length(path, Some(name), 1, headerLengthMax)
	}
}

// importRequest returns the request for package bulk, of a valid input.
func (s *Service) importRequest(in *ImportTableInput) bulk.ImportRequest {
	req := bulk.ImportRequest{
		Table: s.newTable(in.Table.TableName.V, in.Table),
		Token: in.ClientToken.V, Bucket: in.Source.Bucket.V, Prefix: in.Source.Prefix.V, BucketOwner: in.Source.Owner.V,
		Format: in.Format.V, Compression: in.Compression.Or(compressionNone),
	}
	if in.CSV != nil {
		req.Delimiter, req.Header = in.CSV.Delimiter.V, slices.Clone(in.CSV.Header)
	}
	return req
}

// importError is jobError for a request to import a table.
func importError(err error, table string) error {
	if errors.Is(err, bulk.ErrTokenConflict) {
		return &dynamo.Error{Code: dynamo.CodeImportConflict, Message: "Another import was requested with this ClientToken: use a new one for each import"}
	}
	return jobError(err, table)
}

func jobOfImport(i *bulk.Import) *bulk.Job { return &i.Job }

func (s *Service) importSummary(i *bulk.Import) ImportSummary {
	return ImportSummary{
		ARN: s.jobARN(&i.Job, importPath), Status: string(i.Status), TableARN: s.tableARN(i.TableName), Format: i.Format,
		Source:  BucketSource{Bucket: Some(i.Bucket), Owner: optional(i.BucketOwner), Prefix: optional(i.Prefix)},
		Started: i.Begun.Time(), Ended: timeOrZero(i.Ended),
	}
}

// optional returns a member that is absent if its text is empty.
func optional(text string) Opt[string] { return Opt[string]{text, text != ""} }

// describeImport describes an import with everything that is known by now.
func (s *Service) describeImport(i *bulk.Import) *ImportDescription {
	out := &ImportDescription{
		ImportSummary: s.importSummary(i),
		TableID:       i.TableID, ClientToken: i.Token,
		Compression: i.Compression,
		Table:       *s.describe(&i.Table, engine.TableStats{}),
		FailureCode: i.FailureCode, FailureMessage: i.FailureMessage,
		Errors: i.Errors, Processed: i.Processed, Imported: i.Imported, Bytes: i.ProcessedBytes,
	}
	if i.Delimiter != "" || i.Header != nil {
		out.CSV = &CSVOptions{Delimiter: optional(i.Delimiter), Header: i.Header}
	}
	return out
}
