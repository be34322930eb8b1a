package conformance

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var executeTransactionChecks = []check{
	{"Reads", executeTransactionReads},
	{"Writes", executeTransactionWrites},
	{"AllOrNone", executeTransactionAllOrNone},
	{"Exists", executeTransactionExists},
	{"Token", executeTransactionToken},
	{"Capacity", executeTransactionCapacity},
	{"Refused", executeTransactionRefused},
}

// executeAll executes statements in a transaction and returns its error.
func (tb *table) executeAll(statements ...string) (answer, error) {
	return tb.Endpoint.call("ExecuteTransaction", list("TransactStatements", statements...)+"}")
}

// executeTyped is executeAll with the SDK's types, for the reasons in the error.
func (tb *table) executeTyped(t *testing.T, old bool, texts ...string) error {
	t.Helper()
	in := &dynamodb.ExecuteTransactionInput{}
	for _, text := range texts {
		s := types.ParameterizedStatement{Statement: aws.String(tb.sql(text))}
		if old {
			s.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		}
		in.TransactStatements = append(in.TransactStatements, s)
	}
	_, err := tb.DB.ExecuteTransaction(t.Context(), in)
	return err
}

func executeTransactionReads(t *testing.T, e *Endpoint) {
	tb := fourItems(t, e)
	a, err := tb.executeAll(
		tb.statement(`SELECT n FROM $T WHERE pk = 'a' AND sk = 2`),
		tb.statement(`SELECT * FROM $T WHERE pk = 'none' AND sk = 2`),
		tb.statement(`SELECT s FROM $T WHERE pk = ? AND sk = 1`, `{"S":"b"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.want(t, "Responses", `[{"Item":{"n":{"N":"20"}}},{},{"Item":{"s":{"S":"four"}}}]`)
}

func executeTransactionWrites(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1), item("pk", "b"))
	a, err := tb.executeAll(
		tb.statement(`UPDATE $T SET n = n + ? WHERE pk = 'a' AND n = 1`, `{"N":"5"}`),
		tb.statement(`DELETE FROM $T WHERE pk = 'b'`),
		tb.statement(`INSERT INTO $T VALUE {'pk': 'c', 'v': ?}`, `{"S":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.want(t, "Responses", `[]`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 6))
	tb.wantStored(t, item("pk", "b"), nil)
	tb.wantStored(t, item("pk", "c"), item("pk", "c", "v", "x"))
}

func executeTransactionAllOrNone(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	err := tb.executeTyped(t, true,
		`INSERT INTO $T VALUE {'pk': 'a'}`,
		`INSERT INTO $T VALUE {'pk': 'b'}`,
		`UPDATE $T SET n = 2 WHERE pk = 'none'`)
	canceled := wantCanceled(t, err, "DuplicateItem: Duplicate primary key exists in table", "None", "ConditionalCheckFailed: The conditional request failed")
	wantItem(t, "item of the reason", canceled.CancellationReasons[0].Item, item("pk", "a", "n", 1))
	tb.wantStored(t, item("pk", "b"), nil)

	err = tb.executeTyped(t, true, `UPDATE $T SET n = 2 WHERE pk = 'a' AND n = 9`, `DELETE FROM $T WHERE pk = 'x'`)
	canceled = wantCanceled(t, err, "ConditionalCheckFailed: The conditional request failed", "None")
	wantItem(t, "item of the reason", canceled.CancellationReasons[0].Item, item("pk", "a", "n", 1))
	err = tb.executeTyped(t, false, `UPDATE $T SET n = 2 WHERE pk = 'a' AND n = 9`)
	canceled = wantCanceled(t, err, "ConditionalCheckFailed: The conditional request failed")
	wantItem(t, "item of the reason", canceled.CancellationReasons[0].Item, nil)

	err = tb.executeTyped(t, false, `INSERT INTO $T VALUE {'pk': 'b'}`, `UPDATE $T SET n = 'x' + 1 WHERE n = 2`)
	wantCanceled(t, err, "None", "ValidationError: Where clause does not contain a mandatory equality on all key attributes")
	tb.wantStored(t, item("pk", "b"), nil)
	executeTransactionFirstInvalid(t, tb)
}

// The first wrong key cancels the transaction. The statements after it have no reasons.
func executeTransactionFirstInvalid(t *testing.T, tb *table) {
	const wrongKind, fault = `UPDATE $T SET n = 2 WHERE pk = 1`, `UPDATE $T SET n = 'x' + 1 WHERE pk = 'c'`
	const reason = "ValidationError: Key attribute's data type should match its data type in table's schema: Key pk"
	wantCanceled(t, tb.executeTyped(t, false, wrongKind, wrongKind), reason, "None")
	wantCanceled(t, tb.executeTyped(t, false, wrongKind, fault), reason, "None")
	wantError(t, tb.executeTyped(t, false, fault, wrongKind), validation, "")
	wantError(t, tb.executeTyped(t, false, wrongKind, `DELETE FROM "none-such-table" WHERE pk = 'a'`), notFound, "Requested resource not found")
}

// EXISTS checks a condition of an item that the transaction does not write.
func executeTransactionExists(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	const insert = `INSERT INTO $T VALUE {'pk': 'b'}`
	err := tb.executeTyped(t, true, `EXISTS(SELECT * FROM $T WHERE pk = 'a' AND n = 2)`, insert)
	canceled := wantCanceled(t, err, "ConditionalCheckFailed: The conditional request failed", "None")
	wantItem(t, "item of the reason", canceled.CancellationReasons[0].Item, item("pk", "a", "n", 1))
	if err := tb.executeTyped(t, false, `exists(SELECT * FROM $T WHERE pk = 'a' AND n IN [1, 2])`, insert); err != nil {
		t.Fatal(err)
	}
	tb.wantStored(t, item("pk", "b"), item("pk", "b"))
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
	wantCanceled(t, tb.executeTyped(t, false, `EXISTS(SELECT * FROM $T WHERE pk = 'none' AND n = 1)`), "ConditionalCheckFailed: The conditional request failed")
	if err := tb.executeTyped(t, false, `EXISTS(SELECT * FROM $T WHERE pk = 'none' AND n IS MISSING)`); err != nil {
		t.Error(err)
	}
	const order = "Variable reference zz in ORDER BY clause must be part of the primary key"
	wantError(t, tb.executeTyped(t, false, `EXISTS(SELECT * FROM $T WHERE pk = 'a' AND n = 1 ORDER BY zz)`, insert), validation, "Validation failed in TransactStatements[0]: "+order)
	const alone = "Validation failed in TransactStatements[0]: EXISTS() must contain a single item read with additional condition"
	wantError(t, tb.executeTyped(t, false, `EXISTS(SELECT * FROM $T WHERE pk = 'a')`, insert), validation, alone)
	wantError(t, tb.executeTyped(t, false, `EXISTS(SELECT * FROM $T WHERE n = 1)`, insert), validation, alone)
	wantError(t, tb.executeTyped(t, false, `EXISTS(SELECT * FROM $T."ix" WHERE n = 1)`, insert), validation, "Validation failed in TransactStatements[0]: Operations on indices are not supported in transactions")
}

func executeTransactionToken(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 0))
	const token = `,"ClientRequestToken":"once","ReturnConsumedCapacity":"TOTAL"}`
	body := list("TransactStatements", tb.statement(`UPDATE $T SET n = n + ? WHERE pk = 'a'`, `{"N":"1"}`))
	e.ok(t, "ExecuteTransaction", body+token).want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":2,"WriteCapacityUnits":2}]`)
	again := e.ok(t, "ExecuteTransaction", body+token)
	again.want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":2,"ReadCapacityUnits":2}]`)
	again.want(t, "Responses", `[]`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
	other := list("TransactStatements", tb.statement(`UPDATE $T SET n = n + ? WHERE pk = 'a'`, `{"N":"2"}`))
	e.refuse(t, "ExecuteTransaction", other+token, "IdempotentParameterMismatchException", "")
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
}

func executeTransactionCapacity(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const total = `,"ReturnConsumedCapacity":"TOTAL"}`
	e.ok(t, "ExecuteTransaction", list("TransactStatements", tb.statement(`INSERT INTO $T VALUE {'pk': 'a'}`), tb.statement(`DELETE FROM $T WHERE pk = 'b'`))+total).
		want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":4,"WriteCapacityUnits":4}]`)
	e.ok(t, "ExecuteTransaction", list("TransactStatements", tb.statement(`SELECT * FROM $T WHERE pk = 'a'`))+total).
		want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":2,"ReadCapacityUnits":2}]`)
}

func executeTransactionRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	const in0 = "Validation failed in TransactStatements[0]: "
	for _, row := range []struct{ text, message string }{
		{`SELECT * FROM $T WHERE`, in0 + "Statement wasn't well formed, can't be processed: Unexpected term"},
		{`SELECT * FROM $T WHERE g = 'x'`, in0 + "Select statements within ExecuteTransaction must specify the primary key in the where clause."},
		{`SELECT * FROM $T WHERE pk = 'a' AND attribute_exists(ss)`, in0 + "Select statements within ExecuteTransaction must specify the primary key in the where clause."},
		{`SELECT * FROM $T."byG" WHERE g = 'x'`, in0 + "Reads on indices are not supported within transactions."},
		{`UPDATE $T SET n = 1 WHERE pk = 'a' RETURNING ALL NEW *`, in0 + "RETURNING clause is not supported in ExecuteTransaction."},
		{`DELETE FROM $T WHERE pk = ?`, in0 + "Number of parameters in request and statement don't match."},
		{`SELECT * FROM $T WHERE pk = 'a' ORDER BY zz`, in0 + "Variable reference zz in ORDER BY clause must be part of the primary key"},
	} {
		e.refuse(t, "ExecuteTransaction", list("TransactStatements", tb.statement(row.text))+"}", validation, row.message)
	}
	e.refuse(t, "ExecuteTransaction", list("TransactStatements", tb.statement(`DELETE FROM "none-such-table" WHERE pk = 'a'`))+"}", notFound, "Requested resource not found")
	e.refuse(t, "ExecuteTransaction", list("TransactStatements", tb.statement(`UPDATE $T SET n = ? WHERE pk = 'a'`, `{"N":"x"}`))+"}", validation, "The parameter cannot be converted to a numeric value: x")
	remove, read := tb.statement(`DELETE FROM $T WHERE pk = 'a'`), tb.statement(`SELECT * FROM $T WHERE pk = 'a'`)
	const same = "Transaction request cannot include multiple operations on one item"
	e.refuse(t, "ExecuteTransaction", list("TransactStatements", remove, tb.statement(`INSERT INTO $T VALUE {'pk': 'a'}`))+"}", validation, same)
	e.refuse(t, "ExecuteTransaction", list("TransactStatements", read, read)+"}", validation, same)
	e.refuse(t, "ExecuteTransaction", list("TransactStatements", remove, read)+"}", validation, "")
	e.refuse(t, "ExecuteTransaction", `{"TransactStatements":[]}`, validation, "1 validation error detected: Value '[]' at 'transactStatements' failed to satisfy constraint: Member must have length greater than or equal to 1")
	e.refuse(t, "ExecuteTransaction", list("TransactStatements", slices.Repeat([]string{remove}, 101)...)+"}", validation, "1 validation error detected: Value '[…]' at 'transactStatements' failed to satisfy constraint: Member must have length less than or equal to 100")
}
