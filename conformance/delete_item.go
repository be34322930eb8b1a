package conformance

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var deleteItemChecks = []check{
	{"Deletes", deleteDeletes},
	{"ReturnValues", deleteReturnValues},
	{"Condition", deleteCondition},
	{"Refused", deleteRefused},
}

// failedItem returns the item in a failed condition's error; it fails the test on any other
// outcome.
func failedItem(t *testing.T, err error) attributes {
	t.Helper()
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a ConditionalCheckFailedException", err)
	}
	if got := failed.ErrorMessage(); got != "The conditional request failed" {
		t.Errorf("message: %q", got)
	}
	return failed.Item
}

// Deleting a missing item succeeds.
func deleteDeletes(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S")
	tb.put(t, item("pk", "a", "sk", "1"), item("pk", "a", "sk", "2"))
	tb.delete(t, item("pk", "a", "sk", "1"))
	tb.delete(t, item("pk", "a", "sk", "1"))
	tb.wantStored(t, item("pk", "a", "sk", "1"), nil)
	tb.wantStored(t, item("pk", "a", "sk", "2"), item("pk", "a", "sk", "2"))
}

func deleteReturnValues(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	in := &dynamodb.DeleteItemInput{TableName: &tb.name, Key: item("pk", "a"), ReturnValues: types.ReturnValueAllOld}
	out, err := e.DB.DeleteItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	wantItem(t, "deleted item", out.Attributes, item("pk", "a", "n", 1))
	if out, err = e.DB.DeleteItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wantItem(t, "missing item", out.Attributes, nil)
}

// A delete whose condition is false removes nothing, and carries the item on request.
func deleteCondition(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1))
	in := &dynamodb.DeleteItemInput{TableName: &tb.name, Key: item("pk", "a"),
		ConditionExpression: aws.String("n = :n"), ExpressionAttributeValues: item(":n", 2),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
	_, err := e.DB.DeleteItem(t.Context(), in)
	wantItem(t, "item in the error", failedItem(t, err), item("pk", "a", "n", 1))
	tb.wantStored(t, item("pk", "a"), item("pk", "a", "n", 1))
	in.ExpressionAttributeValues = item(":n", 1)
	if _, err := e.DB.DeleteItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	tb.wantStored(t, item("pk", "a"), nil)
}

func deleteRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	for _, kind := range []string{"ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"} {
		tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},"ReturnValues":"`+kind+`"}`, validation, "ReturnValues can only be ALL_OLD or NONE")
	}
	tb.refuse(t, "DeleteItem", `{"Key":{"pk":{"N":"1"}}}`, validation, "The provided key element does not match the schema")
	tb.refuse(t, "DeleteItem", `{}`, validation, "1 validation error detected: Value null at 'key' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "DeleteItem", `{"TableName":"no-such-table","Key":{"pk":{"S":"a"}}}`, notFound, "Requested resource not found")
}
