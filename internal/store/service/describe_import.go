package service

import (
	"context"
	"errors"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// DescribeImport returns an import of the last 90 days.
//
// The order of checks: the shape; the ARN's form; the import's existence.
func (s *Service) DescribeImport(_ context.Context, in *DescribeImportInput) (*ImportDescription, error) {
	var sh shape
	sh.jobARN("importArn", in.ARN)
	if err := sh.err(); err != nil {
		return nil, err
	}
	i, err := jobByARN(in.ARN.V, importPath, s.bulk.FindImport, jobOfImport)
	if errors.Is(err, engine.ErrJobNotFound) {
		return nil, &dynamo.Error{Code: dynamo.CodeImportNotFound, Message: "Import not found: " + in.ARN.V}
	}
	if err != nil {
		return nil, apiError(err, "")
	}
	return s.describeImport(i), nil
}
