package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// openLimited opens a service whose item collections hold few bytes.
func openLimited(t *testing.T, bytes int64) *db {
	t.Helper()
	e, err := engine.Open(engine.Options{Clock: clock.NewFrozenAt(epoch), CollectionBytesMax: bytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &db{Service: New(Options{Engine: e, Region: "eu-west-1", Account: "123456789012"}), t: t}
}

// A collection of a table with local indexes grows up to its limit, by every operation that writes
// items. Deletes, and writes that shrink an item, always work.
func TestItemCollectionSizeLimit(t *testing.T) {
	d := openLimited(t, 600)
	const full = "Collection size exceeded."
	song := func(song string, pad int) string {
		return fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"%s"},"year":{"N":"1"},"fill":{"S":"%s"}}`, song, strings.Repeat("x", pad))
	}
	put := func(table, text string) *WriteInput { return &WriteInput{TableName: Some(table), Item: arg(text)} }
	music := d.music()
	d.put(music, song("b", 400))

	_, err := d.PutItem(ctx, put(music, song("c", 200)))
	refused(t, err, dynamo.CodeCollectionSize, full)
	update := func(pad int) *WriteInput {
		return &WriteInput{
			TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`), Update: Some("SET fill = :p"),
			Values: vals(fmt.Sprintf(`{":p":{"S":"%s"}}`, strings.Repeat("x", pad))),
		}
	}
	_, err = d.UpdateItem(ctx, update(600))
	refused(t, err, dynamo.CodeCollectionSize, full)

	putOf, otherOf := arg(song("c", 200)), arg(`{"id":{"S":"1"}}`)
	_, err = d.BatchWriteItem(ctx, &BatchWriteItemInput{RequestItems: []BatchWriteTable{
		{Table: d.counters(), Requests: []WriteRequest{{Put: &otherOf}}}, {Table: music, Requests: []WriteRequest{{Put: &putOf}}},
	}})
	refused(t, err, dynamo.CodeCollectionSize, full)

	_, err = d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{{Put: put("Counters", `{"id":{"S":"1"}}`)}, {Put: put(music, song("c", 200))}}})
	refused(t, err, dynamo.CodeTransactionCanceled,
		"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ItemCollectionSizeLimitExceeded]")
	var cancelled *dynamo.Error
	if errors.As(err, &cancelled) && (len(cancelled.Reasons) != 2 || cancelled.Reasons[1].Message != full || cancelled.Reasons[0].Message != "") {
		t.Errorf("reasons %+v", cancelled.Reasons)
	}
	equal(t, "the other item of the batch and of the transaction", d.get("Counters", `{"id":{"S":"1"}}`), "(none)")
	equal(t, "the item that was refused", d.get(music, `{"artist":{"S":"a"},"song":{"S":"c"}}`), "(none)")

	d.put(music, strings.ReplaceAll(song("c", 400), `"a"`, `"another"`)) // another collection
	if _, err := d.UpdateItem(ctx, update(399)); err != nil {
		t.Errorf("a write that shrinks the item: %v", err)
	}
	// a transaction that makes room for its own item
	remove := &WriteInput{TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`)}
	if _, err := d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{{Put: put(music, song("c", 400))}, {Delete: remove}}}); err != nil {
		t.Errorf("a transaction that keeps the size: %v", err)
	}
	if _, err := d.DeleteItem(ctx, &WriteInput{TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"c"}}`)}); err != nil {
		t.Fatal(err)
	}
	d.put(music, song("d", 400))
}

// The entries of local indexes count, and entries of global ones do not.
func TestItemCollectionCountsLocalEntries(t *testing.T) {
	d := openLimited(t, 100)
	music := d.music()
	put := func(text string) error {
		_, err := d.PutItem(ctx, &WriteInput{TableName: Some(music), Item: arg(text)})
		return err
	}
	// 59 bytes, of which a global index holds some again
	if err := put(`{"artist":{"S":"a"},"song":{"S":"b"},"genre":{"S":"g"},"label":{"S":"` + strings.Repeat("x", 36) + `"}}`); err != nil {
		t.Fatal(err)
	}
	// 24 bytes, which are too many with an entry of 18
	refused(t, put(`{"artist":{"S":"a"},"song":{"S":"c"},"year":{"N":"1"},"pad":{"S":"123"}}`), dynamo.CodeCollectionSize, "Collection size exceeded.")
	if err := put(`{"artist":{"S":"a"},"song":{"S":"c"},"years":{"N":"1"},"p":{"S":"123"}}`); err != nil {
		t.Errorf("without an entry: %v", err)
	}
}

// The estimate is the GB that the collection lies in.
func TestItemCollectionEstimate(t *testing.T) {
	d := openLimited(t, 600)
	music := d.music()
	for range 2 { // before and after it was measured
		out, err := d.PutItem(ctx, &WriteInput{
			TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`), ReturnItemCollectionMetrics: Some("SIZE"),
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "range", [2]float64{out.Collection.Lo, out.Collection.Hi}, [2]float64{0, 1})
	}
	out, err := d.DeleteItem(ctx, &WriteInput{
		TableName: Some(music), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`), ReturnItemCollectionMetrics: Some("SIZE"),
	})
	if err != nil || out.Collection.Key.String() != `{"artist":{"S":"a"}}` {
		t.Errorf("%+v, %v", out, err)
	}
}
