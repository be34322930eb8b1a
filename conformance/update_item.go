package conformance

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var updateItemChecks = []check{
	{"CreatesOrChanges", updateCreatesOrChanges},
	{"WithoutExpression", updateWithoutExpression},
	{"ReturnValues", updateReturnValues},
	{"ReturnValuesOfFragments", updateReturnValuesOfFragments},
	{"Condition", updateCondition},
	{"ConditionFailureReturnsItem", updateConditionFailureReturnsItem},
	{"Refused", updateRefused},
	{"Enums", updateEnums},
	{"TooLarge", updateTooLarge},
	{"Concurrent", updateConcurrent},
}

// An update creates a missing item, and keeps attributes that it does not name.
func updateCreatesOrChanges(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	key := item("pk", "a", "sk", 1)
	update := func(expression string, values attributes) {
		t.Helper()
		in := &dynamodb.UpdateItemInput{TableName: &tb.name, Key: key, UpdateExpression: &expression}
		if len(values) > 0 {
			in.ExpressionAttributeValues = values
		}
		if _, err := e.DB.UpdateItem(t.Context(), in); err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
	}
	update("SET a = :v", item(":v", "x"))
	tb.wantStored(t, key, item("pk", "a", "sk", 1, "a", "x"))
	update("SET b = :v REMOVE a", item(":v", 2))
	tb.wantStored(t, key, item("pk", "a", "sk", 1, "b", 2))
	update("ADD b :v", item(":v", 40))
	tb.wantStored(t, key, item("pk", "a", "sk", 1, "b", 42))
}

// An update without an expression creates the item if it is missing; one that only removes does
// not.
func updateWithoutExpression(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}}}`)
	tb.wantStored(t, item("pk", "a"), item("pk", "a"))
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"b"}},"UpdateExpression":"REMOVE x"}`)
	tb.wantStored(t, item("pk", "b"), nil)
}

// Each kind of return value, for an item that exists and for one that does not.
func updateReturnValues(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, row := range []struct {
		kind           types.ReturnValue
		changed, added attributes // the returned attributes for an existing item, and for a new one
	}{
		{types.ReturnValueNone, nil, nil},
		{types.ReturnValueAllOld, item("pk", "a", "n", 1, "gone", true, "kept", "k"), nil},
		{types.ReturnValueUpdatedOld, item("n", 1, "gone", true), nil},
		{types.ReturnValueAllNew, item("pk", "a", "n", 2, "kept", "k"), item("pk", "new", "n", 2)},
		{types.ReturnValueUpdatedNew, item("n", 2), item("n", 2)},
	} {
		t.Run(string(row.kind), func(t *testing.T) {
			tb.put(t, item("pk", "a", "n", 1, "gone", true, "kept", "k"))
			tb.delete(t, item("pk", "new"))
			in := &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", "a"),
				UpdateExpression: aws.String("SET n = :n REMOVE gone"), ExpressionAttributeValues: item(":n", 2), ReturnValues: row.kind}
			out, err := e.DB.UpdateItem(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			wantItem(t, "existing item", out.Attributes, row.changed)
			in.Key = item("pk", "new")
			if out, err = e.DB.UpdateItem(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			wantItem(t, "new item", out.Attributes, row.added)
		})
	}
}

// UPDATED_* return only the fragments that the expression names, and no Attributes when nothing is
// left to show.
func updateReturnValuesOfFragments(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	reset := func() { tb.put(t, item("pk", "a", "m", item("x", 1, "y", 2), "l", []any{"p", "q", "r"})) }
	const update = `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET m.x = :v, l[1] = :v","ExpressionAttributeValues":{":v":{"N":"9"}},"ReturnValues":`
	reset()
	tb.ok(t, "UpdateItem", update+`"UPDATED_NEW"}`).want(t, "Attributes", `{"m":{"M":{"x":{"N":"9"}}},"l":{"L":[{"N":"9"}]}}`)
	reset()
	tb.ok(t, "UpdateItem", update+`"UPDATED_OLD"}`).want(t, "Attributes", `{"m":{"M":{"x":{"N":"1"}}},"l":{"L":[{"S":"q"}]}}`)
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"REMOVE m.y","ReturnValues":"UPDATED_NEW"}`).wantAbsent(t, "Attributes")
}

// An update whose condition is false changes nothing, and creates nothing.
func updateCondition(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const ifThere = `"UpdateExpression":"SET n = n + :one","ConditionExpression":"attribute_exists(pk)","ExpressionAttributeValues":{":one":{"N":"1"}}}`
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},`+ifThere, conditionFailed, "The conditional request failed")
	tb.wantStored(t, item("pk", "a"), nil)
	tb.put(t, item("pk", "a", "n", 1))
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},`+ifThere)
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 2))
}

func updateConditionFailureReturnsItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	in := &dynamodb.UpdateItemInput{
		TableName: &tb.name, Key: item("pk", "a"), UpdateExpression: aws.String("SET n = :n"), ConditionExpression: aws.String("n = :n"),
		ExpressionAttributeValues:           item(":n", 5),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, err := e.DB.UpdateItem(t.Context(), in)
	wantItem(t, "item in the error", failedItem(t, err), item("pk", "a", "n", 1))
}

func updateRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "UpdateItem", `{"Key":{"other":{"S":"a"}}}`, validation, "The provided key element does not match the schema")
	tb.refuse(t, "UpdateItem", `{}`, validation, "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null")
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET pk = :v","ExpressionAttributeValues":{":v":{"S":"b"}}}`, validation,
		invalid+"Cannot update attribute pk. This attribute is part of the key")
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"REMOVE pk"}`, validation,
		invalid+"Cannot update attribute pk. This attribute is part of the key")
	e.refuse(t, "UpdateItem", `{"TableName":"no-such-table","Key":{"pk":{"S":"a"}}}`, notFound, "Requested resource not found")
	tb.wantStored(t, item("pk", "a"), nil)
}

// UpdateItem names only the first bad enumeration.
func updateEnums(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"ReturnValues":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]")
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"ReturnValues":"X","ReturnConsumedCapacity":"Y"}`, validation,
		"1 validation error detected: Value 'X' at 'returnValues' failed to satisfy constraint: …")
}

// An item may not grow beyond 400 KB by updates, and stays as it was when it would.
func updateTooLarge(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "big", bigString(300<<10)))
	in := &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", "a"),
		UpdateExpression: aws.String("SET more = :m"), ExpressionAttributeValues: item(":m", bigString(120<<10))}
	_, err := e.DB.UpdateItem(t.Context(), in)
	wantError(t, err, validation, "Item size to update has exceeded the maximum allowed size")
	if stored := tb.get(t, item("pk", "a")); stored["more"] != nil {
		t.Error("the refused update was applied")
	}
}

// Concurrent increments of a counter all count.
func updateConcurrent(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	const writers, each = 8, 25
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if _, err := e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", "a"),
					UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item(":one", 1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", writers*each))
}
