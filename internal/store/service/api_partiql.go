package service

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// Parameters are the values for the ? of a statement; V is nil when absent. Err is the first bad value
// in request order.
type Parameters struct {
	V   []dynamo.Value
	Err error
}

// StatementInput is a statement of PartiQL with its parameters.
type StatementInput struct {
	Statement                   Opt[string]
	Parameters                  Parameters
	ConsistentRead              Opt[bool] // of ExecuteStatement and BatchExecuteStatement
	ReturnValuesOnConditionFail Opt[string]

	parsed *partiql.Statement // once it was needed; nil also if it is malformed
	fault  error              // the reason why it is malformed
}

// parse returns the parsed statement. Policies, the operation and the metrics need it.
func (in *StatementInput) parse() (*partiql.Statement, error) {
	if in.parsed == nil && in.fault == nil {
		in.parsed, in.fault = partiql.Parse(in.Statement.V)
	}
	return in.parsed, in.fault
}

type ExecuteStatementInput struct {
	StatementInput
	NextToken              Opt[string]
	Limit                  Opt[int64]
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired
}

type ExecuteStatementOutput struct {
	Items            []dynamo.Item
	NextToken        string      // empty: the last page
	LastEvaluatedKey dynamo.Item // nil: the last page
	Capacity         *Capacity
}

type BatchExecuteStatementInput struct {
	Statements             []StatementInput // nil when absent
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired
}

type BatchExecuteStatementOutput struct {
	Responses []StatementResponse
	Capacity  []*Capacity
}

// StatementResponse is the answer to one statement of a batch.
type StatementResponse struct {
	Code, Message string      // of the error; empty: none
	FailedItem    dynamo.Item // that failed the condition, in the error
	TableName     string      // empty: the statement was refused before it reached its table
	Item          dynamo.Item
}

type ExecuteTransactionInput struct {
	Statements             []StatementInput // nil when absent
	ClientRequestToken     Opt[string]
	ReturnConsumedCapacity Opt[string]
	Expired                Expired // from X-Mayfly-Expired
}

type ExecuteTransactionOutput struct {
	Responses []dynamo.Item // of reads; nil: no such item, answered as {}
	Capacity  []*Capacity
}
