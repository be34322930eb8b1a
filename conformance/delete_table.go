package conformance

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var deleteTableChecks = []check{
	{"Goes", deleteGoes},
	{"NameIsFreeAgain", deleteNameIsFreeAgain},
	{"Protected", deleteProtected},
	{"Missing", deleteMissing},
}

// DeleteTable describes the table as DELETING. Afterwards neither DescribeTable nor operations on
// items find it.
func deleteGoes(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	out, err := e.DB.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &tb.name})
	if err != nil {
		t.Fatal(err)
	}
	if d := out.TableDescription; d == nil || aws.ToString(d.TableName) != tb.name || d.TableStatus != types.TableStatusDeleting {
		t.Errorf("TableDescription: %+v", d)
	}
	tb.awaitGone(t)
	tb.refuse(t, "DescribeTable", `{}`, notFound, "Requested resource not found: Table: $T not found")
	tb.refuse(t, "GetItem", `{"Key":{"pk":{"S":"a"}}}`, notFound, "Requested resource not found")
}

// awaitGone waits until a deleted table can no longer be described.
func (tb *table) awaitGone(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(activeTimeout)
	for {
		_, err := tb.DB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name})
		if err != nil {
			wantError(t, err, notFound, "")
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("table %s is still there after %v", tb.name, activeTimeout)
		}
		time.Sleep(pollEvery)
	}
}

// A table made anew under the name of a deleted one has none of its items, and another id.
func deleteNameIsFreeAgain(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	first := tb.awaitActive(t)
	tb.put(t, item("pk", "a", "life", 1))
	deleteTable(t, e, tb.name)
	tb.awaitGone(t)

	again := create(t, e, &dynamodb.CreateTableInput{
		TableName: &tb.name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: first.KeySchema, AttributeDefinitions: first.AttributeDefinitions,
	})
	again.wantStored(t, item("pk", "a"), nil)
	if second := again.awaitActive(t); *second.TableId == *first.TableId {
		t.Errorf("both tables have the id %s", *first.TableId)
	}
}

// A protected table stays until its protection is lifted.
func deleteProtected(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", func(in *dynamodb.CreateTableInput) { in.DeletionProtectionEnabled = aws.Bool(true) })
	defer tb.ok(t, "UpdateTable", `{"DeletionProtectionEnabled":false}`)
	if d := tb.awaitActive(t); !aws.ToBool(d.DeletionProtectionEnabled) {
		t.Error("DeletionProtectionEnabled is not shown")
	}
	tb.refuse(t, "DeleteTable", `{}`, validation,
		"Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
}

func deleteMissing(t *testing.T, e *Endpoint) {
	e.refuse(t, "DeleteTable", `{"TableName":"no-such-table"}`, notFound, "Requested resource not found: Table: no-such-table not found")
	e.refuse(t, "DeleteTable", `{}`, validation, "The parameter 'TableName' is required but was not present in the request")
}
