package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func decodeExecuteStatement(d *decoder, in *service.ExecuteStatementInput) {
	d.read(statementMembers(d, &in.StatementInput), []member{
		{"NextToken", &in.NextToken},
		{"Limit", &in.Limit},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
	}...)
	in.Expired = d.expired()
}

// statementMembers returns the members that a statement has alone, in a batch and in a transaction. A
// transaction ignores ConsistentRead.
func statementMembers(d *decoder, in *service.StatementInput) members {
	return members{
		{"Statement", &in.Statement},
		{"Parameters", func() { in.Parameters.V = d.valueList(&in.Parameters.Err) }},
		{"ConsistentRead", &in.ConsistentRead},
		{"ReturnValuesOnConditionCheckFailure", &in.ReturnValuesOnConditionFail},
	}
}

func decodeStatement(d *decoder, in *service.StatementInput) { d.read(statementMembers(d, in)) }

func decodeBatchExecuteStatement(d *decoder, in *service.BatchExecuteStatementInput) {
	d.read(members{
		{"Statements", func() { in.Statements = structs(d, "BatchStatementRequest", decodeStatement) }},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
	})
	in.Expired = d.expired()
}

func decodeExecuteTransaction(d *decoder, in *service.ExecuteTransactionInput) {
	d.read(members{
		{"TransactStatements", func() { in.Statements = structs(d, "ParameterizedStatement", decodeStatement) }},
		{"ClientRequestToken", &in.ClientRequestToken},
		{"ReturnConsumedCapacity", &in.ReturnConsumedCapacity},
	})
	in.Expired = d.expired()
}
