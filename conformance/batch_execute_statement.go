package conformance

import (
	"slices"
	"strings"
	"testing"
)

var batchExecuteStatementChecks = []check{
	{"Reads", batchStatementReads},
	{"Writes", batchStatementWrites},
	{"Errors", batchStatementErrors},
	{"Capacity", batchStatementCapacity},
	{"Refused", batchStatementRefused},
}

// batch executes statements in a batch, which must succeed as a whole.
func (tb *table) batch(t *testing.T, options string, statements ...string) answer {
	t.Helper()
	return tb.Endpoint.ok(t, "BatchExecuteStatement", list("Statements", statements...)+options+"}")
}

func batchStatementReads(t *testing.T, e *Endpoint) {
	tb := fourItems(t, e)
	a := tb.batch(t, "",
		tb.statement(`SELECT n FROM $T WHERE pk = 'a' AND sk = 2`),
		tb.statement(`SELECT * FROM $T WHERE pk = ? AND sk = ?`, `{"S":"none"}`, `{"N":"1"}`),
		tb.statement(`SELECT s, n FROM $T WHERE sk = 1 AND pk = 'b'`)+`,"ConsistentRead":true`)
	a.want(t, "Responses", `[{"TableName":"`+tb.name+`","Item":{"n":{"N":"20"}}},{"TableName":"`+tb.name+`"},{"TableName":"`+tb.name+`","Item":{"n":{"N":"40"},"s":{"S":"four"}}}]`)
}

func batchStatementWrites(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1), item("pk", "b", "n", 1))
	table := `"TableName":"` + tb.name + `"`
	a := tb.batch(t, "",
		tb.statement(`INSERT INTO $T VALUE {'pk': 'c'}`),
		tb.statement(`UPDATE $T SET n = n + 1 WHERE pk = 'a' RETURNING ALL NEW *`),
		tb.statement(`UPDATE $T REMOVE n WHERE pk = 'a' RETURNING MODIFIED NEW *`),
		tb.statement(`DELETE FROM $T WHERE pk = 'b' RETURNING ALL OLD *`))
	a.want(t, "Responses", `[{`+table+`},{`+table+`,"Item":{"pk":{"S":"a"},"n":{"N":"2"}}},{`+table+`},{`+table+`,"Item":{"pk":{"S":"b"},"n":{"N":"1"}}}]`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a"))
	tb.wantStored(t, item("pk", "b"), nil)
	tb.wantStored(t, item("pk", "c"), item("pk", "c"))
}

// A statement that fails does not stop the others. It names its table if it has reached it.
func batchStatementErrors(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.put(t, item("pk", "a", "n", 1))
	const needsKey = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."
	fault := func(code, message string) string {
		return `{"Error":{"Code":"` + code + `","Message":"` + message + `"}}`
	}
	reads := tb.batch(t, "",
		tb.statement(`SELECT n FROM $T WHERE n = 1`),
		tb.statement(`SELECT n FROM $T WHERE pk = 'a' AND n = 1`),
		tb.statement(`SELECT n FROM $T.byG WHERE g = 'a'`),
		tb.statement(`SELECT n FROM "none-such-table" WHERE pk = 'a'`),
		tb.statement(`SLECT n`),
		tb.statement(`SELECT n FROM $T WHERE pk = ?`),
		tb.statement(`SELECT n FROM $T WHERE pk = 'a' ORDER BY zz`),
		tb.statement(`SELECT n FROM $T WHERE pk = 'a'`))
	reads.want(t, "Responses", `[`+strings.Join([]string{
		fault("ValidationError", needsKey), fault("ValidationError", needsKey), fault("ValidationError", needsKey),
		fault("ResourceNotFound", "Requested resource not found"),
		fault("ValidationError", "Statement wasn't well formed, can't be processed: Expected data manipulation"),
		fault("ValidationError", "Number of parameters in request and statement don't match."),
		fault("ValidationError", "Variable reference zz in ORDER BY clause must be part of the primary key"),
		`{"TableName":"` + tb.name + `","Item":{"n":{"N":"1"}}}`,
	}, ",")+`]`)
	failed := func(code, message string) string {
		return `{"TableName":"` + tb.name + `","Error":{"Code":"` + code + `","Message":"` + message + `"}}`
	}
	writes := tb.batch(t, "",
		tb.statement(`INSERT INTO $T VALUE {'pk': 'a'}`),
		tb.statement(`UPDATE $T SET n = 2 WHERE pk = 'a' AND n = 5`),
		tb.statement(`UPDATE $T SET n = 2 WHERE pk = 'a' AND n = 5`)+`,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`,
		tb.statement(`DELETE FROM $T WHERE pk = 'a' RETURNING MODIFIED OLD *`),
		tb.statement(`UPDATE $T SET n = 2 WHERE n = 1`),
		tb.statement(`UPDATE $T SET n = 2 WHERE pk = 'a'`))
	writes.want(t, "Responses", `[`+strings.Join([]string{
		failed("DuplicateItem", "Duplicate primary key exists in table"), failed("ConditionalCheckFailed", "The conditional request failed"),
		`{"TableName":"` + tb.name + `","Error":{"Code":"ConditionalCheckFailed","Message":"The conditional request failed","Item":{"pk":{"S":"a"},"n":{"N":"1"}}}}`,
		fault("ValidationError", "Invalid returning clause: RETURNING MODIFIED OLD *. Only RETURNING ALL OLD * is allowed in DELETE statements."),
		fault("ValidationError", "Where clause does not contain a mandatory equality on all key attributes"),
		`{"TableName":"` + tb.name + `"}`,
	}, ",")+`]`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 2))
}

func batchStatementCapacity(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S")
	one.put(t, item("pk", "a"))
	const total = `,"ReturnConsumedCapacity":"TOTAL"`
	reads := one.batch(t, total, one.statement(`SELECT * FROM $T WHERE pk = 'a'`), two.statement(`SELECT * FROM $T WHERE pk = 'a'`), one.statement(`SELECT * FROM $T WHERE pk = 'b'`)+`,"ConsistentRead":true`)
	reads.want(t, "ConsumedCapacity", `[{"TableName":"`+one.name+`","CapacityUnits":1.5},{"TableName":"`+two.name+`","CapacityUnits":0.5}]`)
	writes := one.batch(t, total, one.statement(`INSERT INTO $T VALUE {'pk': 'b'}`), one.statement(`DELETE FROM $T WHERE pk = 'none'`))
	writes.want(t, "ConsumedCapacity", `[{"TableName":"`+one.name+`","CapacityUnits":2}]`)
}

func batchStatementRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	read := tb.statement(`SELECT * FROM $T WHERE pk = 'a'`)
	e.refuse(t, "BatchExecuteStatement", `{}`, validation, "1 validation error detected: Value null at 'statements' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "BatchExecuteStatement", `{"Statements":[]}`, validation, "1 validation error detected: Value '[]' at 'statements' failed to satisfy constraint: Member must have length greater than or equal to 1")
	e.refuse(t, "BatchExecuteStatement", list("Statements", slices.Repeat([]string{read}, 26)...)+"}", validation, "1 validation error detected: Value '[…]' at 'statements' failed to satisfy constraint: Member must have length less than or equal to 25")
	tb.batch(t, "", slices.Repeat([]string{read}, 25)...)
	e.refuse(t, "BatchExecuteStatement", `{"Statements":[{}]}`, validation, "1 validation error detected: Value null at 'statements.1.member.statement' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "BatchExecuteStatement", list("Statements", read, tb.statement(`DELETE FROM $T WHERE pk = 'a'`))+"}", validation, "")
	exists := tb.batch(t, "", tb.statement(`EXISTS(SELECT * FROM $T WHERE pk = 'a' AND n = 1)`))
	exists.want(t, "Responses", `[{"Error":{"Code":"ValidationError","Message":"EXISTS can only be used in ExecuteTransaction write requests."}}]`)
}
