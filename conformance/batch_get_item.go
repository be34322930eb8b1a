package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var batchGetItemChecks = []check{
	{"SeveralTables", batchGetSeveralTables},
	{"PartialOnSize", batchGetPartialOnSize},
	{"Refused", batchGetRefused},
	{"TooMany", batchGetTooMany},
	{"AttributesToGet", batchGetAttributesToGet},
}

// One call reads from several tables, each with its own projection; missing items are left out.
func batchGetSeveralTables(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S sk:N")
	one.put(t, item("pk", "a", "v", 1), item("pk", "b", "v", 2))
	two.put(t, item("pk", "a", "sk", 1, "v", 3, "w", 4))
	out, err := e.DB.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		one.name: {Keys: []attributes{item("pk", "a"), item("pk", "none"), item("pk", "b")}, ConsistentRead: aws.Bool(true)},
		two.name: {Keys: []attributes{item("pk", "a", "sk", 1), item("pk", "a", "sk", 2)}, ProjectionExpression: aws.String("#v"),
			ExpressionAttributeNames: map[string]string{"#v": "v"}, ConsistentRead: aws.Bool(true)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := out.Responses[one.name]
	slices.SortFunc(got, func(a, b attributes) int { return strings.Compare(itemText(a), itemText(b)) })
	wantItems(t, "first table", got, []attributes{item("pk", "a", "v", 1), item("pk", "b", "v", 2)})
	wantItems(t, "second table", out.Responses[two.name], []attributes{item("v", 3)})
	if len(out.UnprocessedKeys) != 0 {
		t.Errorf("UnprocessedKeys: %v", out.UnprocessedKeys)
	}
}

// An answer has at most 16 MB; the keys that did not fit are handed back and can be asked for
// again.
func batchGetPartialOnSize(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N")
	var items, pending []attributes
	for n := range 50 {
		items = append(items, item("pk", n, "v", bigString(390<<10)))
		pending = append(pending, item("pk", n))
	}
	tb.load(t, items)
	seen := 0
	for calls := 1; len(pending) > 0; calls++ {
		out, err := e.DB.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{tb.name: {Keys: pending}}})
		if err != nil {
			t.Fatal(err)
		}
		got := len(out.Responses[tb.name])
		if got == 0 || got > 42 {
			t.Fatalf("call %d answered %d items of 390 KB", calls, got)
		}
		seen += got
		pending = out.UnprocessedKeys[tb.name].Keys
	}
	if seen != 50 {
		t.Errorf("got %d items, want 50", seen)
	}
}

func batchGetRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct{ name, body, code, message string }{
		{"nothing", `{"RequestItems":{}}`, validation,
			"1 validation error detected: Value '{}' at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"absent", `{}`, validation, "1 validation error detected: Value null at 'requestItems' failed to satisfy constraint: Member must not be null"},
		{"no keys", `{"RequestItems":{"$T":{"Keys":[]}}}`, validation,
			"1 validation error detected: Value '[]' at 'requestItems.$T.member.keys' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"keys absent", `{"RequestItems":{"$T":{}}}`, validation,
			"1 validation error detected: Value null at 'requestItems.$T.member.keys' failed to satisfy constraint: Member must not be null"},
		{"one key twice", `{"RequestItems":{"$T":{"Keys":[{"pk":{"S":"a"}},{"pk":{"S":"a"}}]}}}`, validation, "Provided list of item keys contains duplicates"},
		{"wrong key", `{"RequestItems":{"$T":{"Keys":[{"pk":{"N":"1"}}]}}}`, validation, "The provided key element does not match the schema"},
		{"bad value", `{"RequestItems":{"$T":{"Keys":[{"pk":{}}]}}}`, validation,
			"Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{"unknown table", `{"RequestItems":{"no-such-table":{"Keys":[{"pk":{"S":"a"}}]},"$T":{"Keys":[{"pk":{"S":"a"}}]}}}`, notFound, "Requested resource not found"},
		{"bad projection", `{"RequestItems":{"$T":{"Keys":[{"pk":{"S":"a"}}],"ProjectionExpression":"a,,b"}}}`, validation,
			`Invalid ProjectionExpression: Syntax error; token: ",", near: "…"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			e.refuse(t, "BatchGetItem", strings.ReplaceAll(row.body, "$T", tb.name), row.code, strings.ReplaceAll(row.message, "$T", tb.name))
		})
	}
}

// At most 100 keys, in one table or over several.
func batchGetTooMany(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S")
	keys := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))
		}
		return `{"Keys":[` + strings.Join(list, ",") + `]}`
	}
	e.ok(t, "BatchGetItem", `{"RequestItems":{"`+one.name+`":`+keys(100)+`}}`)
	e.refuse(t, "BatchGetItem", `{"RequestItems":{"`+one.name+`":`+keys(101)+`}}`, validation,
		"1 validation error detected: Value '…' at 'requestItems."+one.name+".member.keys' failed to satisfy constraint: Member must have length less than or equal to 100")
	e.refuse(t, "BatchGetItem", `{"RequestItems":{"`+one.name+`":`+keys(51)+`,"`+two.name+`":`+keys(50)+`}}`, validation,
		"Too many items requested for the BatchGetItem call")
}

// The older parameter works for each table; a request that mixes it with expressions is refused as
// a whole.
func batchGetAttributesToGet(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S")
	one.put(t, item("pk", "a", "v", 1, "name", 2))
	const keys = `{"Keys":[{"pk":{"S":"a"}}],`
	a := e.ok(t, "BatchGetItem", `{"RequestItems":{"`+one.name+`":`+keys+`"AttributesToGet":["name"]}}}`)
	a.want(t, "Responses", `{"`+one.name+`":[{"name":{"N":"2"}}]}`)
	e.refuse(t, "BatchGetItem", `{"RequestItems":{"`+one.name+`":`+keys+`"AttributesToGet":["v"]},"`+two.name+`":`+keys+`"ProjectionExpression":"v"}}}`, validation,
		"Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}")
}
