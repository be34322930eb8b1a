package policy

import "encoding/json"

// Grant is an Allow statement of a ready policy.
type Grant struct {
	Sid       string // letters and digits
	Actions   []string
	Resources []string
}

// Text returns the JSON of an identity policy with an Allow statement for each grant.
func Text(grants ...Grant) string {
	type allow struct {
		Sid      string `json:",omitempty"`
		Effect   string
		Action   []string
		Resource []string
	}
	document := struct {
		Version   string
		Statement []allow
	}{Version: version2012}
	for _, g := range grants {
		document.Statement = append(document.Statement, allow{g.Sid, "Allow", g.Actions, g.Resources})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(text) + "\n"
}

// ReadOnly returns the policy for reading all tables, indexes and streams.
func ReadOnly() string {
	return Text(Grant{"ReadOnly", []string{
		"dynamodb:BatchGetItem", "dynamodb:Describe*", "dynamodb:GetItem", "dynamodb:GetRecords", "dynamodb:GetResourcePolicy", "dynamodb:GetShardIterator",
		"dynamodb:List*", "dynamodb:PartiQLSelect", "dynamodb:Query", "dynamodb:Scan",
	}, []string{"*"}})
}

// Table returns the policy for all actions on the table with an ARN, its indexes, its stream, its
// backups, and its exports and imports, which also need permission for their buckets.
func Table(arn string) string {
	return Text(Grant{"Table", []string{"dynamodb:*"}, []string{
		arn, arn + "/index/*", arn + "/stream/*", arn + "/backup/*", arn + "/export/*", arn + "/import/*",
	}})
}

// Backup returns the policy for copying all tables: by reading them, with mayfly backup, or as
// DynamoDB's own backups and exports, these to all buckets of the server. It allows neither
// restoring nor importing nor deleting.
func Backup() string {
	return Text(Grant{"Backup", []string{
		"dynamodb:CreateBackup", "dynamodb:DescribeBackup", "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeExport", "dynamodb:DescribeTable",
		"dynamodb:DescribeTimeToLive", "dynamodb:ExportTableToPointInTime", "dynamodb:ListBackups", "dynamodb:ListExports", "dynamodb:ListTables",
		"dynamodb:ListTagsOfResource", "dynamodb:Scan", "mayfly:Backup", "s3:PutObject",
	}, []string{"*"}})
}
