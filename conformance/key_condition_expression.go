package conformance

import "testing"

var keyConditionExpressionChecks = []check{
	{"Refused", keyConditionRefused},
	{"RefusedWithoutSortKey", keyConditionRefusedWithoutSortKey},
}

func keyConditionRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	const x = "Invalid KeyConditionExpression: "
	for _, row := range []struct{ condition, message string }{
		{"", x + "The expression can not be empty;"},
		{"pk =", x + `Syntax error; token: "<EOF>", near: "…"`},
		{"pk = :nope", x + "An expression attribute value used in expression is not defined; attribute value: :nope"},
		{"#nope = :x", x + "An expression attribute name used in the document path is not defined; attribute name: #nope"},
		{"name = :x", x + "Attribute name is a reserved keyword; reserved keyword: name"},
		{"f(pk)", x + "Invalid function name; function: f"},
		{"((pk = :x))", x + "The expression has redundant parentheses;"},
		{"pk = :x OR sk = :1", "Invalid operator used in KeyConditionExpression: OR"},
		{"NOT pk = :x", "Invalid operator used in KeyConditionExpression: NOT"},
		{"pk IN (:x)", "Invalid operator used in KeyConditionExpression: IN"},
		{"pk = :x AND sk <> :1", "Invalid operator used in KeyConditionExpression: <>"},
		{"pk = :x AND attribute_exists(sk)", "Invalid operator used in KeyConditionExpression: attribute_exists"},
		{"pk = :x AND contains(sk, :1)", "Invalid operator used in KeyConditionExpression: contains"},
		{"pk = :x AND begins_with(sk, :1)", x + "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{"pk = :x AND size(sk) = :1", "KeyConditionExpressions cannot contain nested operations"},
		{"pk.y = :x", x + "KeyConditionExpressions cannot have conditions on nested attributes"},
		{"pk = sk", "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{":x = :1", "Invalid condition in KeyConditionExpression: No key attribute specified"},
		{"pk = :x AND :1 BETWEEN sk AND :2", "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand"},
		{"pk = :x AND begins_with(:he, pk)", "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand"},
		{"pk = :x AND pk = :he", "KeyConditionExpressions must only contain one condition per key"},
		{"pk = :x AND sk > :1 AND sk < :2", "KeyConditionExpressions must only contain one condition per key"},
		{"pk = :x AND sk > :1 AND elsewhere = :2", "Conditions can be of length 1 or 2 only"},
		{"sk = :1", "Query condition missed key schema element: pk"},
		{"pk = :x AND elsewhere = :1", "Query condition missed key schema element: sk"},
		{"elsewhere = :x", "Query condition missed key schema element: pk"},
		{"pk > :x", "Query key condition not supported"},
		{"pk > :x AND sk = :1", "Query key condition not supported"},
		{"begins_with(pk, :x)", "Query key condition not supported"},
		{"pk = :1", invalid + "Condition parameter type does not match schema type"},
		{"pk = :x AND sk = :he", invalid + "Condition parameter type does not match schema type"},
		{"pk = :x AND sk BETWEEN :2 AND :1", x + "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}"},
	} {
		t.Run(row.condition, func(t *testing.T) {
			tb.refuse(t, "Query", `{"KeyConditionExpression":"`+row.condition+`"`+valuesOf(row.condition)+`}`, validation, row.message)
		})
	}
	const empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :empty"`+valuesOf(":empty")+`}`, validation, empty)
}

func keyConditionRefusedWithoutSortKey(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :x AND sk = :1"`+valuesOf(":x :1")+`}`, validation, "Query key condition not supported")
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :x"`+valuesOf(":x")+`,"ExclusiveStartKey":{"pk":{"S":"x"}}}`, validation,
		"The provided exclusive start key is invalid: ExclusiveStartKey: …")
}
