package service

import (
	"path"
	"strings"
)

// Access is something that a request asks for and that can be allowed or denied: an IAM action on a
// resource, with the facts that conditions of policies compare. An empty fact is missing.
type Access struct {
	Action   string // "dynamodb:GetItem"
	Resource string // the ARN of a table, index or stream; "*" for an action without a resource

	Select             string // of a read; see readSelect
	ReturnValues       string
	ReturnCapacity     string // ReturnConsumedCapacity
	EnclosingOperation string // TransactGetItems, TransactWriteItems or ExecuteTransaction
	Statement          bool   // the access of a statement of PartiQL: FullTableScan has a value
	FullTableScan      bool   // a SELECT reads a whole table or index

	LeadingKeys []string // partition keys, if Facts asks for them
	Attributes  []string // top-level attributes that are read or written, if Facts asks for them
	seen        map[string]struct{}
}

// Facts selects the facts that cost time: they need the table's schema or the expressions.
type Facts struct{ LeadingKeys, Attributes bool }

// Accesses returns what an operation asks for: all of it must be allowed. in is the input of the
// operation's method. Its names may be malformed and its tables missing: the operation finds that out
// later. So a client without permission does not learn which tables exist.
//
// An operation on several tables is one Access for each; a transaction is one for each action, as
// AWS documents it ("IAM policies for transactions").
func (s *Service) Accesses(operation string, in any, facts Facts) []Access {
	a := Access{Action: "dynamodb:" + operation, Resource: "*"}
	f := accessFacts{s, facts}
	switch in := in.(type) {
	case *GetItemInput:
		f.get(&a, in)
	case *WriteInput:
		f.write(&a, in, writeKinds[operation])
		return withOldItem(a, in)
	case *QueryInput:
		f.query(&a, in)
	case *ScanInput:
		f.scan(&a, in)
	case *BatchGetItemInput:
		return f.batchGet(a, in)
	case *BatchWriteItemInput:
		return f.batchWrite(a, in)
	case *TransactGetItemsInput:
		return f.transactGet(a, in)
	case *TransactWriteItemsInput:
		return f.transactWrite(a, in)
	case *ExecuteStatementInput:
		return f.statements(true, "", in.ReturnConsumedCapacity.V, &in.StatementInput)
	case *BatchExecuteStatementInput:
		return f.statements(false, "", in.ReturnConsumedCapacity.V, pointers(atMost(in.Statements, batchStatementsMax))...)
	case *ExecuteTransactionInput:
		return f.statements(false, operation, in.ReturnConsumedCapacity.V, pointers(atMost(in.Statements, transactItemsMax))...)
	case *CreateTableInput:
		return s.createAccesses(a, in)
	case *UpdateTableInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *UpdateTimeToLiveInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *CreateBackupInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *BackupInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *RestoreTableInput:
		a.Resource = s.arnResource(in.BackupARN.V)
		return s.restoreAccesses(a, in.Target.V)
	case *RestoreToTimeInput:
		a.Resource = s.tableResource(in.Source.Or(in.SourceARN.V))
		return s.restoreAccesses(a, in.Target.V)
	case *ExportTableInput:
		a.Resource = s.tableResource(in.TableARN.V)
		return exportAccesses(a, in)
	case *DescribeExportInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *ListExportsInput:
		a.Resource = s.listedResource(in.TableARN)
	case *ImportTableInput:
		if in.Table != nil {
			a.Resource = s.tableResource(in.Table.TableName.V)
		}
		return importAccesses(a, in)
	case *DescribeImportInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *ListImportsInput:
		a.Resource = s.listedResource(in.TableARN)
	case *UpdateContinuousBackupsInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *TableNameInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *UpdateInsightsInput:
		a.Resource = s.indexResource(in.TableName, in.IndexName)
	case *DescribeInsightsInput:
		a.Resource = s.indexResource(in.TableName, in.IndexName)
	case *KinesisInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *GlobalTableInput:
		a.Resource = s.globalTableResource(in.Name.V)
	case *UpdateGlobalTableInput:
		a.Resource = s.globalTableResource(in.Name.V)
	case *BulkOperationInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *StartBulkInput:
		a.Resource = s.tableResource(in.TableName.V)
	case *SearchVectorsInput:
		a.Resource = s.indexResource(in.TableName, in.IndexName)
	case *TagResourceInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *UntagResourceInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *ListTagsInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *PutResourcePolicyInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *ResourcePolicyInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *ListStreamsInput:
		a.Resource = s.tableResource(in.TableName.Or("*")) + "/stream/*"
	case *DescribeStreamInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *GetShardIteratorInput:
		a.Resource = s.arnResource(in.ARN.V)
	case *GetRecordsInput:
		arn, _, _ := strings.Cut(in.Iterator.V, iteratorVersion)
		a.Resource = s.arnResource(arn)
	}
	return []Access{a}
}

// writeKinds are the kinds of the operations that share WriteInput.
var writeKinds = map[string]actionKind{"PutItem": actionPut, "UpdateItem": actionUpdate, "DeleteItem": actionDelete}

// createAccesses returns the accesses of CreateTable, which also sets tags and a policy.
func (s *Service) createAccesses(a Access, in *CreateTableInput) []Access {
	a.Resource = s.tableResource(in.TableName.V)
	list := []Access{a}
	if len(in.Tags) > 0 {
		list = append(list, Access{Action: "dynamodb:TagResource", Resource: a.Resource})
	}
	if in.Policy.Text.Set {
		list = append(list, Access{Action: "dynamodb:PutResourcePolicy", Resource: a.Resource})
	}
	return list
}

// restoreAccesses returns the accesses of a restore: to its source, and to the new table with the
// actions that AWS lists as dependent ("Using IAM with DynamoDB backup and restore").
func (s *Service) restoreAccesses(source Access, to string) []Access {
	list := []Access{source, {Action: source.Action, Resource: s.tableResource(to)}}
	target := s.tableResource(to)
	for _, action := range []string{"BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"} {
		list = append(list, Access{Action: "dynamodb:" + action, Resource: target})
	}
	return list
}

// exportAccesses returns the accesses of an export: to its table, and to the bucket as AWS documents
// it ("Requesting a table export in DynamoDB"). Without the second, a key for one table could replace
// the exports of others.
func exportAccesses(table Access, in *ExportTableInput) []Access {
	folder := bucketARN + path.Join(in.Bucket.V, in.Prefix.V, "AWSDynamoDB") + "/*"
	return []Access{table, {Action: "s3:PutObject", Resource: folder}}
}

// importAccesses returns the accesses of an import: to its table, and to the bucket as AWS documents
// it ("Requesting a table import in DynamoDB"). Without these, a key for one table could read the
// exports of others.
func importAccesses(table Access, in *ImportTableInput) []Access {
	var source BucketSource
	if in.Source != nil {
		source = *in.Source
	}
	return []Access{
		table,
		{Action: "s3:ListBucket", Resource: bucketARN + source.Bucket.V},
		{Action: "s3:GetObject", Resource: bucketARN + source.Bucket.V + "/" + source.Prefix.V + "*"},
	}
}

const bucketARN = "arn:aws:s3:::"

// tableResource returns the ARN of the table that a name or an ARN in a request means. Every region
// and account sees the same tables, so policies see those of the server.
func (s *Service) tableResource(given string) string {
	ref, err := tableRef{name: given, given: given}.resolve()
	if err != nil {
		return given // malformed: the operation refuses it
	}
	return s.tableARN(ref.name)
}

// globalTableResource returns the ARN of a global table, which has no region.
func (s *Service) globalTableResource(name string) string {
	return "arn:aws:dynamodb::" + s.account + ":global-table/" + name
}

// listedResource returns the ARN of the table whose jobs a request lists, or "*" for a list of all jobs.
func (s *Service) listedResource(table Opt[string]) string {
	if !table.Set {
		return "*"
	}
	return s.tableResource(table.V)
}

func (s *Service) indexResource(table, index Opt[string]) string {
	resource := s.tableResource(table.V)
	if index.Set {
		resource += "/index/" + index.V
	}
	return resource
}

// arnResource is tableResource for the ARN of any resource.
func (s *Service) arnResource(arn string) string {
	resource, err := arnResource(arn)
	if err != nil {
		return arn
	}
	return s.arnOf(resource)
}

// arnOf returns the ARN of a resource, such as "table/Music", in this region and account.
func (s *Service) arnOf(resource string) string {
	return "arn:aws:dynamodb:" + s.region + ":" + s.account + ":" + resource
}
