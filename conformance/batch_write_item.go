package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var batchWriteItemChecks = []check{
	{"PutsAndDeletes", batchWritePutsAndDeletes},
	{"Indexes", batchWriteIndexes},
	{"AllOrNothingIsChecked", batchWriteAllOrNothingIsChecked},
	{"Refused", batchWriteRefused},
	{"TooMany", batchWriteTooMany},
}

// One call puts and deletes in several tables; deleting a missing item is no error.
func batchWritePutsAndDeletes(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S sk:N")
	one.put(t, item("pk", "old", "v", 1), item("pk", "gone"))
	out, err := e.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		one.name: {putRequest(item("pk", "old", "v", 2)), deleteRequest(item("pk", "gone")), deleteRequest(item("pk", "never"))},
		two.name: {putRequest(item("pk", "a", "sk", 1)), putRequest(item("pk", "a", "sk", 2))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.UnprocessedItems) != 0 {
		t.Errorf("UnprocessedItems: %v", out.UnprocessedItems)
	}
	one.wantStored(t, item("pk", "old"), item("pk", "old", "v", 2))
	one.wantStored(t, item("pk", "gone"), nil)
	two.wantStored(t, item("pk", "a", "sk", 1), item("pk", "a", "sk", 1))
	two.wantStored(t, item("pk", "a", "sk", 2), item("pk", "a", "sk", 2))
}

func putRequest(it attributes) types.WriteRequest {
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: it}}
}

func deleteRequest(key attributes) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}
}

// Batches keep indexes as single writes do.
func batchWriteIndexes(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.load(t, []attributes{item("pk", "a", "g", "x"), item("pk", "b", "g", "x"), item("pk", "c")})
	tb.awaitIndex(t, "byG", 2)
	if _, err := e.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		tb.name: {deleteRequest(item("pk", "a")), putRequest(item("pk", "c", "g", "x"))},
	}}); err != nil {
		t.Fatal(err)
	}
	tb.await(t, "the index", func() bool { return sorted(column(tb.scanAll(t, "byG"), "pk")) == "b c" })
}

// Everything is checked before anything is written.
func batchWriteAllOrNothingIsChecked(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "BatchWriteItem", `{"RequestItems":{"$T":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"PutRequest":{"Item":{"other":{"S":"b"}}}}]}}`, validation, "")
	tb.wantStored(t, item("pk", "a"), nil)
}

func batchWriteRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const several = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
	for _, row := range []struct{ name, requests, code, message string }{
		{"one key twice", `[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"a"}}}}]`, validation, "Provided list of item keys contains duplicates"},
		{"both in one", `[{"PutRequest":{"Item":{"pk":{"S":"a"}}},"DeleteRequest":{"Key":{"pk":{"S":"a"}}}}]`, validation, several},
		{"neither", `[{}]`, validation, several},
		{"no requests", `[]`, validation, "1 validation error detected: …Member must have length greater than or equal to 1…"},
		{"wrong key", `[{"DeleteRequest":{"Key":{"pk":{"N":"1"}}}}]`, validation, "The provided key element does not match the schema"},
		{"wrong key of a put", `[{"PutRequest":{"Item":{"pk":{"N":"1"}}}}]`, validation, "The provided key element does not match the schema"},
		{"bad value", `[{"PutRequest":{"Item":{"pk":{"S":"a"},"v":{"SS":[]}}}}]`, validation, invalid + "An string set  may not be empty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e.refuse(t, "BatchWriteItem", `{"RequestItems":{"`+tb.name+`":`+row.requests+`}}`, row.code, row.message)
		})
	}
	tb.wantStored(t, item("pk", "a"), nil)
	e.refuse(t, "BatchWriteItem", `{}`, validation, "…")
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{}}`, validation, "…")
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{"no-such-table":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}}]}}`, notFound, "Requested resource not found")
	_, err := e.DB.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		tb.name: {putRequest(item("pk", "a", "v", bigString(400<<10)))},
	}})
	wantError(t, err, validation, "Item size has exceeded the maximum allowed size")
}

// At most 25 writes, in one table or over several.
func batchWriteTooMany(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S")
	puts := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"PutRequest":{"Item":{"pk":{"S":"%d"}}}}`, i))
		}
		return `[` + strings.Join(list, ",") + `]`
	}
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{"`+one.name+`":`+puts(26)+`}}`, validation,
		"1 validation error detected: Value '…' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]")
	e.refuse(t, "BatchWriteItem", `{"RequestItems":{"`+one.name+`":`+puts(13)+`,"`+two.name+`":`+puts(13)+`}}`, validation,
		"Too many items requested for the BatchWriteItem call")
	one.wantStored(t, item("pk", "0"), nil)
	e.ok(t, "BatchWriteItem", `{"RequestItems":{"`+one.name+`":`+puts(25)+`}}`)
	if got := len(one.scanAll(t, "")); got != 25 {
		t.Errorf("got %d items, want 25", got)
	}
}
