package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/bulk"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	formatJSON = "DYNAMODB_JSON"
	formatION  = "ION"
	formatCSV  = "CSV"

	exportFull        = "FULL_EXPORT"
	exportIncremental = "INCREMENTAL_EXPORT"

	viewNew       = "NEW_IMAGE"
	viewNewAndOld = "NEW_AND_OLD_IMAGES"

	kmsKeyLengthMax = 2048

	// the bounds of the time between the two ends of an incremental export, as at AWS
	incrementMin = 15 * 60 * 1000
	incrementMax = 24 * 60 * 60 * 1000
)

var (
	enumExportFormat = []string{formatJSON, formatION}
	enumExportType   = []string{exportFull, exportIncremental}
	enumExportView   = []string{viewNew, viewNewAndOld}
	enumAlgorithm    = []string{"AES256", "KMS"}
)

// ExportTableToPointInTime begins to write the items that a table had at an instant, or its changes
// between two instants, to a bucket.
//
// The order of checks: the shape; the format, and the members that go together; the prefix; the time
// between the ends of an increment; the table's ARN; the client token; the number of exports; the table's
// existence; point-in-time recovery, and whether it reaches the instants.
func (s *Service) ExportTableToPointInTime(ctx context.Context, in *ExportTableInput) (*ExportDescription, error) {
	req, err := s.exportRequest(in)
	if err != nil {
		return nil, err
	}
	e, err := s.bulk.Export(ctx, req)
	if err != nil {
		return nil, exportError(err, &req)
	}
	return s.describeExport(e), nil
}

// exportRequest checks the input, and returns the request for package bulk.
func (s *Service) exportRequest(in *ExportTableInput) (bulk.ExportRequest, error) {
	req := bulk.ExportRequest{
		At: engine.Never, Token: in.ClientToken.V, Bucket: in.Bucket.V, Prefix: in.Prefix.V,
		BucketOwner: in.BucketOwner.V, Algorithm: in.Algorithm.V, KMSKey: in.KMSKey.V,
	}
	if err := exportShape(in); err != nil {
		return req, err
	}
	if err := checkExport(in); err != nil {
		return req, err
	}
	if in.Increment != nil {
		req.Incremental = true
		req.From, req.At = engine.Instant(in.Increment.From.V), instantOrNever(in.Increment.To)
		req.OldImages = in.Increment.View.Or(viewNewAndOld) == viewNewAndOld
		if err := checkIncrement(req.From, min(req.At, s.engine.Now()), in.Increment.To.Set); err != nil {
			return req, err
		}
	} else {
		req.At = instantOrNever(in.At)
	}
	var err error
	req.Table, err = tableOf("TableArn", in.TableARN)
	return req, err
}

func instantOrNever(at Opt[int64]) engine.Instant {
	return engine.Instant(at.Or(int64(engine.Never)))
}

func exportShape(in *ExportTableInput) error {
	var sh shape
	sh.Required("tableArn", in.TableARN.Set)
	sh.length("tableArn", in.TableARN, 1, arnLengthMax)
	sh.clientToken(in.ClientToken)
	sh.bucket("", &BucketSource{in.Bucket, in.BucketOwner, in.Prefix}, "s3Prefix")
	sh.enum("s3SseAlgorithm", in.Algorithm, enumAlgorithm)
	sh.length("s3SseKmsKeyId", in.KMSKey, 1, kmsKeyLengthMax)
	sh.enum("exportFormat", in.Format, enumExportFormat)
	sh.enum("exportType", in.Type, enumExportType)
	if in.Increment != nil {
		sh.enum("incrementalExportSpecification.exportViewType", in.Increment.View, enumExportView)
	}
	return sh.err()
}

// checkExport checks which members go together, and what mayfly supports.
func checkExport(in *ExportTableInput) error {
	incremental := in.Type.V == exportIncremental
	switch {
	case in.Format.V == formatION:
		return invalid(invalidValues + "ExportFormat ION is not supported: mayfly writes DYNAMODB_JSON only")
	case in.Filter:
		return invalid(invalidValues + "FilterSpecification is not supported: export the whole table, and filter its files")
	case incremental && in.At.Set:
		return invalid(invalidValues + "ExportTime is for a FULL_EXPORT: an INCREMENTAL_EXPORT has ExportFromTime and ExportToTime")
	case incremental && (in.Increment == nil || !in.Increment.From.Set):
		return invalid(invalidValues + "An INCREMENTAL_EXPORT needs IncrementalExportSpecification with ExportFromTime")
	case !incremental && in.Increment != nil:
		return invalid(invalidValues + "IncrementalExportSpecification needs ExportType INCREMENTAL_EXPORT")
	}
	return checkPrefix("S3Prefix", in.Prefix)
}

// checkIncrement checks the time between the two ends of an incremental export.
func checkIncrement(from, to engine.Instant, toSet bool) error {
	end := "ExportToTime"
	if !toSet {
		end = "the present time"
	}
	switch {
	case from >= to:
		return invalid(invalidValues + "ExportFromTime must be before " + end)
	case to-from < incrementMin:
		return invalid(invalidValues + "ExportFromTime must be at least 15 minutes before " + end)
	case to-from > incrementMax:
		return invalid(invalidValues + "ExportFromTime must be at most 24 hours before " + end)
	}
	return nil
}

// exportError is jobError for a request to export a table.
func exportError(err error, req *bulk.ExportRequest) error {
	switch {
	case errors.Is(err, engine.ErrNoHistory), errors.Is(err, engine.ErrTableCreating): // which is an ErrTableNotFound too
		return &dynamo.Error{Code: dynamo.CodePointInTimeRecovery, Message: "Point in time recovery is not enabled for table '" + req.Table + "'"}
	case errors.Is(err, engine.ErrTableNotFound):
		return &dynamo.Error{Code: dynamo.CodeTableNotFound, Message: "Table not found: " + req.Table}
	case errors.Is(err, engine.ErrRestoreInstant):
		member := "ExportTime"
		if req.Incremental {
			member = "ExportFromTime and ExportToTime"
		}
		return &dynamo.Error{Code: dynamo.CodeInvalidExportTime, Message: member + " must be between EarliestRestorableDateTime and LatestRestorableDateTime of table: " + req.Table}
	case errors.Is(err, bulk.ErrTokenConflict):
		return &dynamo.Error{Code: dynamo.CodeExportConflict, Message: "Another export was requested with this ClientToken: use a new one for each export"}
	default:
		return jobError(err, req.Table)
	}
}

func jobOfExport(e *bulk.Export) *bulk.Job { return &e.Job }

func (s *Service) exportSummary(e *bulk.Export) ExportSummary {
	out := ExportSummary{ARN: s.jobARN(&e.Job, exportPath), Status: string(e.Status), Type: exportFull}
	if e.Incremental {
		out.Type = exportIncremental
	}
	return out
}

// describeExport describes an export with everything that is known by now.
func (s *Service) describeExport(e *bulk.Export) *ExportDescription {
	out := &ExportDescription{
		ExportSummary: s.exportSummary(e),
		TableARN:      s.tableARN(e.TableName), TableID: e.TableID,
		Started: e.Begun.Time(), Ended: timeOrZero(e.Ended),
		ClientToken: e.Token,
		Bucket:      e.Bucket, BucketOwner: e.BucketOwner, Prefix: e.Prefix,
		Algorithm: e.Algorithm, KMSKey: e.KMSKey,
		FailureCode: e.FailureCode, FailureMessage: e.FailureMessage,
		Manifest: e.Manifest,
	}
	if e.Status == bulk.Completed {
		out.Items, out.Bytes = Some(e.Items), Some(e.Bytes)
	}
	if !e.Incremental {
		out.At = e.At.Time()
		return out
	}
	out.From, out.To, out.View = e.From.Time(), e.At.Time(), viewNew
	if e.OldImages {
		out.View = viewNewAndOld
	}
	return out
}
