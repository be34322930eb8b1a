package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DescribeExport returns an export of the last 90 days.
//
// The order of checks: the shape; the ARN's form; the export's existence.
func (s *Service) DescribeExport(_ context.Context, in *DescribeExportInput) (*ExportDescription, error) {
	var sh shape
	sh.jobARN("exportArn", in.ARN)
	if err := sh.err(); err != nil {
		return nil, err
	}
	e, err := jobByARN(in.ARN.V, exportPath, s.bulk.FindExport, jobOfExport)
	if errors.Is(err, engine.ErrJobNotFound) {
		return nil, &dynamo.Error{Code: dynamo.CodeExportNotFound, Message: "Export not found: " + in.ARN.V}
	}
	if err != nil {
		return nil, apiError(err, "")
	}
	return s.describeExport(e), nil
}
