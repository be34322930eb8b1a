package conformance

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var transactGetItemsChecks = []check{
	{"InOrder", transactGetInOrder},
	{"SeesWholeTransactions", transactGetSeesWholeTransactions},
	{"Refused", transactGetRefused},
}

// The responses have the order of the gets. The response for a missing item is empty.
func transactGetInOrder(t *testing.T, e *Endpoint) {
	one, two := newTable(t, e, "pk:S"), newTable(t, e, "pk:S sk:N")
	one.put(t, item("pk", "a", "v", 1, "w", 2))
	two.put(t, item("pk", "a", "sk", 1))
	a := e.ok(t, "TransactGetItems", `{"TransactItems":[
		{"Get":{"TableName":"`+two.name+`","Key":{"pk":{"S":"a"},"sk":{"N":"1"}}}},
		{"Get":{"TableName":"`+one.name+`","Key":{"pk":{"S":"none"}}}},
		{"Get":{"TableName":"`+one.name+`","Key":{"pk":{"S":"a"}},"ProjectionExpression":"#w","ExpressionAttributeNames":{"#w":"w"}}}]}`)
	a.want(t, "Responses", `[{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}},{},{"Item":{"w":{"N":"2"}}}]`)
}

// Reads never see half of a transaction.
func transactGetSeesWholeTransactions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	write := func(n int) error {
		_, err := e.DB.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: &tb.name, Item: item("pk", "a", "n", n)}},
			{Put: &types.Put{TableName: &tb.name, Item: item("pk", "b", "n", n)}},
		}})
		return err
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; n <= 50; n++ {
			if err := write(n); err != nil && !isConflict(err) {
				t.Errorf("write %d: %v", n, err)
			}
		}
	})
	for range 50 {
		out, err := e.DB.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: &tb.name, Key: item("pk", "a")}},
			{Get: &types.Get{TableName: &tb.name, Key: item("pk", "b")}},
		}})
		switch {
		case err != nil && !isConflict(err):
			t.Errorf("read: %v", err)
		case err == nil:
			if a, b := column([]attributes{out.Responses[0].Item}, "n"), column([]attributes{out.Responses[1].Item}, "n"); a != b {
				t.Errorf("one read saw a at %s and b at %s", a, b)
			}
		}
	}
	writer.Wait()
}

func transactGetRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	get := func(pk string) string {
		return `{"Get":{"TableName":"` + tb.name + `","Key":{"pk":{"S":"` + pk + `"}}}}`
	}
	var many []string
	for i := range 101 {
		many = append(many, get(fmt.Sprint(i)))
	}
	for _, row := range []struct{ name, list, code, message string }{
		{"empty", `[]`, validation, "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"101", `[` + strings.Join(many, ",") + `]`, validation,
			"1 validation error detected: Value '…' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"},
		{"one item twice", `[` + get("a") + `,` + get("a") + `]`, validation, "Transaction request cannot include multiple operations on one item"},
		{"unknown table", `[{"Get":{"TableName":"no-such-table","Key":{"pk":{"S":"a"}}}}]`, notFound, "Requested resource not found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e.refuse(t, "TransactGetItems", `{"TransactItems":`+row.list+`}`, row.code, row.message)
		})
	}
	// A key that does not fit the schema cancels the transaction, with the reason in its place.
	_, err := e.DB.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String(tb.name), Key: item("pk", "a")}},
		{Get: &types.Get{TableName: aws.String(tb.name), Key: item("pk", 1)}},
	}})
	wantCanceled(t, err, "None", "ValidationError: The provided key element does not match the schema")
}
