package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var executeStatementChecks = []check{
	{"Select", selectItems},
	{"Where", selectWhere},
	{"Values", selectValues},
	{"Projection", selectProjection},
	{"Pages", selectPages},
	{"Megabyte", selectMegabyte},
	{"Order", selectOrder},
	{"Index", selectIndex},
	{"CompositeIndex", selectCompositeIndex},
	{"Capacity", selectCapacity},
	{"SelectRefused", selectRefused},
	{"Limits", statementLimits},
	{"Insert", insertItem},
	{"Update", updateByStatement},
	{"UpdateSets", updateSetsByStatement},
	{"Delete", deleteByStatement},
	{"Returning", statementReturning},
	{"FailedConditionReturnsItem", statementFailedItem},
	{"WritesRefused", statementWritesRefused},
	{"Syntax", statementSyntax},
	{"Shape", statementShape},
}

// strictStatementChecks and lateStatementChecks apply to expired items, before their removal.
var (
	strictStatementChecks = []check{
		{"HiddenFromStatements", expiryHiddenFromStatements},
		{"HiddenFromStatementsOfWrites", expiryHiddenFromStatementWrites},
		{"HiddenFromStatementTransactions", expiryHiddenFromStatementTransactions},
	}
	lateStatementChecks = []check{{"SeenByStatements", lateSeenByStatements}}
)

// fourItems returns a table with items of two collections.
func fourItems(t *testing.T, e *Endpoint, options ...tableOption) *table {
	t.Helper()
	tb := newTable(t, e, "pk:S sk:N", options...)
	tb.put(t,
		item("pk", "a", "sk", 1, "n", 10, "s", "one"),
		item("pk", "a", "sk", 2, "n", 20, "s", "two"),
		item("pk", "a", "sk", 3, "n", 30, "s", "three"),
		item("pk", "b", "sk", 1, "n", 40, "s", "four"))
	return tb
}

// Keywords have any case. Names of tables and attributes may be quoted; comments are blanks.
func selectItems(t *testing.T, e *Endpoint) {
	tb := fourItems(t, e)
	const one = `[{"pk":{"S":"a"},"sk":{"N":"1"},"n":{"N":"10"},"s":{"S":"one"}}]`
	for _, text := range []string{
		`SELECT * FROM $T WHERE pk = 'a' AND sk = 1`,
		`select * from $T where "pk" = 'a' and "sk" = 1;`,
		"SELECT * FROM $T -- all of it\nWHERE pk = 'a' /* one */ AND 1 = sk",
		`SELECT pk, sk, n, "s" FROM $T WHERE sk = 1e0 AND pk = 'a'`,
		`SELECT * FROM $T WHERE (pk = 'a') AND (sk BETWEEN 0 AND 1)`,
		`SELECT * FROM $T WHERE s = 'one'`,
	} {
		tb.execute(t, "", text).want(t, "Items", one)
	}
	tb.execute(t, "", `SELECT * FROM $T WHERE pk = ? AND sk = ?`, `{"S":"a"}`, `{"N":"1"}`).want(t, "Items", one)
	none := tb.execute(t, "", `SELECT * FROM $T WHERE pk = 'none' AND sk = 1`)
	none.want(t, "Items", `[]`)
	none.wantAbsent(t, "NextToken")
	tb.execute(t, "", `SELECT * FROM $T WHERE PK = 'a'`).want(t, "Items", `[]`)
}

// Every operator and function, in Queries and Scans.
func selectWhere(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.put(t,
		item("pk", "a", "sk", 1, "n", 10, "s", "one", "m", item("x", 1, "l", []any{"e", "f"})),
		item("pk", "a", "sk", 2, "n", 20, "s", "two", "flag", true, "null", nil),
		item("pk", "a", "sk", 3, "s", "three"))
	for _, row := range []struct{ where, want string }{
		{`n = 10`, "1"},
		{`n <> 10`, "2 3"}, // a missing value is unequal to all
		{`n != 10 AND n IS NOT MISSING`, "2"},
		{`n > 10`, "2"},
		{`n >= 10`, "1 2"},
		{`n < 20`, "1"},
		{`10 < n`, "2"},
		{`n <= 20 AND s = 'two'`, "2"},
		{`n = 10 OR s = 'three'`, "1 3"},
		{`NOT n = 10`, "2 3"},
		{`NOT (n = 10 OR n = 20)`, "3"},
		{`n BETWEEN 11 AND 20`, "2"},
		{`n NOT BETWEEN 11 AND 20`, "1 3"},
		{`s IN ['one', 'three']`, "1 3"},
		{`s IN ('one')`, "1"},
		{`s NOT IN ['one', 'two']`, "3"},
		{`n IS MISSING`, "3"},
		{`n IS NOT MISSING`, "1 2"},
		{`"null" IS NULL`, "2"},
		{`s IS NULL`, ""},
		{`s IS NOT NULL`, "1 2 3"},
		{`flag IS BOOL`, "2"},
		{`s IS STRING AND NOT n IS STRING`, "1 2 3"},
		{`begins_with(s, 't')`, "2 3"},
		{`BEGINS_WITH("s", 'th')`, "3"},
		{`contains(s, 'o')`, "1 2"},
		{`contains(m.l, 'f')`, "1"},
		{`attribute_type(m, 'M')`, "1"},
		{`size(s) = 3`, "1 2"},
		{`size(m.l) > 1`, "1"},
		{`attribute_exists(n)`, "1 2"},
		{`attribute_not_exists(n)`, "3"},
		{`attribute_exists(n) = true`, "1 2"},
		{`attribute_exists(n) = false`, "3"},
		{`m.x = 1`, "1"},
		{`m.l[1] = 'f'`, "1"},
		{`m['x'] = 1`, "1"},
		{`flag = TRUE`, "2"},
		{`n = 10 AND s = 'one' OR s = 'three' AND n IS MISSING`, "1 3"},
	} {
		if got := tb.selected(t, "sk", 0, `SELECT * FROM $T WHERE pk = 'a' AND (`+row.where+`)`); got != row.want {
			t.Errorf("query: %s: %q, want %q", row.where, got, row.want)
		}
		if got := sorted(tb.selected(t, "sk", 0, `SELECT * FROM $T WHERE `+row.where)); got != row.want {
			t.Errorf("scan: %s: %q, want %q", row.where, got, row.want)
		}
	}
	for _, row := range []struct{ where, want string }{
		{`pk = 'a' AND sk > 1`, "2 3"},
		{`pk = 'a' AND sk >= 2 AND sk < 3`, "2"},
		{`pk = 'a' AND 2 >= sk`, "1 2"},
		{`pk = 'a' AND sk <> 2`, "1 3"},
		{`pk = 'a' AND sk IN [1, 3]`, "1 3"},
		{`pk = 'a' AND NOT sk = 2`, "1 3"},
		{`pk = 'a' AND pk = 'b'`, ""},
		{`pk = 'a' AND sk = 1 OR pk = 'a' AND sk = 3`, "1 3"},
		{`pk = 'a' AND NOT sk = 1 OR pk = 'a' AND sk = 2`, "2 3"},
		{`pk = 'a' AND n = 10 OR pk = 'a' AND sk = 3`, "1 3"},
		{`pk IN ['a', 'b', 'a'] AND sk = 2`, "2"},
		{`pk = 'b' OR pk = 'a'`, "1 2 3"},
	} {
		if got := tb.selected(t, "sk", 0, `SELECT * FROM $T WHERE `+row.where); got != row.want {
			t.Errorf("%s: %q, want %q", row.where, got, row.want)
		}
	}
}

// Literals of all types, alone and with parameters inside.
func selectValues(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for i, row := range []struct{ literal, json, parameter string }{
		{`'it''s'`, `{"S":"it's"}`, ""},
		{`''`, `{"S":""}`, ""},
		{`-1.50e2`, `{"N":"-150"}`, ""},
		{`.5`, `{"N":"0.5"}`, ""},
		{`true`, `{"BOOL":true}`, ""},
		{`NULL`, `{"NULL":true}`, ""},
		{`[1, 'a', [], {}]`, `{"L":[{"N":"1"},{"S":"a"},{"L":[]},{"M":{}}]}`, ""},
		{`{'a': {'b': [false]}}`, `{"M":{"a":{"M":{"b":{"L":[{"BOOL":false}]}}}}}`, ""},
		{`<<'b', 'a'>>`, `{"SS":["a","b"]}`, ""},
		{`<<2, 1>>`, `{"NS":["1","2"]}`, ""},
		{`{'a': [?, 2]}`, `{"M":{"a":{"L":[{"B":"AQ=="},{"N":"2"}]}}}`, `{"B":"AQ=="}`},
		{`<<?>>`, `{"BS":["AQ=="]}`, `{"B":"AQ=="}`},
		{`?`, `{"NS":["1"]}`, `{"NS":["1"]}`},
		{`{'gone': MISSING, 'a': 1}`, `{"M":{"a":{"N":"1"}}}`, ""},
	} {
		var parameters []string
		if row.parameter != "" {
			parameters = []string{row.parameter}
		}
		key := string(rune('a' + i))
		tb.execute(t, "", `INSERT INTO $T VALUE {'pk': '`+key+`', 'v': `+row.literal+`}`, parameters...)
		tb.execute(t, "", `SELECT v FROM $T WHERE pk = '`+key+`' AND v = `+row.literal, parameters...).want(t, "Items", `[{"v":`+row.json+`}]`)
		tb.execute(t, "", `SELECT v FROM $T WHERE pk = '`+key+`' AND v <> ?`, row.json).want(t, "Items", `[]`)
	}
}

// A projection names values by the last parts of their paths, and leaves out missing ones.
func selectProjection(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "m", item("x", 1, "l", []any{"e", "f"}), "n", 1))
	for _, row := range []struct{ columns, want string }{
		{`n`, `[{"n":{"N":"1"}}]`},
		{`pk, m.x`, `[{"pk":{"S":"a"},"x":{"N":"1"}}]`},
		{`m.l, none`, `[{"l":{"L":[{"S":"e"},{"S":"f"}]}}]`},
		{`none`, `[{}]`},
		{`m.l[1]`, `[{"l[1]":{"S":"f"}}]`},
	} {
		tb.execute(t, "", `SELECT `+row.columns+` FROM $T WHERE pk = 'a'`).want(t, "Items", row.want)
		tb.execute(t, "", `SELECT `+row.columns+` FROM $T`).want(t, "Items", row.want)
	}
}

// Limit counts items before the filter. A token continues the same statement with the same parameters
// only.
func selectPages(t *testing.T, e *Endpoint) {
	tb := fourItems(t, e)
	for limit := range 5 {
		for _, row := range []struct{ where, want string }{
			{`pk = 'a'`, "10 20 30"},
			{`pk = 'a' ORDER BY sk DESC`, "30 20 10"},
			{`pk = 'a' AND n <> 20`, "10 30"},
			{`pk IN ['b', 'none', 'a']`, "40 10 20 30"},
			{`pk = 'b' OR pk = 'a' AND sk > 1`, "40 20 30"},
			{`pk = 'a' AND sk = 2`, "20"},
		} {
			if got := tb.selected(t, "n", limit, `SELECT * FROM $T WHERE `+row.where); got != row.want {
				t.Errorf("limit %d: %s: %q, want %q", limit, row.where, got, row.want)
			}
		}
		if got := sorted(tb.selected(t, "n", limit, `SELECT * FROM $T WHERE n > ?`, `{"N":"15"}`)); got != "20 30 40" {
			t.Errorf("limit %d: scan: %q", limit, got)
		}
	}
	const text = `SELECT * FROM $T WHERE pk = ?`
	first := tb.execute(t, `,"Limit":1`, text, `{"S":"a"}`)
	first.want(t, "LastEvaluatedKey", `{"pk":{"S":"a"},"sk":{"N":"1"}}`)
	token := `,"NextToken":"` + first["NextToken"].(string) + `"`
	tb.execute(t, token, text, `{"S":"a"}`).want(t, "Items",
		`[{"pk":{"S":"a"},"sk":{"N":"2"},"n":{"N":"20"},"s":{"S":"two"}},{"pk":{"S":"a"},"sk":{"N":"3"},"n":{"N":"30"},"s":{"S":"three"}}]`)
	tb.Endpoint.refuse(t, "ExecuteStatement", tb.statement(text, `{"S":"b"}`)+token+"}", validation, "NextToken does not match request")
	tb.Endpoint.refuse(t, "ExecuteStatement", tb.statement(`SELECT pk FROM $T WHERE pk = ?`, `{"S":"a"}`)+token+"}", validation, "NextToken does not match request")
	tb.Endpoint.refuse(t, "ExecuteStatement", tb.statement(text, `{"S":"a"}`)+`,"NextToken":"AAAA"}`, validation, "Invalid NextToken")
}

// A page ends with the item that reaches a megabyte, also one that the filter drops.
func selectMegabyte(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	big := strings.Repeat("x", 390<<10)
	for sk := range 4 {
		tb.put(t, item("pk", "a", "sk", sk, "b", big))
	}
	for _, text := range []string{`SELECT sk FROM $T WHERE pk = 'a'`, `SELECT sk FROM $T`} {
		first := tb.execute(t, "", text)
		first.want(t, "Items", `[{"sk":{"N":"0"}},{"sk":{"N":"1"}},{"sk":{"N":"2"}}]`)
		first.want(t, "LastEvaluatedKey", `{"pk":{"S":"a"},"sk":{"N":"2"}}`)
		if got := tb.selected(t, "sk", 0, text); got != "0 1 2 3" {
			t.Errorf("%s: %q", text, got)
		}
	}
	none := tb.execute(t, "", `SELECT sk FROM $T WHERE pk = 'a' AND b = 'none'`)
	none.want(t, "Items", `[]`)
	if none["NextToken"] == nil {
		t.Error("a page of items that the filter drops has no NextToken")
	}
	for _, pk := range []string{"b", "c", "d"} {
		tb.put(t, item("pk", pk, "sk", 1, "b", big), item("pk", pk, "sk", 2, "b", big))
	}
	const three = `SELECT pk FROM $T WHERE pk IN ['b', 'c', 'd']`
	tb.execute(t, "", three).want(t, "Items", `[{"pk":{"S":"b"}},{"pk":{"S":"b"}},{"pk":{"S":"c"}}]`) // 1 MB of all partitions together
	if got := tb.selected(t, "pk", 0, three); got != "b b c c d d" {
		t.Errorf("three partitions: %q", got)
	}
}

func selectOrder(t *testing.T, e *Endpoint) {
	tb := fourItems(t, e)
	for _, row := range []struct{ tail, want string }{
		{`WHERE pk = 'a' ORDER BY sk`, "10 20 30"},
		{`WHERE pk = 'a' ORDER BY sk ASC`, "10 20 30"},
		{`WHERE pk = 'a' ORDER BY "sk" desc`, "30 20 10"},
		{`WHERE pk = 'a' AND sk > 1 ORDER BY pk, sk DESC`, "30 20"},
		{`WHERE pk IN ['b', 'a'] ORDER BY pk`, "10 20 30 40"},
		{`WHERE pk IN ['a', 'b'] ORDER BY pk DESC`, "40 10 20 30"},
		{`WHERE pk IN ['a', 'b'] ORDER BY pk DESC, sk DESC`, "40 30 20 10"},
	} {
		if got := tb.selected(t, "n", 0, `SELECT * FROM $T `+row.tail); got != row.want {
			t.Errorf("%s: %q, want %q", row.tail, got, row.want)
		}
	}
	tb.refuseStatement(t, validation, "Must have WHERE clause in the statement when using ORDER BY clause.", `SELECT * FROM $T ORDER BY sk`)
	tb.refuseStatement(t, validation, "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.", `SELECT * FROM $T WHERE n = 1 ORDER BY sk`)
	tb.refuseStatement(t, validation, "Variable reference n in ORDER BY clause must be part of the primary key", `SELECT * FROM $T WHERE pk = 'a' ORDER BY n`)
	tb.refuseStatement(t, validation, "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause.", `SELECT * FROM $T WHERE pk IN ['a', 'b'] ORDER BY sk`)
}

// Indexes answer with their own attributes. A local one fetches others, a global one refuses them.
func selectIndex(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("byG", "g:S", "INCLUDE p"), local("byL", "pk:S l:N", "KEYS_ONLY"))
	tb.put(t, item("pk", "a", "sk", 1, "g", "x", "l", 2, "p", "P", "q", "Q"), item("pk", "a", "sk", 2))
	tb.execute(t, "", `SELECT * FROM $T."byG" WHERE g = 'x'`).want(t, "Items", `[{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"x"},"p":{"S":"P"}}]`)
	tb.execute(t, "", `SELECT * FROM $T."byG"`).want(t, "Items", `[{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"S":"x"},"p":{"S":"P"}}]`)
	tb.execute(t, "", `SELECT * FROM $T.byL WHERE pk = 'a' AND l > 1`).want(t, "Items", `[{"pk":{"S":"a"},"sk":{"N":"1"},"l":{"N":"2"}}]`)
	tb.execute(t, `,"ConsistentRead":true`, `SELECT q FROM $T.byL WHERE pk = 'a'`).want(t, "Items", `[{"q":{"S":"Q"}}]`)
	tb.execute(t, "", `SELECT sk FROM $T.byG WHERE q = 'Q'`).want(t, "Items", `[]`)
	tb.execute(t, "", `SELECT sk FROM $T.byG WHERE (g = 'x' AND q = 'Q') OR g = 'y'`).want(t, "Items", `[]`)
	tb.refuseStatement(t, validation, invalid+"Global secondary index byG does not project [q, r]", `SELECT q, r FROM $T.byG WHERE g = 'x'`)
	tb.refuseStatement(t, validation, invalid+"Secondary index byG does not project one or more filter attributes: [q]", `SELECT sk FROM $T.byG WHERE g IN ['x', 'y'] AND q = 'Q'`)
	tb.refuseStatement(t, validation, "The table does not have the specified index: none", `SELECT * FROM $T."none"`)
	tb.Endpoint.refuse(t, "ExecuteStatement", tb.statement(`SELECT sk FROM $T.byG WHERE g = 'x'`)+`,"ConsistentRead":true}`, validation, "Strongly consistent read is not supported on Global Secondary Indexes")
}

// PartiQL does not read an index whose partition key or sort key has several attributes. The rest of its
// table is served.
func selectCompositeIndex(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, match("m1", "cup", 1, "a", 10, "b"))
	const message = "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys."
	for _, tail := range []string{"", ` WHERE tour = 'cup' AND area = 1`, ` WHERE tour = 5`, ` WHERE tour = 'cup' ORDER BY round`} {
		tb.refuseStatement(t, validation, message, `SELECT * FROM $T."byRound"`+tail)
	}
	batch := tb.batch(t, "", tb.statement(`SELECT * FROM $T."byRound" WHERE tour = 'cup'`), tb.statement(`SELECT id FROM $T WHERE id = 'm1'`))
	batch.want(t, "Responses", `[{"Error":{"Code":"ValidationError","Message":"`+message+`"}},{"TableName":"`+tb.name+`","Item":{"id":{"S":"m1"}}}]`)
	tb.execute(t, "", `UPDATE $T SET area = 2 WHERE id = 'm1'`)
	tb.execute(t, "", `SELECT area FROM $T WHERE id = 'm1'`).want(t, "Items", `[{"area":{"N":"2"}}]`)
}

// What a SELECT costs shows whether it reads an item, a collection or the whole table.
func selectCapacity(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("byG", "g:S", "ALL"))
	big := strings.Repeat("x", 4000)
	tb.put(t, item("pk", "a", "sk", 1, "g", "x", "b", big), item("pk", "a", "sk", 2, "b", big), item("pk", "b", "sk", 1, "b", big), item("pk", "b", "sk", 2, "b", big))
	for _, row := range []struct{ text, options, want string }{
		{`SELECT sk FROM $T WHERE pk = 'a' AND sk = 1`, "", `0.5`},
		{`SELECT sk FROM $T WHERE pk = 'none' AND sk = 1`, "", `0.5`},
		{`SELECT sk FROM $T WHERE pk = 'a' AND sk = 1 AND b = 'none'`, `,"ConsistentRead":true`, `1`},
		{`SELECT sk FROM $T WHERE pk = 'a'`, "", `1`},
		{`SELECT sk FROM $T WHERE pk = 'a' AND sk > 1`, "", `0.5`},
		{`SELECT sk FROM $T WHERE pk = 'a' AND sk > 0 AND sk = 1`, "", `0.5`},
		{`SELECT sk FROM $T WHERE pk IN ['a', 'b']`, "", `2`},
		{`SELECT sk FROM $T WHERE pk = 'a' OR pk = 'b'`, "", `2`},
		{`SELECT sk FROM $T`, "", `2`},
		{`SELECT sk FROM $T WHERE sk = 1`, "", `2`},
		{`SELECT sk FROM $T WHERE pk = 'a' OR sk = 1`, `,"ConsistentRead":true`, `4`},
		{`SELECT sk FROM $T.byG WHERE g = 'x'`, "", `0.5`},
		{`INSERT INTO $T VALUE {'pk': 'c', 'sk': 1}`, "", `1`},
		{`UPDATE $T SET n = 1 WHERE pk = 'a' AND sk = 1`, "", `8`},
		{`DELETE FROM $T WHERE pk = 'b' AND sk = 1`, "", `4`},
	} {
		a := tb.execute(t, row.options+`,"ReturnConsumedCapacity":"TOTAL"`, row.text)
		a.want(t, "ConsumedCapacity", `{"TableName":"`+tb.name+`","CapacityUnits":`+row.want+`}`)
	}
	tb.execute(t, `,"ReturnConsumedCapacity":"INDEXES"`, `SELECT sk FROM $T.byG WHERE g = 'x'`).want(t, "ConsumedCapacity",
		`{"TableName":"`+tb.name+`","CapacityUnits":0.5,"Table":{"CapacityUnits":0},"GlobalSecondaryIndexes":{"byG":{"CapacityUnits":0.5}}}`)
	tb.execute(t, "", `SELECT sk FROM $T WHERE sk = 1`).wantAbsent(t, "ConsumedCapacity")
}

func selectRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.refuseStatement(t, notFound, "Requested resource not found", `SELECT * FROM "none-such-table" WHERE pk = 'a'`)
	tb.refuseStatement(t, validation, "Table name should be within the length [3, 255] and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'.", `SELECT * FROM "a b"`)
	tb.refuseStatement(t, validation, "Number of parameters in request and statement don't match.", `SELECT * FROM $T WHERE pk = ?`)
	tb.refuseStatement(t, validation, "Number of parameters in request and statement don't match.", `SELECT * FROM $T WHERE pk = '?'`, `{"S":"a"}`)
	tb.refuseStatement(t, validation, "Key attribute's data type should match its data type in table's schema: Key pk", `SELECT * FROM $T WHERE pk = 1`)
	tb.refuseStatement(t, validation, "Key attribute's data type should match its data type in table's schema: Key sk", `SELECT * FROM $T WHERE pk = 'a' AND sk > 'b'`)
	tb.refuseStatement(t, validation, "The parameter cannot be converted to a numeric value: abc", `SELECT * FROM $T WHERE pk = 'a' AND n = ?`, `{"N":"abc"}`)
	tb.refuseStatement(t, validation, "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL", `SELECT * FROM $T WHERE pk = 'a' AND n < ?`, `{"BOOL":true}`)
	tb.refuseStatement(t, validation, "Operator or function requires a document path; operator or function: attribute_exists", `SELECT * FROM $T WHERE attribute_exists('ss')`)
	tb.refuseStatement(t, validation, "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 0", `SELECT * FROM $T WHERE attribute_exists()`)
	tb.refuseStatement(t, validation, "Incorrect number of operands for operator or function; operator or function: begins_with, number of operands: 1", `SELECT * FROM $T WHERE pk = 'a' AND begins_with(sk)`)
	tb.refuseStatement(t, validation, "MISSING must be compared using IS operator", `SELECT * FROM $T WHERE n = MISSING`)
	tb.refuseStatement(t, validation, "EXISTS can only be used in ExecuteTransaction write requests.", `EXISTS(SELECT * FROM $T WHERE pk = 'a' AND sk = 1)`)
	tb.refuseStatement(t, validation, "Too many decomposed read operations for a given query.", `SELECT * FROM $T WHERE pk IN [`+numbered(51)+`]`)
	tb.execute(t, "", `SELECT * FROM $T WHERE pk IN [`+numbered(50)+`]`).want(t, "Items", "[]")
}

// Statements have the limits of expressions: 300 operators and functions, 32 elements of a path.
func statementLimits(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	const tooMany, tooDeep = "The expression contains too many operators; operator count: 301", "The document path has too many nesting levels; nesting levels: 33"
	anyOf := func(n int) string { return strings.Repeat("n=2 OR ", n-1) + "n=1" } // 2n-1 operators
	tb.execute(t, "", `SELECT pk FROM $T WHERE `+anyOf(150)).want(t, "Items", `[{"pk":{"S":"a"}}]`)
	path := func(n int) string { return "n" + strings.Repeat(".x", n-1) }
	for _, text := range []string{
		`SELECT * FROM $T WHERE ` + anyOf(151),
		`SELECT * FROM $T WHERE ` + strings.Repeat("5=5 OR ", 1000) + "n=1",
		`SELECT * FROM $T WHERE pk = 'a' AND (` + anyOf(151) + `)`,
		`UPDATE $T SET n = 2 WHERE pk = 'a' AND (` + anyOf(151) + `)`,
		`UPDATE $T SET n = n` + strings.Repeat("+1", 301) + ` WHERE pk = 'a'`,
		`DELETE FROM $T WHERE pk = 'a' AND (` + anyOf(151) + `)`,
	} {
		tb.refuseStatement(t, validation, tooMany, text)
	}
	tb.execute(t, "", `SELECT `+path(32)+` FROM $T WHERE `+path(32)+` IS MISSING`)
	for _, text := range []string{
		`SELECT ` + path(33) + ` FROM $T WHERE pk = 'a'`,
		`SELECT * FROM $T WHERE ` + path(33) + ` IS MISSING`,
		`UPDATE $T SET ` + path(33) + ` = 1 WHERE pk = 'a'`,
		`UPDATE $T SET n = ` + path(33) + ` WHERE pk = 'a'`,
		`UPDATE $T REMOVE ` + path(33) + ` WHERE pk = 'a'`,
		`DELETE FROM $T WHERE pk = 'a' AND ` + path(33) + ` = 1`,
	} {
		tb.refuseStatement(t, validation, tooDeep, text)
	}
	batch := tb.batch(t, "", tb.statement(`SELECT `+path(33)+` FROM $T WHERE pk = 'a'`))
	batch.want(t, "Responses", `[{"Error":{"Code":"ValidationError","Message":"`+tooDeep+`"}}]`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
}

// numbered returns n different strings as literals.
func numbered(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "'k" + strings.Repeat("x", i) + "'"
	}
	return strings.Join(list, ", ")
}

func insertItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("byG", "g:N", "ALL"))
	tb.execute(t, "", `INSERT INTO $T VALUE {'pk': 'a', 'sk': ?, 'v': 'first'}`, `{"N":"1"}`).want(t, "Items", "[]")
	tb.wantStored(t, item("pk", "a", "sk", 1), item("pk", "a", "sk", 1, "v", "first"))
	const duplicate = "DuplicateItemException"
	tb.refuseStatement(t, duplicate, "Duplicate primary key exists in table", `INSERT INTO $T VALUE {'pk': 'a', 'sk': 1, 'v': 'second'}`)
	tb.wantStored(t, item("pk", "a", "sk", 1), item("pk", "a", "sk", 1, "v", "first"))
	tb.execute(t, "", `DELETE FROM $T WHERE pk = 'a' AND sk = 1`)
	tb.execute(t, "", `INSERT INTO $T VALUE {'pk': 'a', 'sk': 1, 'v': 'third'}`)
	tb.wantStored(t, item("pk", "a", "sk", 1), item("pk", "a", "sk", 1, "v", "third"))

	tb.refuseStatement(t, validation, "Key attribute should be present in the item: Key sk", `INSERT INTO $T VALUE {'pk': 'a'}`)
	tb.refuseStatement(t, validation, "Key attribute's data type should match its data type in table's schema: Key pk", `INSERT INTO $T VALUE {'pk': 1, 'sk': 1}`)
	tb.refuseStatement(t, validation, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk", `INSERT INTO $T VALUE {'pk': '', 'sk': 1}`)
	tb.refuseStatement(t, validation, invalid+"Type mismatch for Index Key g Expected: N Actual: S IndexName: byG", `INSERT INTO $T VALUE {'pk': 'a', 'sk': 2, 'g': 'x'}`)
	tb.refuseStatement(t, validation, "Item size has exceeded the maximum allowed size", `INSERT INTO $T VALUE {'pk': 'a', 'sk': 2, 'v': ?}`, `{"S":"`+strings.Repeat("x", 400<<10)+`"}`)
}

// An UPDATE needs the whole key and an item. Its other conditions are conditions of the write.
func updateByStatement(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	start := item("pk", "a", "sk", 1, "n", 1, "l", []any{1}, "m", item("x", 1, "y", 2), "s", "str")
	for _, row := range []struct {
		changes string
		want    attributes
	}{
		{`SET n = 2`, item("n", 2)},
		{`SET n = n + 5`, item("n", 6)},
		{`SET n = 10 - n`, item("n", 9)},
		{`SET n = n + n - 3`, item("n", -1)},
		{`SET n = ? SET z = m.x`, item("n", 7, "z", 1)},
		{`SET n = ?, z = 'new'`, item("n", 7, "z", "new")},
		{`SET l = list_append(l, [2, 'x'])`, item("l", []any{1, 2, "x"})},
		{`SET l = LIST_APPEND([0], l)`, item("l", []any{0, 1})},
		{`SET m.x = {'deep': [1]} REMOVE m.y REMOVE s`, item("m", item("x", item("deep", []any{1})), "s", nil)},
		{`SET l[0] = 'zero' SET l[9] = 'end'`, item("l", []any{"zero", "end"})},
		{`REMOVE l[0] REMOVE none`, item("l", []any{})},
	} {
		tb.put(t, start)
		var parameters []string
		if strings.Contains(row.changes, "?") {
			parameters = []string{`{"N":"7"}`}
		}
		want := attributes{}
		for name, v := range start {
			want[name] = v
		}
		for name, v := range row.want {
			want[name] = v
		}
		if strings.Contains(row.changes, "REMOVE s") {
			delete(want, "s")
		}
		tb.execute(t, "", `UPDATE $T `+row.changes+` WHERE pk = 'a' AND sk = 1`, parameters...).want(t, "Items", "[]")
		tb.wantStored(t, item("pk", "a", "sk", 1), want)
		tb.put(t, start)
		tb.execute(t, "", `FROM $T WHERE pk = 'a' AND sk = 1 `+row.changes, parameters...)
		tb.wantStored(t, item("pk", "a", "sk", 1), want)
	}
	tb.put(t, start)
	tb.execute(t, "", `UPDATE $T SET n = 3 WHERE pk = 'a' AND sk = 1 AND n = 1 AND attribute_exists(s)`)
	const failed = "The conditional request failed"
	tb.refuseStatement(t, conditionFailed, failed, `UPDATE $T SET n = 4 WHERE pk = 'a' AND sk = 1 AND n = 1`)
	tb.refuseStatement(t, conditionFailed, failed, `UPDATE $T SET n = 4 WHERE pk = 'none' AND sk = 1`)
	tb.refuseStatement(t, conditionFailed, failed, `UPDATE $T REMOVE n WHERE pk = 'none' AND sk = 1`)
	tb.refuseStatement(t, conditionFailed, failed, `UPDATE $T SET n = 4 WHERE pk = 'none' AND sk = 1 AND attribute_not_exists(pk)`)
	tb.wantStored(t, item("pk", "none", "sk", 1), nil)
}

func updateSetsByStatement(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"ss":{"SS":["a","b"]},"ns":{"NS":["1","2"]},"s":{"S":"x"}}}`)
	for _, row := range []struct{ set, path, want string }{
		{`ss = set_add(ss, <<'c', 'a'>>)`, "ss", `{"SS":["a","b","c"]}`},
		{`ss = SET_DELETE(ss, <<'c', 'z'>>)`, "ss", `{"SS":["a","b"]}`},
		{`ns = set_add(ns, <<3>>)`, "ns", `{"NS":["1","2","3"]}`},
		{`fresh = set_add(fresh, <<'x'>>)`, "fresh", `{"SS":["x"]}`},
		{`ns = set_delete(ns, <<1, 2, 3>>)`, "ns", `null`},
		{`ns = set_delete(ns, <<1>>)`, "ns", `null`},
	} {
		a := tb.execute(t, "", `UPDATE $T SET `+row.set+` WHERE pk = 'a' RETURNING ALL NEW *`)
		items := answer{"Item": a["Items"].([]any)[0]}
		items.want(t, "Item."+row.path, row.want)
	}
	tb.execute(t, "", `UPDATE $T SET bs = set_add(bs, ?) WHERE pk = 'a' RETURNING MODIFIED NEW *`, `{"BS":["AQ=="]}`).want(t, "Items", `[{"bs":{"BS":["AQ=="]}}]`)
	for _, row := range []struct{ set, message string }{
		{`t = set_add(ss, <<'x'>>)`, `The first argument to SET_ADD must equal the assignment value at 1:…:7`},
		{`ss = set_add(<<'a'>>, <<'b'>>)`, `The first argument to SET_ADD must equal the assignment value at 1:…:7`},
		{`ss = set_add(ss, 'x')`, `The second argument to SET_ADD must be a value with type SET at 1:…:2`},
		{`ss = set_delete(ss, ['x'])`, `The second argument to SET_DELETE must be a value with type SET at 1:…:2`},
		{`ss = set_add(ss)`, `SET_ADD must have exactly two arguments at 1:…:7`},
		{`ss = set_add(ss, <<1>>)`, `An operand in the update expression has an incorrect data type`},
		{`s = set_add(s, <<'x'>>)`, `An operand in the update expression has an incorrect data type`},
		{`ss = set_add(ss, <<'x', 'x'>>)`, invalid + `Input collection [x, x] contains duplicates.`},
		{`ss = set_add(ss, <<>>)`, `Empty bags are not supported`},
	} {
		tb.refuseStatement(t, validation, row.message, `UPDATE $T SET `+row.set+` WHERE pk = 'a'`)
	}
	tb.refuseStatement(t, conditionFailed, "", `UPDATE $T SET ss = set_add(ss, <<'x'>>) WHERE pk = 'none'`)
}

// A DELETE of a missing item succeeds, with any conditions.
func deleteByStatement(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1), item("pk", "b", "n", 2))
	tb.execute(t, "", `DELETE FROM $T WHERE pk = 'a'`).want(t, "Items", "[]")
	tb.wantStored(t, item("pk", "a"), nil)
	tb.execute(t, "", `DELETE FROM $T WHERE pk = 'a' AND n = 5`).want(t, "Items", "[]")
	tb.refuseStatement(t, conditionFailed, "The conditional request failed", `DELETE FROM $T WHERE pk = 'b' AND n = 5`)
	tb.refuseStatement(t, conditionFailed, "The conditional request failed", `DELETE FROM $T WHERE pk = 'b' AND (n = 5 OR attribute_exists(none))`)
	tb.wantStored(t, item("pk", "b"), item("pk", "b", "n", 2))
	tb.execute(t, "", `DELETE FROM $T WHERE n = 2 AND pk = 'b'`)
	tb.wantStored(t, item("pk", "b"), nil)
}

func statementReturning(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ text, want string }{
		{`UPDATE $T SET n = n + 1 REMOVE v WHERE pk = 'a' RETURNING ALL OLD *`, `[{"pk":{"S":"a"},"n":{"N":"1"},"v":{"S":"x"},"w":{"S":"y"}}]`},
		{`UPDATE $T SET n = n + 1 REMOVE v WHERE pk = 'a' returning all new *`, `[{"pk":{"S":"a"},"n":{"N":"2"},"w":{"S":"y"}}]`},
		{`UPDATE $T SET n = n + 1 REMOVE v WHERE pk = 'a' RETURNING MODIFIED OLD *`, `[{"n":{"N":"1"},"v":{"S":"x"}}]`},
		{`UPDATE $T SET n = n + 1 REMOVE v WHERE pk = 'a' RETURNING MODIFIED NEW *`, `[{"n":{"N":"2"}}]`},
		{`UPDATE $T REMOVE v WHERE pk = 'a' RETURNING MODIFIED NEW *`, `[]`},
		{`DELETE FROM $T WHERE pk = 'a' RETURNING ALL OLD *`, `[{"pk":{"S":"a"},"n":{"N":"1"},"v":{"S":"x"},"w":{"S":"y"}}]`},
		{`DELETE FROM $T WHERE pk = 'none' RETURNING ALL OLD *`, `[]`},
	} {
		tb.put(t, item("pk", "a", "n", 1, "v", "x", "w", "y"))
		tb.execute(t, "", row.text).want(t, "Items", row.want)
	}
	tb.refuseStatement(t, validation, "Invalid returning clause: RETURNING ALL NEW *. Only RETURNING ALL OLD * is allowed in DELETE statements.", `DELETE FROM $T WHERE pk = 'a' RETURNING ALL NEW *`)
	tb.refuseStatement(t, validation, "RETURNING is not supported in INSERT", `INSERT INTO $T VALUE {'pk': 'b'} RETURNING ALL OLD *`)
}

func statementFailedItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	for onFailure, want := range map[types.ReturnValuesOnConditionCheckFailure]attributes{
		types.ReturnValuesOnConditionCheckFailureAllOld: item("pk", "a", "n", 1),
		types.ReturnValuesOnConditionCheckFailureNone:   nil,
		"": nil,
	} {
		for _, text := range []string{`UPDATE $T SET n = 2 WHERE pk = 'a' AND n = 9`, `DELETE FROM $T WHERE pk = 'a' AND n = 9`} {
			_, err := e.DB.ExecuteStatement(t.Context(), &dynamodb.ExecuteStatementInput{Statement: aws.String(tb.sql(text)), ReturnValuesOnConditionCheckFailure: onFailure})
			wantError(t, err, conditionFailed, "The conditional request failed")
			wantItem(t, "item in the error", failedItem(t, err), want)
		}
	}
}

func statementWritesRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	const key = "Where clause does not contain a mandatory equality on all key attributes"
	for _, tail := range []string{"", ` WHERE pk = 'a'`, ` WHERE pk = 'a' AND sk > 1`, ` WHERE n = 1`, ` WHERE pk = 'a' AND sk IN [1]`, ` WHERE pk = 'a' AND sk = 1 OR n = 1`} {
		tb.refuseStatement(t, validation, key, `UPDATE $T SET v = 1`+tail)
		tb.refuseStatement(t, validation, key, `DELETE FROM $T`+tail)
	}
	tb.refuseStatement(t, validation, key, `FROM $T SET c = 1`)
	tb.refuseStatement(t, validation, "Multiple conditions on same key pk. Only single item Update/Insert/Delete are supported", `UPDATE $T SET v = 1 WHERE pk = 'a' AND pk = 'b' AND sk = 1`)
	tb.refuseStatement(t, validation, "Key attribute's data type should match its data type in table's schema: Key sk", `DELETE FROM $T WHERE pk = 'a' AND sk = '1'`)
	tb.refuseStatement(t, validation, invalid+"Cannot update attribute sk. This attribute is part of the key", `UPDATE $T SET sk = 2 WHERE pk = 'a' AND sk = 1`)
	tb.refuseStatement(t, validation, "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [v], path two: [v]", `UPDATE $T SET v = 1 REMOVE v WHERE pk = 'a' AND sk = 1`)
	tb.refuseStatement(t, notFound, "Requested resource not found", `FROM "none-such-table" WHERE pk = 'x' SET c = 1`)
	tb.refuseStatement(t, validation, "This operation is not supported on an index", `UPDATE $T."ix" SET v = 1 WHERE pk = 'a' AND sk = 1`)
	tb.refuseStatement(t, validation, "FROM clause may only contain a single table name in data manipulation statements", `INSERT INTO $T."ix" VALUE {'pk': 'a', 'sk': 1}`)
	tb.put(t, item("pk", "a", "sk", 1, "s", "x"))
	tb.refuseStatement(t, validation, "An operand in the update expression has an incorrect data type", `UPDATE $T SET s = s + 1 WHERE pk = 'a' AND sk = 1`)
	tb.refuseStatement(t, validation, "The provided expression refers to an attribute that does not exist in the item", `UPDATE $T SET n = none + 1 WHERE pk = 'a' AND sk = 1`)
}

func statementSyntax(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const malformed = "Statement wasn't well formed, can't be processed: "
	for _, row := range []struct{ text, message string }{
		{`SLECT * FROM $T`, malformed + "Expected data manipulation"},
		{`SELECT * FROM $T WHERE pk = 'a' foo`, malformed + "Unexpected token after expression"},
		{`SELECT * FROM $T WHERE`, malformed + "Unexpected term"},
		{`SELECT * FROM $T WHERE pk = 'a' AND`, malformed + "Missing right-hand side expression of infix operator"},
		{`SELECT * FROM $T WHERE pk = 'a`, malformed},
		{`SELECT * FROM $T WHERE pk = 1e99999999999`, malformed},
		{`SELECT * FROM $T t WHERE pk = 'a'`, "Aliasing is not supported"},
		{`SELECT * FROM $T LIMIT 5`, "Unsupported clause: LIMIT at 1:…:1"},
		{`DELETE FROM $T WHERE pk = 'a' ORDER BY pk`, malformed + "Unexpected token after expression"},
		{`INSERT INTO $T VALUE {'pk': 'a', 'm': {'x': 1e126}}`, "Number overflow. Attempting to store a number with magnitude larger than supported range under root.x"},
		{`SELECT * FROM "none-such-table" WHERE`, malformed + "Unexpected term"},
	} {
		tb.refuseStatement(t, validation, row.message, row.text)
	}
}

func statementShape(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const prefix = "1 validation error detected: "
	for _, row := range []struct{ body, message string }{
		{`{}`, prefix + "Value null at 'statement' failed to satisfy constraint: Member must not be null"},
		{`{"Statement":""}`, prefix + "Value '' at 'statement' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{`{"Statement":"` + strings.Repeat("x", 8193) + `"}`, prefix + "Value '…' at 'statement' failed to satisfy constraint: Member must have length less than or equal to 8192"},
		{tb.statement(`SELECT * FROM $T`, []string{}...) + `,"Parameters":[]}`, prefix + "Value '[]' at 'parameters' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{tb.statement(`SELECT * FROM $T`) + `,"Limit":0}`, prefix + "Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{tb.statement(`SELECT * FROM $T`) + `,"ReturnConsumedCapacity":"X"}`, prefix + "Value 'X' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: …"},
	} {
		tb.Endpoint.refuse(t, "ExecuteStatement", row.body, validation, row.message)
	}
}

// No statement shows an expired item.
func expiryHiddenFromStatements(t *testing.T, e *Endpoint) {
	tb := expired(t, e, global("byG", "g:S l:N", "ALL"), local("byL", "pk:S l:N", "KEYS_ONLY"))
	for _, text := range []string{
		`SELECT * FROM $T`, `SELECT sk FROM $T WHERE pk = 'p'`, `SELECT sk, n FROM $T WHERE n < 5`, `SELECT * FROM $T WHERE pk = 'p' ORDER BY sk DESC`,
		`SELECT sk FROM $T WHERE pk IN ['p', 'q']`, `SELECT * FROM $T.byG WHERE g = 'x'`, `SELECT n, sk FROM $T.byL WHERE pk = 'p'`, `SELECT sk FROM $T.byL`,
		`SELECT sk FROM $T WHERE n IS NOT MISSING OR pk = 'p'`,
	} {
		for limit := range 3 {
			if got := tb.selected(t, "sk", limit, text); got != "2" {
				t.Errorf("limit %d: %s: sk %q, want 2", limit, text, got)
			}
		}
	}
	tb.execute(t, "", `SELECT * FROM $T WHERE pk = 'p' AND sk = 1`).want(t, "Items", "[]")
	a := e.ok(t, "BatchExecuteStatement", list("Statements", tb.statement(`SELECT sk FROM $T WHERE pk = 'p' AND sk = 1`), tb.statement(`SELECT sk FROM $T WHERE pk = 'p' AND sk = 2`))+"}")
	a.want(t, "Responses", `[{"TableName":"`+tb.name+`"},{"TableName":"`+tb.name+`","Item":{"sk":{"N":"2"}}}]`)
}

// Statements that write treat an expired item as missing.
func expiryHiddenFromStatementWrites(t *testing.T, e *Endpoint) {
	tb := expired(t, e)
	key := item("pk", "p", "sk", 1)
	tb.refuseStatement(t, conditionFailed, "", `UPDATE $T SET n = 9 WHERE pk = 'p' AND sk = 1`)
	tb.refuseStatement(t, conditionFailed, "", `UPDATE $T SET n = n + 1 WHERE pk = 'p' AND sk = 1 AND n = 1 RETURNING ALL OLD *`)
	tb.execute(t, "", `DELETE FROM $T WHERE pk = 'p' AND sk = 1 AND n = 7 RETURNING ALL OLD *`).want(t, "Items", "[]")
	tb.wantStored(t, key, nil)
	tb.execute(t, "", `INSERT INTO $T VALUE {'pk': 'p', 'sk': 1, 'life': 2}`)
	tb.wantStored(t, key, item("pk", "p", "sk", 1, "life", 2))
	tb.execute(t, "", `UPDATE $T SET n = 9 WHERE pk = 'p' AND sk = 2 AND n = 2`)
	tb.wantStored(t, item("pk", "p", "sk", 2), item("pk", "p", "sk", 2, "g", "x", "l", 2, "n", 9))

	again := expired(t, e)
	again.execute(t, "", `DELETE FROM $T WHERE pk = 'p' AND sk = 1 RETURNING ALL OLD *`).want(t, "Items", "[]")
	again.execute(t, "", `DELETE FROM $T WHERE pk = 'p' AND sk = 2 RETURNING ALL OLD *`).want(t, "Items", `[{"pk":{"S":"p"},"sk":{"N":"2"},"g":{"S":"x"},"l":{"N":"2"},"n":{"N":"2"}}]`)

	batch := expired(t, e)
	a := e.ok(t, "BatchExecuteStatement", list("Statements",
		batch.statement(`UPDATE $T SET n = 9 WHERE pk = 'p' AND sk = 1`), batch.statement(`INSERT INTO $T VALUE {'pk': 'p', 'sk': 1, 'life': 2}`))+"}")
	a.want(t, "Responses", `[{"TableName":"`+batch.name+`","Error":{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}},{"TableName":"`+batch.name+`"}]`)
	batch.wantStored(t, key, item("pk", "p", "sk", 1, "life", 2))
}

func expiryHiddenFromStatementTransactions(t *testing.T, e *Endpoint) {
	tb := expired(t, e)
	a := e.ok(t, "ExecuteTransaction", list("TransactStatements", tb.statement(`SELECT sk FROM $T WHERE pk = 'p' AND sk = 1`), tb.statement(`SELECT sk FROM $T WHERE pk = 'p' AND sk = 2`))+"}")
	a.want(t, "Responses", `[{},{"Item":{"sk":{"N":"2"}}}]`)
	insert := tb.statement(`INSERT INTO $T VALUE {'pk': 'q', 'sk': 1}`)
	failing := func(text string) {
		t.Helper()
		_, err := e.call("ExecuteTransaction", list("TransactStatements", tb.statement(text), insert)+"}")
		wantError(t, err, transactCanceled, "Transaction cancelled, please refer cancellation reasons for specific reasons [ConditionalCheckFailed, None]")
	}
	failing(`UPDATE $T SET n = 9 WHERE pk = 'p' AND sk = 1`)
	failing(`EXISTS(SELECT * FROM $T WHERE pk = 'p' AND sk = 1 AND n = 1)`)
	e.ok(t, "ExecuteTransaction", list("TransactStatements", tb.statement(`EXISTS(SELECT * FROM $T WHERE pk = 'p' AND sk = 2 AND n = 2)`), tb.statement(`INSERT INTO $T VALUE {'pk': 'p', 'sk': 1, 'life': 2}`), insert)+"}")
	tb.wantStored(t, item("pk", "p", "sk", 1), item("pk", "p", "sk", 1, "life", 2))
}

// Until their removal, expired items are ordinary items for statements.
func lateSeenByStatements(t *testing.T, e *Endpoint) {
	tb := late(t, e)
	if got := tb.selected(t, "sk", 0, `SELECT * FROM $T WHERE pk = 'p'`); got != "1 2" {
		t.Errorf("query: %q", got)
	}
	tb.refuseStatement(t, "DuplicateItemException", "", `INSERT INTO $T VALUE {'pk': 'p', 'sk': 1}`)
	tb.execute(t, "", `UPDATE $T SET n = 9 WHERE pk = 'p' AND sk = 1 AND l = 1`)
	tb.Advance(tb.RemovedWithin + time.Second)
	tb.awaitGoneItem(t, item("pk", "p", "sk", 1))
	tb.refuseStatement(t, conditionFailed, "", `UPDATE $T SET n = 9 WHERE pk = 'p' AND sk = 1`)
	tb.execute(t, "", `INSERT INTO $T VALUE {'pk': 'p', 'sk': 1}`)
}
