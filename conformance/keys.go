package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var keyChecks = []check{
	{"Types", keyTypes},
	{"EqualNumbersAreOneKey", keyEqualNumbers},
	{"Item", keyOfItem},
	{"Empty", keyEmpty},
	{"TooLong", keyTooLong},
	{"OfIndexes", keyOfIndexes},
	{"OfIndexesByUpdate", keyOfIndexesByUpdate},
}

// Strings, numbers and binaries work as partition keys and as sort keys, and similar keys are
// different items.
func keyTypes(t *testing.T, e *Endpoint) {
	for _, row := range []struct {
		schema string
		a, b   attributes
	}{
		{"pk:S sk:S", item("pk", "1", "sk", "é"), item("pk", "1", "sk", "e")},
		{"pk:N sk:N", item("pk", 1, "sk", number("-0.5")), item("pk", 1, "sk", number("0.5"))},
		{"pk:B sk:B", item("pk", []byte{0}, "sk", []byte{0xff}), item("pk", []byte{0, 0}, "sk", []byte{0xff})},
	} {
		tb := newTable(t, e, row.schema)
		tb.put(t, row.a, row.b)
		tb.wantStored(t, row.a, row.a)
		tb.delete(t, row.a)
		tb.wantStored(t, row.a, nil)
		tb.wantStored(t, row.b, row.b)
	}
}

// Different spellings of one number are one key.
func keyEqualNumbers(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N")
	tb.put(t, item("pk", number("100.0"), "v", 1))
	tb.put(t, item("pk", number("1E2"), "v", 2))
	tb.wantStored(t, item("pk", 100), item("pk", 100, "v", 2))
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{"`+tb.name+`":[{"DeleteRequest":{"Key":{"pk":{"N":"7"}}}},{"DeleteRequest":{"Key":{"pk":{"N":"7.0"}}}}]}}`, validation,
		"Provided list of item keys contains duplicates")
	e.refuse(t, "BatchGetItem", `{"RequestItems":{"`+tb.name+`":{"Keys":[{"pk":{"N":"7"}},{"pk":{"N":"70e-1"}}]}}}`, validation,
		"Provided list of item keys contains duplicates")
}

func keyOfItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.refuse(t, "PutItem", `{"Item":{"sk":{"N":"1"}}}`, validation, invalid+"Missing the key pk in the item")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"}}}`, validation, invalid+"Missing the key sk in the item")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"N":"1"},"sk":{"N":"1"}}}`, validation, invalid+"Type mismatch for key pk expected: S actual: N")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"sk":{"S":"1"}}}`, validation, invalid+"Type mismatch for key sk expected: N actual: S")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"sk":{"NULL":true}}}`, validation, invalid+"Type mismatch for key sk expected: N actual: NULL")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"SS":["a"]},"sk":{"N":"1"}}}`, validation, invalid+"Type mismatch for key pk expected: S actual: SS")
}

func keyEmpty(t *testing.T, e *Endpoint) {
	text := newTable(t, e, "pk:S sk:S")
	const prefix = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
	text.refuse(t, "PutItem", `{"Item":{"pk":{"S":""},"sk":{"S":"a"}}}`, validation, prefix+"string value. Key: pk")
	text.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"sk":{"S":""}}}`, validation, prefix+"string value. Key: sk")
	text.refuse(t, "GetItem", `{"Key":{"pk":{"S":""},"sk":{"S":"a"}}}`, validation, prefix+"string value. Key: pk")
	text.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"},"sk":{"S":""}}}`, validation, prefix+"string value. Key: sk")
	binary := newTable(t, e, "pk:B")
	binary.refuse(t, "PutItem", `{"Item":{"pk":{"B":""}}}`, validation, prefix+"binary value. Key: pk")
}

// Partition keys have up to 2,048 bytes, sort keys up to 1,024.
func keyTooLong(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S")
	longest := item("pk", strings.Repeat("p", 2048), "sk", strings.Repeat("s", 1024))
	tb.put(t, longest)
	tb.wantStored(t, longest, longest)
	_, err := e.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: item("pk", strings.Repeat("p", 2049), "sk", "a")})
	wantError(t, err, validation, invalid+"Size of hashkey has exceeded the maximum size limit of2048 bytes")
	_, err = e.DB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: item("pk", "a", "sk", strings.Repeat("s", 1025))})
	wantError(t, err, validation, invalid+"Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
}

// A value that an index cannot hold is refused; an absent one only keeps the item out of the index.
func keyOfIndexes(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S n:N", "ALL"), global("byZ", "z:B", "ALL"))
	tb.put(t, item("pk", "sparse", "g", "x"))
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"g":{"N":"1"}}}`, validation,
		invalid+"Type mismatch for Index Key g Expected: S Actual: N IndexName: byG")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"n":{"S":"1"},"z":{"S":"1"}}}`, validation,
		invalid+"Type mismatch for Index Key n Expected: N Actual: S IndexName: byG")
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"a"},"g":{"S":""}}}`, validation,
		"One or more parameter values are not valid. A value specified for a secondary index key is not supported. "+
			"The AttributeValue for a key attribute cannot contain an empty string value. IndexName: byG, IndexKey: g")
	tb.wantStored(t, item("pk", "a"), nil)
}

// An update with such a value is refused too, and for an empty one with a message of its own.
func keyOfIndexesByUpdate(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.put(t, item("pk", "a", "g", "x"))
	const update = `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET g = :v","ExpressionAttributeValues":{":v":`
	tb.refuse(t, "UpdateItem", update+`{"N":"1"}}}`, validation, invalid+"Type mismatch for Index Key g Expected: S Actual: N IndexName: byG")
	tb.refuse(t, "UpdateItem", update+`{"S":""}}}`, validation,
		"One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. "+
			"The AttributeValue for a key attribute cannot contain an empty string value.")
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "g", "x"))
}
