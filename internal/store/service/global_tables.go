package service

import (
	"context"
	"slices"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// There are no global tables here: the operations answer as in an account without any. Version
// 2017.11.29, to which most of them belong, cannot be created at AWS either.

const msgLegacyVersion = invalidValues + "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version 2019.11.21, " +
	"instead of version 2017.11.29 (Legacy)."

func noGlobalTable(name string) string {
	return "Global table with name: '" + name + "' does not exist."
}

func globalTableNotFound(message string) error {
	return &dynamo.Error{Code: dynamo.CodeGlobalTableNotFound, Message: message}
}

// CreateGlobalTable refuses every valid request.
func (s *Service) CreateGlobalTable(_ context.Context, in *GlobalTableInput) (*Empty, error) {
	if _, err := controlTable(in.Name); err != nil {
		return nil, err
	}
	var sh shape
	sh.Required("replicationGroup", in.Replicas)
	if err := sh.err(); err != nil {
		return nil, err
	}
	return nil, invalid(msgLegacyVersion)
}

// UpdateGlobalTable finds no global table.
func (s *Service) UpdateGlobalTable(_ context.Context, in *UpdateGlobalTableInput) (*Empty, error) {
	ref, err := controlTable(in.Name)
	if err != nil {
		return nil, err
	}
	var sh shape
	sh.Required("replicaUpdates", in.Updates != nil)
	if err := sh.err(); err != nil {
		return nil, err
	}
	if len(in.Updates) == 0 || slices.Contains(in.Updates, ReplicaUpdate{}) {
		return nil, invalid("One or more parameter values were invalid")
	}
	if slices.ContainsFunc(in.Updates, func(u ReplicaUpdate) bool { return u.Create != nil }) {
		return nil, invalid(msgLegacyVersion)
	}
	return nil, globalTableNotFound("Global table not found: " + noGlobalTable(ref.name))
}

// DescribeGlobalTable finds no global table.
func (s *Service) DescribeGlobalTable(_ context.Context, in *GlobalTableInput) (*Empty, error) {
	ref, err := controlTable(in.Name)
	if err != nil {
		return nil, err
	}
	return nil, globalTableNotFound("Global table not found: " + noGlobalTable(ref.name))
}

// GlobalTableSettings answers DescribeGlobalTableSettings and UpdateGlobalTableSettings. It finds no
// global table.
func (s *Service) GlobalTableSettings(_ context.Context, in *GlobalTableInput) (*Empty, error) {
	ref, err := controlTable(in.Name)
	if err != nil {
		return nil, err
	}
	return nil, globalTableNotFound(noGlobalTable(ref.name))
}

// ListGlobalTables returns an empty list.
func (s *Service) ListGlobalTables(_ context.Context, in *ListGlobalTablesInput) (*Empty, error) {
	var sh shape
	sh.name("exclusiveStartGlobalTableName", in.Start)
	sh.least("limit", in.Limit, 1)
	return &Empty{}, sh.err()
}

// ReplicaAutoScaling answers DescribeTableReplicaAutoScaling and UpdateTableReplicaAutoScaling, which
// are about tables with replicas only.
func (s *Service) ReplicaAutoScaling(_ context.Context, in *TableNameInput) (*Empty, error) {
	ref, err := controlTable(in.TableName)
	if err != nil {
		return nil, err
	}
	return nil, &dynamo.Error{Code: dynamo.CodeResourceNotFound, Message: noGlobalTable(ref.name)}
}
