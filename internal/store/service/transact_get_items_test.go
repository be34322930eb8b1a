package service

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestTransactGetItems(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"n":{"N":"1"},"x":{"S":"y"}}`)
	out, err := d.TransactGetItems(ctx, &TransactGetItemsInput{
		Items: []TransactGet{
			{Present: true, TableName: Some(table), Key: arg(`{"id":{"S":"a"}}`), Projection: Some("n")},
			{Present: true, TableName: Some(table), Key: arg(`{"id":{"S":"none"}}`)},
		},
		ReturnConsumedCapacity: Some("TOTAL"),
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "responses", lines(out.Responses), `{"n":{"N":"1"}}`+"\n(none)\n")
	equal(t, "units", fmt.Sprint(out.Capacity[0].Units, out.Capacity[0].Read), "4 {4 true}")
}

func TestTransactGetItemsRefused(t *testing.T) {
	d := open(t)
	table := Some(d.counters())
	get := func(key string) TransactGet { return TransactGet{Present: true, TableName: table, Key: arg(key)} }
	_, err := d.TransactGetItems(ctx, &TransactGetItemsInput{Items: []TransactGet{{}}})
	invalidRequest(t, err, "1 validation error detected: Value null at 'transactItems.1.member.get' failed to satisfy constraint: Member must not be null")
	_, err = d.TransactGetItems(ctx, &TransactGetItemsInput{Items: []TransactGet{get(`{"id":{"S":"a"}}`), get(`{"id":{"S":"a"}}`)}})
	invalidRequest(t, err, "Transaction request cannot include multiple operations on one item")
	_, err = d.TransactGetItems(ctx, &TransactGetItemsInput{Items: []TransactGet{get(`{"id":{"N":"1"}}`), get(`{"id":{"S":"a"}}`)}})
	refused(t, err, dynamo.CodeTransactionCanceled,
		"Transaction cancelled, please refer cancellation reasons for specific reasons [ValidationError, None]")
}
