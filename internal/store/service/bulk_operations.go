package service

import (
	"context"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

const (
	bulkOperationsPageMax = 100
	topKMax               = 1_000
)

// ListBulkOperations returns an empty list: StartBulkPutItems starts none here.
func (s *Service) ListBulkOperations(_ context.Context, in *ListBulkOperationsInput) (*Empty, error) {
	var sh shape
	sh.least("maxResults", in.Limit, 1)
	sh.most("maxResults", in.Limit, bulkOperationsPageMax)
	return &Empty{}, sh.err()
}

// BulkOperation answers DescribeBulkOperation and CancelBulkOperation. It finds none.
func (s *Service) BulkOperation(_ context.Context, in *BulkOperationInput) (*Empty, error) {
	var sh shape
	sh.Required("bulkOperationArn", in.ARN.Set)
	sh.length("bulkOperationArn", in.ARN, 1, arnLengthMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if _, err := arnResource(in.ARN.V); err != nil {
		return nil, err
	}
	return nil, &dynamo.Error{Code: dynamo.CodeResourceNotFound, Message: "Requested resource not found: Bulk operation: " + in.ARN.V + " not found"}
}

// StartBulkPutItems is refused for every table that exists.
func (s *Service) StartBulkPutItems(_ context.Context, in *StartBulkInput) (*Empty, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	var sh shape
	sh.Required("inputS3Configuration", in.Input)
	sh.Required("outputS3Configuration", in.Output)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if _, err := s.table(ref.name); err != nil {
		return nil, apiError(err, ref.name)
	}
	return nil, notServed("StartBulkPutItems")
}

// SearchVectors finds no vector index: CreateTable and UpdateTable refuse to make one.
func (s *Service) SearchVectors(_ context.Context, in *SearchVectorsInput) (*Empty, error) {
	ref, err := dataTable(in.TableName)
	if err != nil {
		return nil, err
	}
	var sh shape
	sh.Required("indexName", in.IndexName.Set)
	sh.name("indexName", in.IndexName)
	sh.Required("searchVector", in.Vector)
	sh.Required("topK", in.TopK.Set)
	sh.least("topK", in.TopK, 1)
	sh.most("topK", in.TopK, topKMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	t, err := s.table(ref.name)
	if err != nil {
		return nil, apiError(err, "")
	}
	if t.Desc().Index(in.IndexName.V) != nil {
		return nil, invalid("The index is not a vector index: " + in.IndexName.V)
	}
	return nil, invalid("The table does not have the specified index: " + in.IndexName.V)
}
