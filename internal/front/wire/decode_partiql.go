package wire

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

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
		{"Parameters", func() { in.Parameters.V = d.parameters(&in.Parameters.Err) }},
		{"ConsistentRead", &in.ConsistentRead},
		{"ReturnValuesOnConditionCheckFailure", &in.ReturnValuesOnConditionFail},
	}
}

// parameters reads the values for the ? of a statement. It keeps one more than a statement can have.
func (d *decoder) parameters(bad *error) []dynamo.Value {
	if !d.List() {
		return nil
	}
	values := []dynamo.Value{}
	for d.NextElement() {
		if v := d.value(bad); len(values) <= service.StatementLength {
			values = append(values, v)
		}
	}
	return values
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
