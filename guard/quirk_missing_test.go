package guard

import (
	"encoding/json"
	"slices"
	"strings"
)

// needed are the operations that docs/guard.md lists under "Grant permissions", except for the
// optional ones.
var needed = []string{"DescribeTable", "CreateTable", "GetItem", "PutItem", "DeleteItem", "Query", "Scan", "DescribeStream", "GetShardIterator", "GetRecords"}

// missingQuirks are about operations and members that are not supported.
func missingQuirks() []quirk {
	without := func(code string, operations ...string) func(c *exchange) string {
		return func(c *exchange) string {
			if slices.Contains(operations, c.operation) {
				return code
			}
			return ""
		}
	}
	batches := func(o *Options) { o.Batch = 25 }
	return []quirk{
		{name: "only the needed operations", source: "made up: an endpoint that serves just these", refuses: func(c *exchange) string {
			if slices.Contains(needed, c.operation) {
				return ""
			}
			return "UnknownOperationException"
		}},
		{
			name: "no transactions", source: "https://github.com/scylladb/scylladb/issues/5064", refuses: without("UnknownOperationException", "TransactWriteItems"),
			options: batches, logs: "the endpoint has no transactions",
		},
		{name: "invalid transactions", source: "made up: a server that rejects what it does not know", refuses: without("ValidationException", "TransactWriteItems"), options: batches},
		{
			name: "no TTL", source: "Alternator before 2023: its TTL was experimental, see docs/alternator/compatibility.md", refuses: without("UnknownOperationException", "DescribeTimeToLive"),
			options: func(o *Options) { o.Attribute = "" }, ends: everywhere(NoAttribute),
		},
		{name: "no CreateTable", source: "made up: tables that are made elsewhere", refuses: without("UnknownOperationException", "CreateTable"), ends: everywhere(Misconfigured)},
		{
			name: "no consistent reads", source: "made up: an endpoint that reads from replicas", refuses: func(c *exchange) string {
				if c.in["ConsistentRead"] == true {
					return "ValidationException"
				}
				return ""
			}, ends: following(Misconfigured), logs: "the endpoint refuses consistent reads",
		},
		{name: "no empty strings", source: "Amazon until May 2020, and DynamoDB Local 1.11", refuses: func(c *exchange) string {
			if text, _ := json.Marshal(c.in); strings.Contains(string(text), `{"S":""}`) {
				return "ValidationException"
			}
			return ""
		}},
		{name: "no item with a failed condition", source: "made up: ReturnValuesOnConditionCheckFailure, of 2023, is ignored", refuses: func(c *exchange) string {
			delete(c.in, "ReturnValuesOnConditionCheckFailure")
			return ""
		}},
		{name: "no conditions", source: "docs/alternator/alternator.md of scylladb/scylladb: the write isolation policy forbid_rmw", refuses: func(c *exchange) string {
			if c.in["ConditionExpression"] != nil {
				return "ValidationException"
			}
			return ""
		}, ends: everywhere(Misconfigured)},
	}
}
