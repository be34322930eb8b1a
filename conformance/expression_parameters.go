package conformance

import "testing"

var expressionParameterChecks = []check{
	{"Placeholders", parametersPlaceholders},
	{"PlaceholdersOnWrites", parametersPlaceholdersOnWrites},
	{"MixedWithLegacy", parametersMixedWithLegacy},
	{"OrderOfChecks", parametersOrderOfChecks},
}

// Placeholders need an expression, and some expression must use each of them.
func parametersPlaceholders(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const key = `"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}`
	for _, row := range []struct{ name, op, body, message string }{
		{"names without expression", "Scan", `{"ExpressionAttributeNames":{"#a":"a"}}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{"values without expression", "Scan", `{"ExpressionAttributeValues":{":a":{"S":"a"}}}`,
			"ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"},
		{"values without either", "Query", `{"ExpressionAttributeValues":{":a":{"S":"a"}},"KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}}`,
			"ExpressionAttributeValues can only be specified when using expressions: FilterExpression and KeyConditionExpression are null"},
		{"no names", "Scan", `{"FilterExpression":"a = b","ExpressionAttributeNames":{}}`, "ExpressionAttributeNames must not be empty"},
		{"no values", "Scan", `{"FilterExpression":"a = b","ExpressionAttributeValues":{}}`, "ExpressionAttributeValues must not be empty"},
		{"name without #", "Scan", `{"FilterExpression":"a = b","ExpressionAttributeNames":{"a":"b"}}`, `ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`},
		{"bare #", "Scan", `{"FilterExpression":"a = b","ExpressionAttributeNames":{"#":"b"}}`, `ExpressionAttributeNames contains invalid key: Syntax error; key: "#"`},
		{"value without :", "Scan", `{"FilterExpression":"a = b","ExpressionAttributeValues":{"a":{"S":"b"}}}`, `ExpressionAttributeValues contains invalid key: Syntax error; key: "a"`},
		{"odd value name", "Scan", `{"FilterExpression":"a = b","ExpressionAttributeValues":{":a-b":{"S":"b"}}}`, `ExpressionAttributeValues contains invalid key: Syntax error; key: ":a-b"`},
		{"unused name", "Scan", `{"FilterExpression":"#a = b","ExpressionAttributeNames":{"#a":"a","#b":"b"}}`, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}"},
		{"unused value", "Query", `{` + key + `,":q":{"S":"a"}}}`, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:q}"},
		{"unused in GetItem", "GetItem", `{"Key":{"pk":{"S":"a"}},"ProjectionExpression":"a","ExpressionAttributeNames":{"#b":"b"}}`, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}"},
	} {
		t.Run(row.name, func(t *testing.T) { tb.refuse(t, row.op, row.body, validation, row.message) })
	}
	// A name may be used by one of several expressions.
	tb.ok(t, "Query", `{`+key+`,":q":{"S":"a"}},"FilterExpression":"#b = :q","ProjectionExpression":"#c","ExpressionAttributeNames":{"#b":"b","#c":"c"}}`)
}

// For the same mistake, the messages of PutItem and UpdateItem begin with an envelope.
func parametersPlaceholdersOnWrites(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}},"ExpressionAttributeValues":{":a":{"S":"a"}}}`, validation,
		"1 validation error detected: ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null")
	tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ExpressionAttributeValues":{":a":{"S":"a"}}}`, validation,
		"ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null")
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"ExpressionAttributeValues":{":a":{"S":"a"}}}`, validation,
		"1 validation error detected: ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null")
	tb.wantStored(t, item("pk", "a"), nil)
}

// A request has legacy parameters or expressions, not both.
func parametersMixedWithLegacy(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const mixed = "Can not use both expression and non-expression parameters in the same request: "
	for _, row := range []struct{ op, body, message string }{
		{"Scan", `{"FilterExpression":"a = b","AttributesToGet":["a"],"ScanFilter":{},"ConditionalOperator":"AND","ProjectionExpression":"a"}`,
			mixed + "Non-expression parameters: {AttributesToGet, ScanFilter, ConditionalOperator} Expression parameters: {ProjectionExpression, FilterExpression}"},
		{"Query", `{"KeyConditionExpression":"a = b","QueryFilter":{},"FilterExpression":"a = b"}`,
			mixed + "Non-expression parameters: {QueryFilter} Expression parameters: {FilterExpression, KeyConditionExpression}"},
		{"GetItem", `{"Key":{"pk":{"S":"a"}},"ProjectionExpression":"a","AttributesToGet":["a"]}`,
			mixed + "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"},
		{"DeleteItem", `{"Key":{"pk":{"S":"a"}},"ConditionExpression":"a = b","Expected":{}}`,
			mixed + "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"},
		{"PutItem", `{"Item":{"pk":{"S":"a"}},"ConditionExpression":"a = b","Expected":{}}`,
			"1 validation error detected: " + mixed + "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"},
		{"UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"REMOVE a","ConditionExpression":"a = b","Expected":{},"AttributeUpdates":{}}`,
			"1 validation error detected: " + mixed + "Non-expression parameters: {AttributeUpdates, Expected} Expression parameters: {UpdateExpression, ConditionExpression}"},
	} {
		t.Run(row.op, func(t *testing.T) { tb.refuse(t, row.op, row.body, validation, row.message) })
	}
}

// Expressions are checked before the existence of the table, and their syntax before unused
// placeholders.
func parametersOrderOfChecks(t *testing.T, e *Endpoint) {
	e.refuse(t, "Scan", `{"TableName":"no-such-table","FilterExpression":"a ="}`, validation, `Invalid FilterExpression: Syntax error; token: "<EOF>", near: "…"`)
	e.refuse(t, "Scan", `{"TableName":"no-such-table","FilterExpression":"a = b","ExpressionAttributeNames":{"#a":"a"}}`, validation,
		"Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}")
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "Scan", `{"FilterExpression":"a =","ExpressionAttributeNames":{"#a":"a"}}`, validation, `Invalid FilterExpression: Syntax error; token: "<EOF>", near: "…"`)
	tb.refuse(t, "Scan", `{"FilterExpression":"a =","ProjectionExpression":"b,,"}`, validation, `Invalid FilterExpression: …`)
	tb.refuse(t, "GetItem", `{"Key":{"other":{"S":"a"}},"ProjectionExpression":"a,"}`, validation, `Invalid ProjectionExpression: …`)
}
