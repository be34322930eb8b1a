package conformance

import "testing"

// serializationChecks send members of the wrong JSON type, which are refused before anything else
// is looked at.
var serializationChecks = []check{
	{"Scalars", serializationScalars},
	{"Collections", serializationCollections},
	{"Blobs", serializationBlobs},
	{"Lenient", serializationLenient},
	{"BeforeValidation", serializationBeforeValidation},
}

// refusedType is a request in which a member has the wrong type.
type refusedType struct{ op, body, message string }

func refuseTypes(t *testing.T, e *Endpoint, rows []refusedType) {
	t.Helper()
	for _, row := range rows {
		e.refuse(t, row.op, row.body, serialization, row.message)
	}
}

func serializationScalars(t *testing.T, e *Endpoint) {
	refuseTypes(t, e, []refusedType{
		{"DescribeTable", `{"TableName":true}`, "TRUE_VALUE cannot be converted to String"},
		{"DescribeTable", `{"TableName":false}`, "FALSE_VALUE cannot be converted to String"},
		{"DescribeTable", `{"TableName":23}`, "NUMBER_VALUE cannot be converted to String"},
		{"DescribeTable", `{"TableName":-2.3}`, "DECIMAL_VALUE cannot be converted to String"},
		{"DescribeTable", `{"TableName":[]}`, "Unrecognized collection type class java.lang.String"},
		{"DescribeTable", `{"TableName":{}}`, "Start of structure or map found where not expected"},
		{"Scan", `{"Limit":"1"}`, "STRING_VALUE cannot be converted to Integer"},
		{"Scan", `{"Limit":true}`, "TRUE_VALUE cannot be converted to Integer"},
		{"Scan", `{"Limit":[]}`, "Unrecognized collection type class java.lang.Integer"},
		{"Scan", `{"Limit":{}}`, "Start of structure or map found where not expected"},
		{"CreateTable", `{"ProvisionedThroughput":{"ReadCapacityUnits":"1"}}`, "STRING_VALUE cannot be converted to Long"},
		{"GetItem", `{"ConsistentRead":1}`, "NUMBER_VALUE cannot be converted to Boolean"},
		{"GetItem", `{"ConsistentRead":"maybe"}`, "Unexpected token received from parser"},
		{"GetItem", `{"ConsistentRead":[]}`, "Unrecognized collection type class java.lang.Boolean"},
		{"PutItem", `{"Item":{"a":{"S":1}}}`, "NUMBER_VALUE cannot be converted to String"},
		{"PutItem", `{"Item":{"a":{"N":1}}}`, "NUMBER_VALUE cannot be converted to String"},
		{"PutItem", `{"Item":{"a":{"NS":[1]}}}`, "NUMBER_VALUE cannot be converted to String"},
	})
}

func serializationCollections(t *testing.T, e *Endpoint) {
	refuseTypes(t, e, []refusedType{
		{"PutItem", `{"Item":"a"}`, "Unexpected field type"},
		{"PutItem", `{"Item":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{"PutItem", `{"Item":{"a":"b"}}`, "Unexpected value type in payload"},
		{"PutItem", `{"Item":{"a":[]}}`, "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue"},
		{"PutItem", `{"Item":{"a":{"L":"b"}}}`, "Unexpected field type"},
		{"PutItem", `{"Item":{"a":{"L":{}}}}`, "Start of structure or map found where not expected"},
		{"PutItem", `{"Item":{"a":{"M":[]}}}`, "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{"PutItem", `{"Item":{"a":{"SS":"b"}}}`, "Unexpected field type"},
		{"PutItem", `{"ExpressionAttributeNames":[]}`, "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>"},
		{"CreateTable", `{"KeySchema":"a"}`, "Unexpected field type"},
		{"CreateTable", `{"KeySchema":{}}`, "Start of structure or map found where not expected"},
		{"CreateTable", `{"KeySchema":["a"]}`, "Unexpected value type in payload"},
		{"CreateTable", `{"KeySchema":[[]]}`, "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.KeySchemaElement"},
		{"CreateTable", `{"ProvisionedThroughput":1}`, "Unexpected field type"},
		{"CreateTable", `{"ProvisionedThroughput":[]}`, "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.ProvisionedThroughput"},
	})
}

func serializationBlobs(t *testing.T, e *Endpoint) {
	refuseTypes(t, e, []refusedType{
		{"PutItem", `{"Item":{"a":{"B":1}}}`, "only base-64-encoded strings are convertible to bytes"},
		{"PutItem", `{"Item":{"a":{"B":true}}}`, "only base-64-encoded strings are convertible to bytes"},
		{"PutItem", `{"Item":{"a":{"B":[]}}}`, "Unrecognized collection type class java.nio.ByteBuffer"},
		{"PutItem", `{"Item":{"a":{"B":"abc"}}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
		{"PutItem", `{"Item":{"a":{"BS":["abcde"]}}}`, "Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
		{"PutItem", `{"Item":{"a":{"B":"abd="}}}`, "Invalid last non-pad Base64 character dectected"},
	})
}

// Members that are null count as absent, unknown ones are ignored, whole numbers may have a
// fraction, and booleans may be words.
func serializationLenient(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a"), item("pk", "b"))
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ConsistentRead":null,"ProjectionExpression":null,"Unknown":{"deep":[1,{"er":null}]}}`).want(t, "Item", `{"pk":{"S":"a"}}`)
	tb.ok(t, "Scan", `{"Limit":1.9}`).want(t, "Count", `1`)
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ConsistentRead":"yes"}`)
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ConsistentRead":"False"}`)
	tb.ok(t, "GetItem", "\n\t { \"Key\" : { \"pk\" : { \"\\u0053\" : \"\\u0061\" } } } \r\n").want(t, "Item", `{"pk":{"S":"a"}}`)
}

// A member of the wrong type is found before a missing one, a missing one before a bad value.
func serializationBeforeValidation(t *testing.T, e *Endpoint) {
	e.refuse(t, "PutItem", `{"TableName":"","ReturnValues":"SOME","Item":{"a":{"S":1}}}`, serialization, "NUMBER_VALUE cannot be converted to String")
	e.refuse(t, "PutItem", `{"TableName":"abc","Item":{"a":{"N":"x"}},"ReturnConsumedCapacity":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
	e.refuse(t, "PutItem", `{"TableName":"no-such-table","Item":{"a":{"N":"x"}}}`, validation, "The parameter cannot be converted to a numeric value: x")
}
