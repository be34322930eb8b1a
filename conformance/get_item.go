package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var getItemChecks = []check{
	{"Missing", getMissing},
	{"Consistency", getConsistency},
	{"Projection", getProjection},
	{"Refused", getRefused},
}

// The answer for a missing item has no Item member; an item that projects to nothing is an empty
// Item.
func getMissing(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}}}`).wantAbsent(t, "Item")
	tb.put(t, item("pk", "a"))
	a := tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ProjectionExpression":"nope"}`)
	a.want(t, "Item", `{}`)
}

// A strong read sees every acknowledged write.
func getConsistency(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for n := range 20 {
		tb.put(t, item("pk", "a", "n", n))
		tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", n))
	}
	if _, err := e.DB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tb.name, Key: item("pk", "a"), ConsistentRead: aws.Bool(false)}); err != nil {
		t.Errorf("eventually consistent read: %v", err)
	}
}

// A projection leaves the key out unless it names it.
func getProjection(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "m", item("x", 1, "y", 2), "l", []any{"p", "q", "r"}, "other", true))
	out, err := e.DB.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &tb.name, Key: item("pk", "a"),
		ProjectionExpression:     aws.String("#m.x, l[2], nope, l[0]"),
		ExpressionAttributeNames: map[string]string{"#m": "m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantItem(t, "projected", out.Item, item("m", item("x", 1), "l", []any{"p", "r"}))
}

func getRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	const schema = "The provided key element does not match the schema"
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"}}}`, validation, schema)
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"},"sk":{"S":"1"}}}`, validation, schema)
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"},"other":{"N":"1"}}}`, validation, schema)
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"},"sk":{"N":"1"},"other":{"N":"1"}}}`, validation, schema)
	tb.refuse(t, "GetItem", `{}`, validation, "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null")
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"ReturnConsumedCapacity":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
	e.refuse(t, "GetItem", `{"TableName":"no-such-table","Key":{"pk":{"S":"a"}}}`, notFound, "Requested resource not found")
}
