package conformance

import "testing"

var updateExpressionChecks = []check{
	{"Effects", updateExpressionEffects},
	{"AllSeeTheOldItem", updateExpressionAllSeeTheOldItem},
	{"Arithmetic", updateExpressionArithmetic},
	{"Syntax", updateExpressionSyntax},
	{"Paths", updateExpressionPaths},
	{"Operands", updateExpressionOperands},
	{"FailsOnData", updateExpressionFailsOnData},
	{"KeyPaths", updateExpressionKeyPaths},
}

// updateValues are the values that the update expressions below name.
var updateValues = map[string]string{
	":1": `{"N":"1"}`, ":2": `{"N":"2"}`, ":n": `{"N":"-0.5"}`, ":s": `{"S":"s"}`, ":l": `{"L":[{"N":"8"},{"N":"9"}]}`, ":e": `{"L":[]}`, ":m": `{"M":{"x":{"N":"1"}}}`,
	":ss": `{"SS":["b","c"]}`, ":ab": `{"SS":["a","b"]}`, ":ns": `{"NS":["1"]}`, ":bs": `{"BS":["AQ=="]}`, ":t": `{"BOOL":true}`, ":z": `{"NULL":true}`,
	":max": `{"N":"99999999999999999999999999999999999999"}`, ":tiny": `{"N":"0.1"}`, ":huge": `{"N":"9.9E+125"}`,
}

// updateBody returns an UpdateItem request with the values that the expression names.
func updateBody(expression string) string {
	return `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"` + expression + `"` + valuesFor(expression, updateValues) + `}`
}

// The effect of each action on an item.
func updateExpressionEffects(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct {
		before     attributes // beside the key
		expression string
		after      attributes
	}{
		{item(), "SET a = :1, b = :s", item("a", 1, "b", "s")},
		{item("a", 1), "set a = a + :2", item("a", 3)},
		{item("a", 1), "SET a = a - :2", item("a", -1)},
		{item("a", 1, "b", 5), "SET c = b - a", item("a", 1, "b", 5, "c", 4)},
		{item("a", 1), "SET b = a", item("a", 1, "b", 1)},
		{item("a", 1), "SET a = if_not_exists(a, :2), b = if_not_exists(b, :2)", item("a", 1, "b", 2)},
		{item(), "SET a = if_not_exists(a, :1) + :2", item("a", 3)},
		{item("l", []any{7}), "SET l = list_append(l, :l)", item("l", []any{7, 8, 9})},
		{item("l", []any{7}), "SET l = list_append(:l, l)", item("l", []any{8, 9, 7})},
		{item(), "SET l = list_append(if_not_exists(l, :e), :l)", item("l", []any{8, 9})},
		{item("l", []any{7, 8}), "SET l[0] = :1", item("l", []any{1, 8})},
		{item("l", []any{7, 8}), "SET l[5] = :1", item("l", []any{7, 8, 1})},
		{item("l", []any{7, 8}), "SET l[9] = :1, l[5] = :2", item("l", []any{7, 8, 2, 1})},
		{item("m", item("x", 1)), "SET m.y = :2, m.x = :s", item("m", item("x", "s", "y", 2))},
		{item("m", item("l", []any{item("x", 1)})), "SET m.l[0].y = :2", item("m", item("l", []any{item("x", 1, "y", 2)}))},
		{item("a", 1, "b", 2), "REMOVE a", item("b", 2)},
		{item("a", 1), "REMOVE nope, a", item()},
		{item("l", []any{0, 1, 2, 3, 4}), "REMOVE l[1], l[3]", item("l", []any{0, 2, 4})},
		{item("l", []any{0, 1}), "REMOVE l[7]", item("l", []any{0, 1})},
		{item("m", item("x", 1, "y", 2)), "REMOVE m.x, m.nope", item("m", item("y", 2))},
		{item("a", 1), "ADD a :2, b :1", item("a", 3, "b", 1)},
		{item("s", stringSet{"a", "b"}), "ADD s :ss", item("s", stringSet{"a", "b", "c"})},
		{item(), "ADD s :ss", item("s", stringSet{"b", "c"})},
		{item("m", item("n", 1)), "ADD m.n :2", item("m", item("n", 3))},
		{item("s", stringSet{"a", "b"}), "DELETE s :ss", item("s", stringSet{"a"})},
		{item("s", stringSet{"b"}), "DELETE s :ss", item()}, // a set that becomes empty goes
		{item(), "DELETE s :ss", item()},
		{item("s", numberSet{"1", "2.50"}), "DELETE s :ns", item("s", numberSet{"2.5"})},
		{item("s", numberSet{"1", "2"}), "ADD s :ns", item("s", numberSet{"1", "2"})},
		{item("m", item("l", []any{1})), "ADD m.l[0] :2", item("m", item("l", []any{3}))},
		{item("m", item("l", []any{1})), "SET m.l[3] = if_not_exists(m.l[3], m.l[0])", item("m", item("l", []any{1, 1}))},
		{item("l", []any{1}), "SET l = list_append(l, l)", item("l", []any{1, 1})},
		{item("m", item("x", 1)), "SET n = m, m = :l", item("n", item("x", 1), "m", []any{8, 9})},
		{item("a", 1, "b", 1, "s", stringSet{"b", "x"}), "SET c = :1 REMOVE a ADD b :2 DELETE s :ss", item("b", 3, "c", 1, "s", stringSet{"x"})},
		{item("a", 1), "REMOVE a SET b = a", item("b", 1)},
		{item("a", 1), "SET a = (a + :2)", item("a", 3)},
	} {
		t.Run(row.expression, func(t *testing.T) {
			row.before["pk"], row.after["pk"] = value("a"), value("a")
			tb.put(t, row.before)
			tb.ok(t, "UpdateItem", updateBody(row.expression))
			tb.wantStored(t, item("pk", "a"), row.after)
		})
	}
}

// All right-hand sides are read before anything is written, so two attributes can change places.
func updateExpressionAllSeeTheOldItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "x", 1, "y", 2, "l", []any{0, 1, 2}))
	tb.ok(t, "UpdateItem", updateBody("SET x = y, y = x, l[0] = l[2] REMOVE l[2]"))
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "x", 2, "y", 1, "l", []any{2, 1}))
}

// Sums are exact to 38 digits, and refused beyond the range.
func updateExpressionArithmetic(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ before, expression, after string }{
		{"0.1", "SET a = a + :2", "2.1"},
		{"1", "SET a = a + :n", "0.5"},
		{"0.5", "ADD a :n", "0"},
		{"99999999999999999999999999999999999998", "ADD a :1", "99999999999999999999999999999999999999"},
		{"-1E-130", "SET a = a - a", "0"},
	} {
		tb.put(t, item("pk", "a", "a", number(row.before)))
		tb.ok(t, "UpdateItem", updateBody(row.expression))
		tb.wantStored(t, item("pk", "a"), item("pk", "a", "a", number(row.after)))
	}
	tb.put(t, item("pk", "a", "a", number("9.9E+125")))
	tb.refuse(t, "UpdateItem", updateBody("ADD a :huge"), validation, "Number overflow. Attempting to store a number with magnitude larger than supported range")
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"a = :h","ExpressionAttributeValues":{":h":{"N":"9.9E+125"}}}`)
}

// refuseUpdate checks that an update expression is refused, in the envelope that UpdateItem puts
// around such messages.
func refuseUpdate(t *testing.T, tb *table, expression, message string) {
	t.Helper()
	tb.refuse(t, "UpdateItem", updateBody(expression), validation, "1 validation error detected: Invalid UpdateExpression: "+message)
}

func updateExpressionSyntax(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	refuseUpdate(t, tb, "", "The expression can not be empty;")
	for expression, token := range map[string]string{
		"SET": "<EOF>", "SET a": "<EOF>", "SET a =": "<EOF>", "SET a = :1,": "<EOF>", "SET a :1": ":1", "a = :1": "a", "REMOVE": "<EOF>", "REMOVE a = :1": "=", "ADD a": "<EOF>",
		"SET a = :1 +": "<EOF>", "SET a = :1 + :2 + :1": "+", "SET a = :1 * :2": "*", "FOO a = :1": "FOO",
	} {
		t.Run(expression, func(t *testing.T) {
			refuseUpdate(t, tb, expression, `Syntax error; token: "`+token+`", near: "…"`)
		})
	}
	refuseUpdate(t, tb, "SET a = :1 SET b = :2", `The "SET" section can only be used once in an update expression;`)
	refuseUpdate(t, tb, "REMOVE a REMOVE b", `The "REMOVE" section can only be used once in an update expression;`)
	refuseUpdate(t, tb, "SET name = :1", "Attribute name is a reserved keyword; reserved keyword: name")
	refuseUpdate(t, tb, "SET a = f(:1)", "Invalid function name; function: f")
	refuseUpdate(t, tb, "SET a = size(b)", "The function is not allowed in an update expression; function: size")
	refuseUpdate(t, tb, "SET a = :nope", "An expression attribute value used in expression is not defined; attribute value: :nope")
	refuseUpdate(t, tb, "SET #nope = :1", "An expression attribute name used in the document path is not defined; attribute name: #nope")
	tb.wantStored(t, item("pk", "a"), nil)
}

// No two actions may name overlapping paths, or paths that disagree whether an element is a map or
// a list.
func updateExpressionPaths(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	refuseUpdate(t, tb, "SET a = :1, a = :2", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]")
	refuseUpdate(t, tb, "SET a = :1 REMOVE a.b", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a, b]")
	refuseUpdate(t, tb, "SET a.b[1].c = :1, a.b[1] = :2", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, b, [1], c], path two: [a, b, [1]]")
	refuseUpdate(t, tb, "SET a.b = :1, a[0] = :2", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]")
}

func updateExpressionOperands(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ expression, message string }{
		{"ADD a :s", "Incorrect operand type for operator or function; operator: ADD, operand type: STRING"},
		{"ADD a :t", "Incorrect operand type for operator or function; operator: ADD, operand type: BOOLEAN"},
		{"ADD a :l", "Incorrect operand type for operator or function; operator: ADD, operand type: LIST"},
		{"ADD a :m", "Incorrect operand type for operator or function; operator: ADD, operand type: MAP"},
		{"ADD a :z", "Incorrect operand type for operator or function; operator: ADD, operand type: NULL"},
		{"DELETE a :1", "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER"},
		{"SET a = a + :s", "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"SET a = :t - a", "Incorrect operand type for operator or function; operator or function: -, operand type: BOOL"},
		{"SET a = list_append(a, :1)", "Incorrect operand type for operator or function; operator or function: list_append, operand type: N"},
		{"SET a = list_append(a)", "Incorrect number of operands for operator or function; operator or function: list_append, number of operands: 1"},
		{"SET a = if_not_exists(:1, :2)", "Operator or function requires a document path; operator or function: if_not_exists"},
		{"SET a = if_not_exists(a, b, :2)", "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 3"},
	} {
		t.Run(row.expression, func(t *testing.T) { refuseUpdate(t, tb, row.expression, row.message) })
	}
	tb.wantStored(t, item("pk", "a"), nil)
}

// A fault that only the stored item reveals is refused without the expression's name, and nothing
// is written.
func updateExpressionFailsOnData(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	stored := item("pk", "a", "s", "text", "l", []any{1}, "ss", stringSet{"a"}, "n", 1)
	tb.put(t, stored)
	const (
		incorrect = "An operand in the update expression has an incorrect data type"
		missing   = "The provided expression refers to an attribute that does not exist in the item"
		path      = "The document path provided in the update expression is invalid for update"
	)
	for _, row := range []struct{ expression, message string }{
		{"SET x = s + :1", incorrect},
		{"SET x = list_append(s, :l)", incorrect},
		{"ADD s :1", incorrect},
		{"ADD ss :ns", incorrect},
		{"DELETE n :ss", incorrect},
		{"SET x = nope + :1", missing},
		{"SET x = nope", missing},
		{"SET x = list_append(nope, :l)", missing},
		{"SET n = :1, x = nope", missing},
		{"SET nope.x = :1", path},
		{"SET nope[0] = :1", path},
		{"SET s.x = :1", path},
		{"SET l.x = :1", path},
		{"SET n[0] = :1", path},
		{"SET l[7].x = :1", path},
		{"SET l[0].x = :1", path},
		{"ADD nope.x :1", path},
		{"REMOVE nope.x", path},
		{"REMOVE s[0]", path},
	} {
		t.Run(row.expression, func(t *testing.T) {
			tb.refuse(t, "UpdateItem", updateBody(row.expression), validation, row.message)
		})
	}
	tb.wantStored(t, item("pk", "a"), stored)
}

// Keys are scalars: no path leads into them.
func updateExpressionKeyPaths(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	const scalars = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	tb.refuse(t, "UpdateItem", updateBody("SET pk.x = :1"), validation, invalid+"Cannot update attribute pk. This attribute is part of the key")
	tb.refuse(t, "UpdateItem", updateBody("SET g[0] = :1"), validation, "…"+scalars+"IndexKey: g")
	tb.refuse(t, "UpdateItem", updateBody("ADD pk :1"), validation, invalid+"Cannot update attribute pk. This attribute is part of the key")
}
