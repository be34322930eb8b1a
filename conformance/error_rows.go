package conformance

import (
	"strings"
	"testing"
)

// errorRowChecks are tables of errors, one for each subject, that no operation's checks contain.
var errorRowChecks = []check{
	{"Envelope", errorsInTheEnvelope},
	{"OutsideTheEnvelope", errorsOutsideTheEnvelope},
	{"EmptyKeys", errorsOfEmptyKeys},
	{"RequestItems", errorsOfRequestItems},
	{"OneChange", errorsOfOneChange},
	{"Tags", errorsOfTags},
}

const enveloped = "1 validation error detected: "

// PutItem and UpdateItem begin some messages as if a constraint of the model were broken. The same
// mistake in other operations has the bare text.
func errorsInTheEnvelope(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	condition := func(text string) string {
		return `"ConditionExpression":"` + text + `","ExpressionAttributeValues":{":v":{"N":"1"}}`
	}
	for _, row := range []struct{ members, message string }{
		{condition("a = "), `Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "="`},
		{condition("((a = :v))"), "Invalid ConditionExpression: The expression has redundant parentheses;"},
		{condition("a = a OR a = :v"), "Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]"},
		{condition("a = :v" + strings.Repeat(" ", 4096)), "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4102"},
		{condition("a = :w"), "Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute value: :w"},
		{`"ExpressionAttributeValues":{":v":{"N":"1"}}`, "ExpressionAttributeValues can only be specified when using expressions: …"},
		{`"ExpressionAttributeNames":{"#a":"a"}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{condition("a = :v") + `,"Expected":{"b":{"Exists":false}}`, "Can not use both expression and non-expression parameters in the same request: …"},
	} {
		refusals{
			{"PutItem", `{"Item":{"pk":{"S":"a"}},` + row.members + `}`, enveloped + row.message},
			{"UpdateItem", `{"Key":{"pk":{"S":"a"}},` + row.members + `}`, enveloped + row.message},
			{"DeleteItem", `{"Key":{"pk":{"S":"a"}},` + row.members + `}`, row.message},
		}.refuse(t, tb)
		if !strings.Contains(row.members, "Expected") {
			tb.refuse(t, "TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"$T","Item":{"pk":{"S":"a"}},`+row.members+`}}]}`, validation, row.message)
		}
	}
	for value, message := range map[string]string{
		`{"SS":[]}`:        "An string set  may not be empty",
		`{"SS":["a","a"]}`: "Input collection [a, a] contains duplicates.",
		`{"NULL":false}`:   "Null attribute value types must have the value of true",
	} {
		refusals{
			{"PutItem", `{"Item":{"pk":{"S":"a"},"v":` + value + `}}`, enveloped + invalid + message},
			{"BatchWriteItem", `{"RequestItems":{"$T":[{"PutRequest":{"Item":{"pk":{"S":"a"},"v":` + value + `}}}]}}`, invalid + message},
			{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"$T","Item":{"pk":{"S":"a"},"v":` + value + `}}}]}`, invalid + message},
		}.refuse(t, tb)
	}
	refusals{
		{"PutItem", `{"Item":{"pk":{"S":"a"}},"ReturnValues":"ALL_NEW"}`, enveloped + "ReturnValues can only be ALL_OLD or NONE"},
		{"DeleteItem", `{"Key":{"pk":{"S":"a"}},"ReturnValues":"ALL_NEW"}`, "ReturnValues can only be ALL_OLD or NONE"},
	}.refuse(t, tb)
}

// Other messages have no envelope anywhere.
func errorsOutsideTheEnvelope(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.put(t, item("pk", "a", "s", "text"))
	update := func(expression string) string {
		values := ""
		if strings.Contains(expression, ":v") {
			values = `,"ExpressionAttributeValues":{":v":{"N":"1"}}`
		}
		return `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"` + expression + `"` + values + `}`
	}
	big := strings.Repeat("x", 400*1024)
	refusals{
		{"PutItem", `{"Item":{"pk":{"N":"1"}}}`, invalid + "Type mismatch for key pk expected: S actual: N"},
		{"PutItem", `{"Item":{"pk":{"S":"a"},"g":{"N":"1"}}}`, invalid + "Type mismatch for Index Key g Expected: S Actual: N IndexName: byG"},
		{"UpdateItem", update("SET pk = :v"), invalid + "Cannot update attribute pk. This attribute is part of the key"},
		{"UpdateItem", update("SET a.b = :v"), "The document path provided in the update expression is invalid for update"},
		{"UpdateItem", update("SET a = b"), "The provided expression refers to an attribute that does not exist in the item"},
		{"UpdateItem", update("SET s = s + :v"), "An operand in the update expression has an incorrect data type"},
		{"PutItem", `{"Item":{"pk":{"S":""}}}`, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"},
		{"PutItem", `{"Item":{"pk":{"S":"a"},"v":{}}}`, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{"PutItem", `{"Item":{"pk":{"S":"a"},"v":{"S":"a","N":"1"}}}`, "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"},
		{"PutItem", `{"Item":{"pk":{"S":"a"},"v":{"S":"` + big + `"}}}`, "Item size has exceeded the maximum allowed size"},
		{"UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET v = :v","ExpressionAttributeValues":{":v":{"S":"` + big + `"}}}`, "Item size to update has exceeded the maximum allowed size"},
	}.refuse(t, tb)
}

// The message about an empty key names the kind of value and the attribute.
func errorsOfEmptyKeys(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:B sk:S", global("byG", "g:B", "ALL"))
	const empty = "One or more parameter values are not valid. "
	const binary, text = "The AttributeValue for a key attribute cannot contain an empty binary value.", "The AttributeValue for a key attribute cannot contain an empty string value."
	refusals{
		{"PutItem", `{"Item":{"pk":{"B":""},"sk":{"S":"a"}}}`, empty + binary + " Key: pk"},
		{"GetItem", `{"Key":{"pk":{"B":""},"sk":{"S":"a"}}}`, empty + binary + " Key: pk"},
		{"DeleteItem", `{"Key":{"pk":{"B":"YQ=="},"sk":{"S":""}}}`, empty + text + " Key: sk"},
		{"PutItem", `{"Item":{"pk":{"B":"YQ=="},"sk":{"S":"a"},"g":{"B":""}}}`,
			empty + "A value specified for a secondary index key is not supported. " + binary + " IndexName: byG, IndexKey: g"},
		{"UpdateItem", `{"Key":{"pk":{"B":"YQ=="},"sk":{"S":"a"}},"UpdateExpression":"SET g = :v","ExpressionAttributeValues":{":v":{"B":""}}}`,
			empty + "The update expression attempted to update a secondary index key to a value that is not supported. " + binary},
	}.refuse(t, tb)
}

// The names and the requests of a batch are constraints of one map.
func errorsOfRequestItems(t *testing.T, e *Endpoint) {
	const keys = "1 validation error detected: Value '…' at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal to 255, " +
		"Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
	const null = " failed to satisfy constraint: Member must not be null"
	for _, name := range []string{"ab", "a b", strings.Repeat("a", 256)} {
		e.refuse(t, "BatchGetItem", `{"RequestItems":{"`+name+`":{"Keys":[{"pk":{"S":"a"}}]}}}`, validation, keys)
		e.refuse(t, "BatchWriteItem", `{"RequestItems":{"`+name+`":[{"DeleteRequest":{"Key":{"pk":{"S":"a"}}}}]}}`, validation, keys)
	}
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{"abc":[{"PutRequest":{}}]}}`, validation,
		"1 validation error detected: Value null at 'requestItems.abc.member.1.member.putRequest.item'"+null)
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{"abc":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"DeleteRequest":{}}]}}`, validation,
		"1 validation error detected: Value null at 'requestItems.abc.member.2.member.deleteRequest.key'"+null)
}

// Some changes of a table must be alone in their request.
func errorsOfOneChange(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const class, encryption, protection = `"TableClass":"STANDARD_INFREQUENT_ACCESS"`, `"SSESpecification":{"Enabled":true}`, `"DeletionProtectionEnabled":true`
	const billing = `"BillingMode":"PAY_PER_REQUEST"`
	for changes, message := range map[string]string{
		encryption + "," + billing: invalid + "Server-Side Encryption modification must be the only operation in the request",
		encryption + "," + class:   invalid + "Server-Side Encryption modification must be the only operation in the request",
		class + "," + protection:   invalid + "TableClass… must be the only operation in the request",
		protection + "," + billing: invalid + "DeletionProtection… must be the only operation in the request",
		`"TableClass":"CHEAP"`:     "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS].",
		`"OnDemandThroughput":{"MaxReadRequestUnits":5},"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}`: invalid +
			"OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
	} {
		tb.refuse(t, "UpdateTable", `{`+changes+`}`, validation, message)
	}
}

// The message about a tag shows its key or its value.
func errorsOfTags(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for tags, message := range map[string]string{
		`{"Key":"a?","Value":"b"}`:                        "The Tag Key provided is invalid, Key: a?",
		`{"Key":"a","Value":"b?"}`:                        "The Tag Value provided is invalid, Value: b?",
		`{"Key":"aws:a","Value":"b"}`:                     "Tag Key cannot be prefixed with aws:, Key: aws:a",
		`{"Key":"a","Value":"b"},{"Key":"a","Value":"c"}`: "Duplicate Tag Keys provided as input: Duplicate Tag Key found a",
	} {
		tb.refuse(t, "TagResource", `{"ResourceArn":"`+tb.arn+`","Tags":[`+tags+`]}`, validation, message)
	}
}
