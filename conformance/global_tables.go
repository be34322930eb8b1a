package conformance

import "testing"

var globalTableChecks = []check{
	{"None", globalTablesNone},
	{"Replicas", replicasRefused},
}

// bulkOperationChecks are about operations that a fresh account has not used.
var bulkOperationChecks = []check{
	{"None", bulkOperationsNone},
	{"NoVectorIndex", searchVectorsNone},
}

// There are no global tables, whether a table of the name exists or not.
func globalTablesNone(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const none, version = "GlobalTableNotFoundException", invalid + "DynamoDB global tables version 2017.11.29 is not supported…"
	e.ok(t, "ListGlobalTables", `{}`).want(t, "GlobalTables", `[]`)
	for _, name := range []string{tb.name, "no-such-table"} {
		global := `{"GlobalTableName":"` + name + `"`
		missing := "Global table with name: '" + name + "' does not exist."
		e.refuse(t, "DescribeGlobalTable", global+`}`, none, "Global table not found: "+missing)
		e.refuse(t, "DescribeGlobalTableSettings", global+`}`, none, missing)
		e.refuse(t, "UpdateGlobalTableSettings", global+`,"GlobalTableBillingMode":"PROVISIONED"}`, none, missing)
		e.refuse(t, "UpdateGlobalTable", global+`,"ReplicaUpdates":[{"Delete":{"RegionName":"eu-west-1"}}]}`, none, "…"+missing)
		e.refuse(t, "DescribeTableReplicaAutoScaling", `{"TableName":"`+name+`"}`, notFound, missing)
		e.refuse(t, "UpdateTableReplicaAutoScaling", `{"TableName":"`+name+`"}`, notFound, missing)
		e.refuse(t, "UpdateGlobalTable", global+`,"ReplicaUpdates":[{"Create":{"RegionName":"eu-west-1"}}]}`, validation, version)
		e.refuse(t, "CreateGlobalTable", global+`,"ReplicationGroup":[{"RegionName":"us-east-1"},{"RegionName":"eu-west-1"}]}`, validation, version)
	}
	e.refuse(t, "DescribeGlobalTable", `{"GlobalTableName":""}`, validation, "TableName must be at least 3 characters long and at most 255 characters long")
	e.refuse(t, "UpdateGlobalTable", `{"GlobalTableName":"no-such-table","ReplicaUpdates":[]}`, validation, "One or more parameter values were invalid")
}

// Replicas in regions that do not exist are refused, and replicas are changed alone.
func replicasRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	create := `"ReplicaUpdates":[{"Create":{"RegionName":"xx-nowhere-1"}}]`
	tb.refuse(t, "UpdateTable", `{`+create+`}`, validation, "Region xx-nowhere-1 is not supported. The latest version of global tables are only supported in the following regions: […]")
	tb.refuse(t, "UpdateTable", `{`+create+`,"DeletionProtectionEnabled":true}`, validation, invalid+"Replica modification must be the only operation in the request")
	tb.refuse(t, "UpdateTable", `{"MultiRegionConsistency":"STRONG"}`, validation, "At least one of ProvisionedThroughput, … is required")
}

func bulkOperationsNone(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	e.ok(t, "ListBulkOperations", `{}`).want(t, "BulkOperationsSummaryList", `[]`)
	for _, op := range []string{"DescribeBulkOperation", "CancelBulkOperation"} {
		e.refuse(t, op, `{"BulkOperationArn":"`+tb.arn+`/bulk-operation/01500000000000-aaaaaaaa"}`, notFound, "Requested resource not found…")
	}
	e.refuse(t, "StartBulkPutItems", `{"TableName":"no-such-table","InputS3Configuration":{},"OutputS3Configuration":{}}`, notFound, "Requested resource not found: Table: no-such-table not found")
}

// A search needs a vector index.
func searchVectorsNone(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const search = `"IndexName":"byMood","TopK":1,"SearchVector":[{"N":"1"}]}`
	tb.refuse(t, "SearchVectors", `{`+search, validation, "The table does not have the specified index: byMood")
	e.refuse(t, "SearchVectors", `{"TableName":"no-such-table",`+search, notFound, "Requested resource not found")
}
