package conformance

import "testing"

var legacyParameterChecks = []check{
	{"Expected", legacyExpected},
	{"AttributeUpdates", legacyAttributeUpdates},
	{"KeyConditions", legacyKeyConditions},
	{"Filters", legacyFilters},
	{"AttributesToGet", legacyAttributesToGet},
	{"Refused", legacyRefused},
}

// Expected compares as a condition does, its members joined by ConditionalOperator.
func legacyExpected(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 5, "s", "hello"))
	put := func(expected, rest string) error {
		_, err := e.call("PutItem", tb.fill(`{"Item":{"pk":{"S":"a"},"n":{"N":"5"},"s":{"S":"hello"}},"Expected":`+expected+rest+`}`))
		return err
	}
	for _, expected := range []string{
		`{"n":{"Value":{"N":"5"}}}`, `{"nope":{"Exists":false}}`, `{"n":{"ComparisonOperator":"GT","AttributeValueList":[{"N":"4"}]}}`,
		`{"n":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"5"},{"N":"6"}]},"s":{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"S":"he"}]}}`,
		`{"n":{"ComparisonOperator":"NOT_NULL"},"nope":{"ComparisonOperator":"NULL"}}`, `{"n":{"ComparisonOperator":"IN","AttributeValueList":[{"N":"1"},{"N":"5"}]}}`,
		`{"s":{"ComparisonOperator":"CONTAINS","AttributeValueList":[{"S":"ell"}]}}`, `{"nope":{"ComparisonOperator":"NE","AttributeValueList":[{"N":"4"}]}}`,
	} {
		if err := put(expected, ""); err != nil {
			t.Errorf("%s: %v", expected, err)
		}
	}
	wantError(t, put(`{"n":{"Value":{"N":"6"}}}`, ""), conditionFailed, "The conditional request failed")
	wantError(t, put(`{"n":{"Exists":false}}`, ""), conditionFailed, "The conditional request failed")
	const either = `{"n":{"Value":{"N":"6"}},"s":{"Value":{"S":"hello"}}}`
	wantError(t, put(either, ""), conditionFailed, "")
	if err := put(either, `,"ConditionalOperator":"OR"`); err != nil {
		t.Errorf("OR: %v", err)
	}
}

func legacyAttributeUpdates(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 5, "gone", 1, "set", stringSet{"a", "b"}, "l", []any{1}))
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"AttributeUpdates":{
		"s":{"Value":{"S":"new"}},"n":{"Action":"ADD","Value":{"N":"2"}},"gone":{"Action":"DELETE"},
		"set":{"Action":"DELETE","Value":{"SS":["a","x"]}},"more":{"Action":"ADD","Value":{"NS":["1"]}},"p":{"Action":"PUT","Value":{"BOOL":true}},
		"l":{"Action":"ADD","Value":{"L":[{"N":"2"}]}}}}`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "s", "new", "n", 7, "set", stringSet{"b"}, "more", numberSet{"1"}, "p", true, "l", []any{1, 2}))
}

func legacyKeyConditions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	for n := range 4 {
		tb.put(t, item("pk", "p", "sk", n))
	}
	a := tb.ok(t, "Query", `{"KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"p"}]},"sk":{"ComparisonOperator":"GE","AttributeValueList":[{"N":"2"}]}},
		"QueryFilter":{"nope":{"ComparisonOperator":"NULL"}},"AttributesToGet":["sk"]}`)
	a.want(t, "Items", `[{"sk":{"N":"2"}},{"sk":{"N":"3"}}]`)
	tb.refuse(t, "Query", `{"KeyConditions":{"pk":{"ComparisonOperator":"NE","AttributeValueList":[{"S":"p"}]}}}`, validation, "Attempted conditional constraint is not an indexable operation")
	tb.refuse(t, "Query", `{"KeyConditions":{"pk":{"ComparisonOperator":"LT","AttributeValueList":[{"S":"p"}]}}}`, validation, "Query key condition not supported")
	tb.refuse(t, "Query", `{"KeyConditions":{}}`, validation, "Conditions can be of length 1 or 2 only")
}

func legacyFilters(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1), item("pk", "b", "n", 2), item("pk", "c"))
	a := tb.ok(t, "Scan", `{"ScanFilter":{"n":{"ComparisonOperator":"GT","AttributeValueList":[{"N":"1"}]}}}`)
	a.want(t, "Items", `[{"pk":{"S":"b"},"n":{"N":"2"}}]`)
	a = tb.ok(t, "Scan", `{"ScanFilter":{"n":{"ComparisonOperator":"EQ","AttributeValueList":[{"N":"1"}]},"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"c"}]}},"ConditionalOperator":"OR","Select":"COUNT"}`)
	a.want(t, "Count", `2`)
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}},"QueryFilter":{"n":{"ComparisonOperator":"NULL"}}}`, validation, "Can not use both expression and non-expression parameters…")
	tb.refuse(t, "Query", `{"KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"p"}]}},"QueryFilter":{"pk":{"ComparisonOperator":"NOT_NULL"}}}`, validation,
		"QueryFilter can only contain non-primary key attributes: Primary key attribute: pk")
}

func legacyAttributesToGet(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1, "name", 2, "x.y", 3))
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"AttributesToGet":["name","x.y","nope"]}`).want(t, "Item", `{"name":{"N":"2"},"x.y":{"N":"3"}}`)
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"AttributesToGet":["a","a"]}`, validation, invalid+"Duplicate value in attribute name: a")
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"AttributesToGet":[]}`, validation,
		"1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1")
}

func legacyRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ expected, message string }{
		{`{"a":{"Value":{"S":"x"},"AttributeValueList":[{"S":"x"}]}}`, invalid + "Value and AttributeValueList cannot be used together for Attribute: a"},
		{`{"a":{"Exists":true,"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}}`, invalid + "Exists and ComparisonOperator cannot be used together for Attribute: a"},
		{`{"a":{"ComparisonOperator":"LT"}}`, invalid + "Value or AttributeValueList must be used with ComparisonOperator: LT for Attribute: a"},
		{`{"a":{"AttributeValueList":[{"S":"x"}]}}`, invalid + "AttributeValueList can only be used with a ComparisonOperator for Attribute: a"},
		{`{"a":{}}`, invalid + "Value must be provided when Exists is null for Attribute: a"},
		{`{"a":{"Exists":true}}`, invalid + "Value must be provided when Exists is true for Attribute: a"},
		{`{"a":{"Exists":false,"Value":{"S":"x"}}}`, invalid + "Value cannot be used when Exists is false for Attribute: a"},
		{`{"a":{"ComparisonOperator":"EQ","AttributeValueList":[]}}`, invalid + "Invalid number of argument(s) for the EQ ComparisonOperator"},
		{`{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"S":"x"}]}}`, invalid + "Invalid number of argument(s) for the BETWEEN ComparisonOperator"},
		{`{"a":{"ComparisonOperator":"IN","AttributeValueList":[{"S":"x"},{"N":"1"}]}}`, invalid + "AttributeValues inside AttributeValueList must be of same type"},
		{`{"a":{"ComparisonOperator":"LT","AttributeValueList":[{"BOOL":true}]}}`, invalid + "ComparisonOperator LT is not valid for BOOL AttributeValue type"},
		{`{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"2"},{"N":"1"}]}}`, "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"},
	} {
		t.Run(row.expected, func(t *testing.T) {
			tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"Expected":`+row.expected+`}`, validation, row.message)
		})
	}
	for _, row := range []struct{ updates, message string }{
		{`{"a":{"Action":"PUT"}}`, invalid + "Only DELETE action is allowed when no attribute value is specified"},
		{`{"a":{"Action":"DELETE","Value":{"S":"x"}}}`, invalid + "DELETE action with value is not supported for the type S"},
		{`{"a":{"Action":"ADD","Value":{"S":"x"}}}`, invalid + "ADD action is not supported for the type S"},
		{`{"pk":{"Value":{"S":"x"}}}`, invalid + "Cannot update attribute pk. This attribute is part of the key"},
	} {
		t.Run(row.updates, func(t *testing.T) {
			tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"AttributeUpdates":`+row.updates+`}`, validation, "…"+row.message)
		})
	}
}
