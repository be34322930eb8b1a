package conformance

import (
	"strings"
	"testing"
)

var conditionExpressionChecks = []check{
	{"Truth", conditionTruth},
	{"TruthOfMissing", conditionTruthOfMissing},
	{"Sizes", conditionSizes},
	{"Precedence", conditionPrecedence},
	{"Placeholders", conditionPlaceholders},
	{"Syntax", conditionSyntax},
	{"Parentheses", conditionParentheses},
	{"Operands", conditionOperands},
	{"Limits", conditionLimits},
	{"ReservedWords", conditionReservedWords},
}

// specimen is the item that conditions are tried on, and specimenValues the values that they may
// name.
const (
	specimen = `{"pk":{"S":"a"},"s":{"S":"hello"},"u":{"S":"é🦋"},"n":{"N":"5"},"b":{"B":"AQI="},"t":{"BOOL":true},"z":{"NULL":true},
		"ss":{"SS":["x","y"]},"ns":{"NS":["1","2.0"]},"bs":{"BS":["AQ=="]},
		"l":{"L":[{"S":"x"},{"N":"1"},{"M":{"d":{"N":"7"}}}]},"m":{"M":{"k":{"S":"v"},"n":{"N":"5"}}}}`
)

var specimenValues = map[string]string{
	":hello": `{"S":"hello"}`, ":he": `{"S":"he"}`, ":ell": `{"S":"ell"}`, ":z": `{"S":"z"}`, ":x": `{"S":"x"}`, ":v": `{"S":"v"}`, ":empty": `{"S":""}`,
	":0": `{"N":"0"}`, ":1": `{"N":"1"}`, ":2": `{"N":"2"}`, ":3": `{"N":"3"}`, ":5": `{"N":"5.0"}`, ":7": `{"N":"7"}`, ":9": `{"N":"9"}`,
	":b12": `{"B":"AQI="}`, ":b1": `{"B":"AQ=="}`, ":true": `{"BOOL":true}`, ":false": `{"BOOL":false}`, ":null": `{"NULL":true}`,
	":yx": `{"SS":["y","x"]}`, ":12": `{"NS":["2","1"]}`, ":m": `{"M":{"n":{"N":"5"},"k":{"S":"v"}}}`, ":l": `{"L":[{"S":"x"},{"N":"1.0"},{"M":{"d":{"N":"7"}}}]}`,
	":S": `{"S":"S"}`, ":N": `{"S":"N"}`, ":B": `{"S":"B"}`, ":BOOL": `{"S":"BOOL"}`, ":NULL": `{"S":"NULL"}`, ":L": `{"S":"L"}`, ":M": `{"S":"M"}`,
	":SS": `{"S":"SS"}`, ":NS": `{"S":"NS"}`, ":BS": `{"S":"BS"}`, ":nosuch": `{"S":"STRING"}`,
}

// valuesOf returns the values that an expression names, as a member with a leading comma.
func valuesOf(expression string) string { return valuesFor(expression, specimenValues) }

// wantTruth checks the result of each condition on the specimen. It tries a condition by putting
// the same item again.
func wantTruth(t *testing.T, e *Endpoint, truth map[bool][]string) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "PutItem", `{"Item":`+specimen+`}`)
	for want, conditions := range truth {
		for _, condition := range conditions {
			body := `{"Item":` + specimen + `,"ConditionExpression":"` + condition + `"` + valuesOf(condition) + `}`
			if want {
				if _, err := e.call("PutItem", tb.fill(body)); err != nil {
					t.Errorf("%s: got %v, want true", condition, err)
				}
				continue
			}
			if problem := errorProblem(refusal(e.call("PutItem", tb.fill(body))), conditionFailed, ""); problem != "" {
				t.Errorf("%s:\n%s", condition, problem)
			}
		}
	}
}

// refusal returns the error of a call.
func refusal(_ answer, err error) error { return err }

func conditionTruth(t *testing.T, e *Endpoint) {
	wantTruth(t, e, map[bool][]string{
		true: {
			"s = :hello", "s <> :z", "s < :z", "s <= :hello", "s > :he", "s >= :hello", "n = :5", "n < :9", ":1 < n", "b = :b12", "b > :b1", "t = :true", "z = :null",
			"ss = :yx", "ns = :12", "m = :m", "l = :l", "m.n = n", "m.k <> n",
			"n BETWEEN :1 AND :9", "n BETWEEN :5 AND :5", "s BETWEEN :he AND :z", "n IN (:1, :5)", "n IN (m.n)", "s IN (:z, :hello)",
			"attribute_exists(s)", "attribute_exists(l[2].d)", "attribute_exists(m.k)", "attribute_not_exists(nope)", "attribute_not_exists(l[3])", "attribute_not_exists(m.nope)", "attribute_not_exists(s.deeper)",
			"attribute_type(s, :S)", "attribute_type(n, :N)", "attribute_type(b, :B)", "attribute_type(t, :BOOL)", "attribute_type(z, :NULL)",
			"attribute_type(l, :L)", "attribute_type(m, :M)", "attribute_type(ss, :SS)", "attribute_type(ns, :NS)", "attribute_type(bs, :BS)",
			"begins_with(s, :he)", "begins_with(s, :empty)", "begins_with(b, :b1)", "contains(s, :ell)", "contains(ss, :x)", "contains(ns, :2)", "contains(bs, :b1)", "contains(l, :1)", "contains(b, :b1)",
			"l[0] = :x", "l[2].d = :7", "not n = :9", "NOT contains(s, :z)",
			"s = :hello AND n = :5", "s = :z OR n = :5", "s = :z or NOT (n = :9 and t = :true)",
		},
		false: {
			"s = :z", "s <> :hello", "s < :hello", "n > :9", "t = :false", "t <> :true", "n BETWEEN :7 AND :9", "n IN (:1, :9)", "l[1] = :x", "l[9] = :x", "m.nope = :x",
			"attribute_exists(nope)", "attribute_exists(s.deeper)", "attribute_not_exists(s)", "attribute_type(s, :N)", "begins_with(s, :ell)", "contains(s, :z)", "contains(ss, :z)", "contains(l, :2)",
			"NOT s = :hello", "s = :hello AND n = :9", "s = :z OR n = :9",
			// Values of different types are never equal and have no order.
			"s = :5", "n = :hello", "s < :9", "s > :0", "n < :z", "ss = :x", "contains(s, :5)", "contains(ss, :5)", "contains(n, :5)", "begins_with(n, :he)",
		},
	})
}

// For a missing attribute only <> and NOT are true; two missing attributes are not equal.
func conditionTruthOfMissing(t *testing.T, e *Endpoint) {
	wantTruth(t, e, map[bool][]string{
		true:  {"nope <> :x", "NOT nope = :x", "NOT nope < :5", "NOT begins_with(nope, :x)", "NOT contains(nope, :x)", "NOT nope IN (:x)", "NOT nope BETWEEN :1 AND :2"},
		false: {"nope = :x", "nope < :5", "nope > :5", "nope = nada", "begins_with(nope, :x)", "contains(nope, :x)", "nope IN (:x)", "nope BETWEEN :1 AND :2", "size(nope) > :0", "size(nope) = :0"},
	})
}

// size counts UTF-16 units, bytes and elements; numbers and booleans have none.
func conditionSizes(t *testing.T, e *Endpoint) {
	wantTruth(t, e, map[bool][]string{
		true:  {"size(s) = :5", "size(u) = :3", "size(b) = :2", "size(ss) = :2", "size(bs) = :1", "size(l) = :3", "size(m) = :2", "size(m.k) = :1", "size(l) > size(m)", "size(s) IN (:5)", "size(s) BETWEEN :1 AND :9", "n = size(s)"},
		false: {"size(n) > :0", "size(t) > :0", "size(z) > :0", "size(s) = :2"},
	})
}

// NOT binds more tightly than AND, AND than OR, and parentheses change it.
func conditionPrecedence(t *testing.T, e *Endpoint) {
	wantTruth(t, e, map[bool][]string{
		true:  {"n = :5 OR n = :1 AND s = :z", "NOT n = :1 AND n = :5", "NOT (n = :1 OR n = :9)", "NOT NOT n = :5", "(n = :1 OR n = :5) AND s = :hello"},
		false: {"(n = :5 OR n = :1) AND s = :z", "NOT (n = :1 OR n = :5)", "NOT n = :5 OR s = :z"},
	})
}

// Names of attributes may come as placeholders, also within a path; a dot in one is part of the
// name.
func conditionPlaceholders(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"a.b":{"N":"1"},"m":{"M":{"size":{"N":"2"}}},"name":{"N":"3"}}}`)
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"#dotted = :1 AND m.#size = :2 AND #name = :3 AND attribute_not_exists(#none)",
		"ExpressionAttributeNames":{"#dotted":"a.b","#size":"size","#name":"name","#none":"m.size"},"ExpressionAttributeValues":{":1":{"N":"1"},":2":{"N":"2"},":3":{"N":"3"}}}`)
}

// refuseCondition checks that PutItem, whose messages have an envelope, and DeleteItem, whose
// messages have none, refuse a condition.
func refuseCondition(t *testing.T, tb *table, condition, message string) {
	t.Helper()
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"`+condition+`"`+valuesOf(condition)+`}`, validation,
		"1 validation error detected: Invalid ConditionExpression: "+message)
	tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"`+condition+`"`+valuesOf(condition)+`}`, validation,
		"Invalid ConditionExpression: "+message)
}

func conditionSyntax(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	refuseCondition(t, tb, "", "The expression can not be empty;")
	for condition, token := range map[string]string{
		"a =": "<EOF>", "= a": "=", "a = = b": "=", "a b": "b", "(a = b": "<EOF>", "a = b)": ")", "a = b AND": "<EOF>", "a BETWEEN b": "<EOF>",
		"a IN ()": ")", "a IN (b": "<EOF>", "attribute_exists(a": "<EOF>", "a": "<EOF>", "a[": "<EOF>", "a. = b": "=", "a & b": "&", "a == b": "=",
		"NOT": "<EOF>", "()": ")", "a = b c": "c",
	} {
		t.Run(condition, func(t *testing.T) {
			refuseCondition(t, tb, condition, `Syntax error; token: "`+token+`", near: "…"`)
		})
	}
}

// Ten thousand parentheses are too long an expression; as many as fit are still refused, and do not
// bring the endpoint down.
func conditionParentheses(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	refuseCondition(t, tb, strings.Repeat("(", 5000)+"a=b"+strings.Repeat(")", 5000), "Expression size has exceeded the maximum allowed size; expression size: 10003")
	deep := strings.Repeat("(", 2000) + "a = b" + strings.Repeat(")", 2000)
	tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"`+deep+`"}`, validation, "Invalid ConditionExpression: …")
}

func conditionOperands(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ condition, message string }{
		{"((a = b))", "The expression has redundant parentheses;"},
		{"f(a)", "Invalid function name; function: f"},
		{"Attribute_exists(a)", "Invalid function name; function: Attribute_exists"},
		{"attribute_exists(a) = b", "The function is not allowed to be used this way in an expression; function: attribute_exists"},
		{"size(a)", "The function is not allowed to be used this way in an expression; function: size"},
		{"if_not_exists(a, b) = c", "The function is not allowed in a condition expression; function: if_not_exists"},
		{"a = :nope", "An expression attribute value used in expression is not defined; attribute value: :nope"},
		{"#nope = b", "An expression attribute name used in the document path is not defined; attribute name: #nope"},
		{"attribute_exists(a, b)", "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
		{"begins_with(a)", "Incorrect number of operands for operator or function; operator or function: begins_with, number of operands: 1"},
		{"attribute_exists(:x)", "Operator or function requires a document path; operator or function: attribute_exists"},
		{"begins_with(a, :1)", "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{"attribute_type(a, :1)", "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N"},
		{"attribute_type(a, :nosuch)", "Invalid attribute type name found; type: STRING, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"},
		{"a < :true", "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
		{"a > :yx", "Incorrect operand type for operator or function; operator or function: >, operand type: SS"},
		{"size(:1) = a", "Incorrect operand type for operator or function; operator or function: size, operand type: N"},
		{"a = a", "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]"},
		{"contains(a.b[1], a.b[1])", "The first operand must be distinct from the remaining operands for this operator or function; operator: contains, first operand: [a, b, [1]]"},
		{"a BETWEEN :x AND :1", "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {S:x}, upper bound operand: AttributeValue: {N:1}"},
		{"a BETWEEN :2 AND :1", "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}"},
	} {
		t.Run(row.condition, func(t *testing.T) { refuseCondition(t, tb, row.condition, row.message) })
	}
}

// Expressions have at most 4,096 bytes and 300 operators, and IN at most 100 operands.
func conditionLimits(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"attribute_not_exists(`+strings.Repeat("a", 4096-len("attribute_not_exists()"))+`)"}`)
	refuseCondition(t, tb, "attribute_not_exists("+strings.Repeat("a", 4097-len("attribute_not_exists()"))+")",
		"Expression size has exceeded the maximum allowed size; expression size: 4097")
	refuseCondition(t, tb, strings.Repeat("a=b OR ", 150)+"a=b", "The expression contains too many operators; operator count: 301")
	tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"a IN (b`+strings.Repeat(",b", 100)+`)"}`, validation, "Invalid ConditionExpression: …")
}

// Reserved words are refused as bare names however they are cased, and are fine behind a
// placeholder.
func conditionReservedWords(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, word := range []string{"name", "Status", "TTL", "abort", "zone", "data"} {
		refuseCondition(t, tb, "attribute_exists("+word+")", "Attribute name is a reserved keyword; reserved keyword: "+word)
		refuseCondition(t, tb, "attribute_exists(a."+word+")", "Attribute name is a reserved keyword; reserved keyword: "+word)
	}
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"attribute_not_exists(#t)","ExpressionAttributeNames":{"#t":"ttl"}}`)
}
