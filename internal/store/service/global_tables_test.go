package service

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// TestFreshAccount: the operations about global tables, bulk operations and vectors answer as in an
// account that has none.
func TestFreshAccount(t *testing.T) {
	const v, r, g = dynamo.CodeValidation, dynamo.CodeResourceNotFound, dynamo.CodeGlobalTableNotFound
	const short = "TableName must be at least 3 characters long and at most 255 characters long"
	const missing = "Global table with name: 'Music' does not exist."
	d := open(t)
	d.music()
	music := &GlobalTableInput{Name: Some("Music"), Replicas: true}
	update := func(u ...ReplicaUpdate) error {
		_, err := d.UpdateGlobalTable(ctx, &UpdateGlobalTableInput{Name: Some("Music"), Updates: u})
		return err
	}
	errOf := func(_ *Empty, err error) error { return err }
	region := Some("eu-central-1")
	arn := "arn:aws:dynamodb:us-east-1:123456789012:table/Music/bulk-operation/1"
	for _, test := range []struct {
		about string
		err   error
		code  dynamo.Code
		want  string
	}{
		{"create", errOf(d.CreateGlobalTable(ctx, music)), v, msgLegacyVersion},
		{"create without a group", errOf(d.CreateGlobalTable(ctx, &GlobalTableInput{Name: Some("Music")})), v,
			"1 validation error detected: Value null at 'replicationGroup' failed to satisfy constraint: Member must not be null"},
		{"create without a name", errOf(d.CreateGlobalTable(ctx, &GlobalTableInput{Name: Some("")})), v, short},
		{"describe", errOf(d.DescribeGlobalTable(ctx, music)), g, "Global table not found: " + missing},
		{"describe without a name", errOf(d.DescribeGlobalTable(ctx, &GlobalTableInput{Name: Some("")})), v, short},
		{"settings", errOf(d.GlobalTableSettings(ctx, music)), g, missing},
		{"update by nothing", update(), v, "1 validation error detected: Value null at 'replicaUpdates' failed to satisfy constraint: Member must not be null"},
		{"update by an empty entry", update(ReplicaUpdate{}), v, "One or more parameter values were invalid"},
		{"add a region", update(ReplicaUpdate{Create: &region}), v, msgLegacyVersion},
		{"remove a region", update(ReplicaUpdate{Delete: &region}), g, "Global table not found: " + missing},
		{"list", errOf(d.ListGlobalTables(ctx, &ListGlobalTablesInput{Limit: Some[int64](0)})), v,
			"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"replicas' scaling", errOf(d.ReplicaAutoScaling(ctx, &TableNameInput{TableName: Some("Music")})), r, missing},
		{"bulk operations", errOf(d.ListBulkOperations(ctx, &ListBulkOperationsInput{Limit: Some[int64](101)})), v,
			"1 validation error detected: Value '101' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 100"},
		{"a bulk operation", errOf(d.BulkOperation(ctx, &BulkOperationInput{ARN: Some(arn)})), r, "Requested resource not found: Bulk operation: " + arn + " not found"},
		{"start", errOf(d.StartBulkPutItems(ctx, &StartBulkInput{TableName: Some("Music"), Input: true, Output: true})), v, "mayfly does not support StartBulkPutItems yet"},
		{"start without output", errOf(d.StartBulkPutItems(ctx, &StartBulkInput{TableName: Some("Music"), Input: true})), v,
			"1 validation error detected: Value null at 'outputS3Configuration' failed to satisfy constraint: Member must not be null"},
		{"start for no table", errOf(d.StartBulkPutItems(ctx, &StartBulkInput{TableName: Some("none"), Input: true, Output: true})), r, "Requested resource not found: Table: none not found"},
		{"search", errOf(d.SearchVectors(ctx, &SearchVectorsInput{TableName: Some("Music"), IndexName: Some("byMood"), TopK: Some[int64](1), Vector: true})), v,
			"The table does not have the specified index: byMood"},
		{"search another index", errOf(d.SearchVectors(ctx, &SearchVectorsInput{TableName: Some("Music"), IndexName: Some("byGenre"), TopK: Some[int64](1), Vector: true})), v,
			"The index is not a vector index: byGenre"},
		{"search for none", errOf(d.SearchVectors(ctx, &SearchVectorsInput{TableName: Some("Music"), IndexName: Some("byMood"), TopK: Some[int64](0)})), v,
			"2 validation errors detected: Value null at 'searchVector' failed to satisfy constraint: Member must not be null; " +
				"Value '0' at 'topK' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"search no table", errOf(d.SearchVectors(ctx, &SearchVectorsInput{TableName: Some("none"), IndexName: Some("byMood"), TopK: Some[int64](1), Vector: true})), r, msgNotFound},
	} {
		t.Run(test.about, func(t *testing.T) { refused(t, test.err, test.code, test.want) })
	}
	if _, err := d.ListGlobalTables(ctx, &ListGlobalTablesInput{}); err != nil {
		t.Error(err)
	}
	if _, err := d.ListBulkOperations(ctx, &ListBulkOperationsInput{}); err != nil {
		t.Error(err)
	}
	_, err := d.UpdateGlobalTable(ctx, &UpdateGlobalTableInput{Name: Some("Music"), Updates: []ReplicaUpdate{}})
	invalidRequest(t, err, "One or more parameter values were invalid")
}

// TestReplicasRefused: a table gets no replicas, with Amazon's texts for regions that it does not
// support.
func TestReplicasRefused(t *testing.T) {
	const p = "One or more parameter values were invalid: "
	region, local, none := Some("eu-central-1"), Some("eu-west-1"), Opt[string]{}
	for _, test := range []struct {
		about string
		in    UpdateTableInput
		want  string
	}{
		{"create", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Create: &region}}}},
			"Region eu-central-1 is not supported. The latest version of global tables are only supported in the following regions: [eu-west-1]"},
		{"create here", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Create: &local}}}},
			"Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or UpdateTable as required."},
		{"delete", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Delete: &region}}}},
			"Update global table operation failed because one or more replicas were not part of the global table. Please retry the request without these replicas: [eu-central-1]."},
		{"create nowhere", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Create: &none}}}}, "One or more parameter values were invalid"},
		{"update nowhere", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Update: &none}}}},
			"1 validation error detected: Value null at 'replicaUpdates.1.member.update.regionName' failed to satisfy constraint: Member must not be null"},
		{"none", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{}}}, "There are no actions specified in the Replica Update Action of the request."},
		{"no action", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{}}}}, "There are no actions specified in the Replica Update Action of the request."},
		{"two kinds", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Create: &region, Delete: &region}}}},
			"Update table operation with more than one type of replica actions not allowed."},
		{"two", UpdateTableInput{Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Create: &region}, {Delete: &local}}}},
			"Update table operation with more than one create or delete replica actions not allowed."},
		{"with other changes", UpdateTableInput{DeletionProtection: Some(true), Replicas: ReplicaChange{Updates: []ReplicaUpdate{{Create: &region}}}},
			p + "Replica modification must be the only operation in the request"},
		{"consistency alone", UpdateTableInput{Replicas: ReplicaChange{Consistency: Some("STRONG")}},
			"At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, " +
				"DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"},
		{"a witness", UpdateTableInput{Replicas: ReplicaChange{Witnesses: true}}, "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."},
	} {
		t.Run(test.about, func(t *testing.T) {
			d := open(t)
			test.in.TableName = Some(d.music())
			_, err := d.UpdateTable(ctx, &test.in)
			invalidRequest(t, err, test.want)
		})
	}
	d := open(t)
	in := musicTable("Music")
	in.OtherMembers = []string{"VectorIndexes"}
	_, err := d.CreateTable(ctx, &in)
	invalidRequest(t, err, "mayfly does not support CreateTable with VectorIndexes yet")
}
