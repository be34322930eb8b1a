package conformance

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expiryChecks move the clock. Each takes its deadlines from the endpoint's clock. They hold on a
// clock that runs meanwhile: they look for a present item a minute before its deadline, and for a
// missing one after it.
var expiryChecks = []check{
	{"NeverEarly", expiryNeverEarly},
	{"GoneWhetherReapedOrNot", expiryGone},
	{"WhatIsADeadline", expiryWhatIsADeadline},
	{"FiveYears", expiryFiveYears},
	{"EveryWriteArms", expiryEveryWriteArms},
	{"Renewals", expiryRenewals},
	{"ItemsFromBefore", expiryItemsFromBefore},
	{"Disabled", expiryDisabled},
	{"ChangeOfAttribute", expiryChangeOfAttribute},
	{"KeyAsAttribute", expiryKeyAsAttribute},
	{"ManyAtOnce", expiryManyAtOnce},
	{"ManyFromBefore", expiryManyFromBefore},
	{"Toggles", expiryToggles},
}

// strictExpiryChecks apply to endpoints that hide expired items from their deadlines on.
var strictExpiryChecks = []check{
	{"ToTheMillisecond", expiryToTheMillisecond},
	{"ExpiredStaysExpiredAfterDisabling", expiryStaysExpired},
	{"HiddenFromReads", expiryHiddenFromReads},
	{"HiddenFromIndexes", expiryHiddenFromIndexes},
	{"HiddenFromCompositeIndexes", compositeExpiry},
	{"HiddenFromNewIndexes", expiryHiddenFromNewIndexes},
	{"HiddenFromConditions", expiryHiddenFromConditions},
	{"HiddenFromUpdates", expiryHiddenFromUpdates},
	{"HiddenFromReturnValues", expiryHiddenFromReturnValues},
	{"HiddenFromTransactions", expiryHiddenFromTransactions},
	{"HiddenFromBirth", expiryHiddenFromBirth},
	{"PagesOverHoles", expiryPagesOverHoles},
	{"OfRestoredItems", expiryOfRestoredItems},
}

// ttlTable returns a new table with TTL on the attribute "ttl".
func ttlTable(t *testing.T, e *Endpoint, key string, options ...tableOption) *table {
	t.Helper()
	tb := newTable(t, e, key, options...)
	tb.setTTL(t, true, "ttl")
	return tb
}

// in returns the deadline that lies d ahead, in whole seconds rounded up.
func (e *Endpoint) in(d time.Duration) int64 {
	return e.now().Add(d).Add(time.Second - time.Nanosecond).Unix()
}

// awaitGoneItem checks that an item is gone: at once on a strict endpoint, and otherwise after its
// removal, for which it may advance the clock.
func (tb *table) awaitGoneItem(t *testing.T, key attributes) {
	t.Helper()
	if tb.Strict {
		tb.wantStored(t, key, nil)
		return
	}
	if tb.RemovedWithin > 0 && tb.get(t, key) != nil {
		tb.Advance(tb.RemovedWithin)
	}
	tb.await(t, "removal of "+itemText(key), func() bool { return tb.get(t, key) == nil })
}

// An item is there until its deadline, however often the clock moves, and gone after it.
func expiryNeverEarly(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	it := item("pk", "a", "ttl", e.in(time.Hour))
	tb.put(t, it)
	for range 5 {
		e.Advance(11 * time.Minute)
		tb.wantStored(t, item("pk", "a"), it)
	}
	e.Advance(6 * time.Minute)
	tb.awaitGoneItem(t, item("pk", "a"))
}

// The deadline is the instant that the number names, and a fraction of a millisecond is rounded up,
// never down. Around that instant the clock is read before and after each look at the item, so the
// check holds whether the clock stands or runs.
func expiryToTheMillisecond(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	for _, fraction := range []string{"", ".25", ".0004", ".9999"} {
		whole := e.in(10 * time.Second)
		text := fmt.Sprint(whole) + fraction
		deadline := ceilMillis(t, text)
		it := item("pk", "a", "ttl", number(text))
		tb.put(t, it)
		e.Advance(deadline.Sub(e.now()) - 3*time.Millisecond)
		for range 8 {
			before := e.now()
			got := tb.get(t, item("pk", "a"))
			after := e.now()
			if got == nil && after.Before(deadline) {
				t.Errorf("%s: gone at %v, %v before its deadline", text, after, deadline.Sub(after))
			}
			if got != nil && !before.Before(deadline) {
				t.Errorf("%s: still there at %v, %v after its deadline", text, before, before.Sub(deadline))
			}
			e.Advance(time.Millisecond)
		}
	}
}

// ceilMillis returns the instant of a number of seconds, rounded up to the millisecond.
func ceilMillis(t *testing.T, seconds string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(seconds + "s")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 0).Add(d)
	if whole := at.Truncate(time.Millisecond); !whole.Equal(at) {
		return whole.Add(time.Millisecond)
	}
	return at
}

// An expired item is gone, one with a later deadline and one without any are not.
func expiryGone(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	later, never := item("pk", "later", "ttl", e.in(time.Hour)), item("pk", "never")
	tb.put(t, item("pk", "soon", "ttl", e.in(time.Minute)), later, never)
	e.Advance(2 * time.Minute)
	tb.awaitGoneItem(t, item("pk", "soon"))
	tb.wantStored(t, item("pk", "later"), later)
	tb.wantStored(t, item("pk", "never"), never)
}

// A deadline is a number at the top level of the item, in the attribute of exactly the TTL's name.
// It counts seconds.
func expiryWhatIsADeadline(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	at := e.in(time.Minute)
	seconds := fmt.Sprint(at)
	lasting := []attributes{
		item("pk", "string", "ttl", seconds),
		item("pk", "binary", "ttl", []byte(seconds)),
		item("pk", "set", "ttl", numberSet{seconds}),
		item("pk", "list", "ttl", []any{at}),
		item("pk", "map", "ttl", item("ttl", at)),
		item("pk", "null", "ttl", nil),
		item("pk", "bool", "ttl", true),
		item("pk", "missing"),
		item("pk", "other name", "TTL", at),
		item("pk", "milliseconds", "ttl", at*1000),
		item("pk", "zero", "ttl", 0),
		item("pk", "negative", "ttl", -at),
		item("pk", "huge", "ttl", number("9.9E+125")),
		item("pk", "tiny", "ttl", number("1E-130")),
	}
	fleeting := []attributes{
		item("pk", "whole", "ttl", at),
		item("pk", "fraction", "ttl", number(seconds+".5")),
		item("pk", "scientific", "ttl", number(seconds+"00E-2")),
		item("pk", "born expired", "ttl", at-3600),
	}
	tb.put(t, lasting...)
	tb.put(t, fleeting...)
	e.Advance(2 * time.Minute)
	for _, it := range fleeting {
		tb.awaitGoneItem(t, item("pk", it["pk"]))
	}
	if got := len(tb.scanAll(t, "")); got != len(lasting) {
		t.Errorf("%d items are left, want %d: %s", got, len(lasting), sorted(column(tb.scanAll(t, ""), "pk")))
	}
}

// A deadline more than five years past is taken for a mistake and ignored; this is judged by the
// time of the write, and never again.
func expiryFiveYears(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	const year = 365 * 24 * time.Hour
	long := item("pk", "six years ago", "ttl", e.in(-6*year))
	tb.put(t, long, item("pk", "four years ago", "ttl", e.in(-4*year)))
	tb.awaitGoneItem(t, item("pk", "four years ago"))
	tb.wantStored(t, item("pk", "six years ago"), long)
}

// Every kind of write sets the deadline.
func expiryEveryWriteArms(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	at := e.in(time.Minute)
	update := &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", "update"), UpdateExpression: aws.String("SET #t = :t"),
		ExpressionAttributeNames: map[string]string{"#t": "ttl"}, ExpressionAttributeValues: item(":t", at)}
	if _, err := e.DB.UpdateItem(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	tb.put(t, item("pk", "put", "ttl", at))
	tb.load(t, []attributes{item("pk", "batch", "ttl", at)})
	if err := e.transact(t,
		types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "transaction put", "ttl", at)}},
		types.TransactWriteItem{Update: &types.Update{TableName: &tb.name, Key: item("pk", "transaction update"), UpdateExpression: update.UpdateExpression,
			ExpressionAttributeNames: update.ExpressionAttributeNames, ExpressionAttributeValues: update.ExpressionAttributeValues}},
	); err != nil {
		t.Fatal(err)
	}
	if got := len(tb.scanAll(t, "")); got != 5 {
		t.Errorf("before the deadline: %d items, want 5", got)
	}
	e.Advance(2 * time.Minute)
	for _, pk := range []string{"put", "update", "batch", "transaction put", "transaction update"} {
		tb.awaitGoneItem(t, item("pk", pk))
	}
}

// An item whose deadline was moved or taken away does not go on the old one; one whose deadline was
// brought forward goes on the new one.
func expiryRenewals(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	soon, late := e.in(time.Minute), e.in(time.Hour)
	for _, pk := range []string{"put later", "updated later", "put without", "removed", "made a string", "deleted and put"} {
		tb.put(t, item("pk", pk, "ttl", soon))
	}
	tb.put(t, item("pk", "put sooner", "ttl", late))
	update := func(pk, expression string, values attributes) {
		t.Helper()
		if _, err := e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("pk", pk), UpdateExpression: &expression,
			ExpressionAttributeNames: map[string]string{"#t": "ttl"}, ExpressionAttributeValues: values}); err != nil {
			t.Fatal(err)
		}
	}
	tb.put(t, item("pk", "put later", "ttl", late), item("pk", "put without"))
	update("updated later", "SET #t = :t", item(":t", late))
	update("removed", "REMOVE #t", nil)
	update("made a string", "SET #t = :t", item(":t", "never"))
	tb.delete(t, item("pk", "deleted and put"))
	tb.put(t, item("pk", "deleted and put", "ttl", late))
	update("put sooner", "SET #t = :t", item(":t", soon))

	e.Advance(2 * time.Minute)
	tb.awaitGoneItem(t, item("pk", "put sooner"))
	for _, pk := range []string{"put later", "updated later", "put without", "removed", "made a string", "deleted and put"} {
		if tb.get(t, item("pk", pk)) == nil {
			t.Errorf("%q went on the deadline that it no longer had", pk)
		}
	}
	e.Advance(time.Hour)
	for _, pk := range []string{"put later", "updated later", "deleted and put"} {
		tb.awaitGoneItem(t, item("pk", pk))
	}
	for _, pk := range []string{"put without", "removed", "made a string"} {
		if tb.get(t, item("pk", pk)) == nil {
			t.Errorf("%q has no deadline and is gone", pk)
		}
	}
}

// Enabling covers the items that are already there, those past their deadline included.
func expiryItemsFromBefore(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "ALL"))
	tb.put(t, item("pk", "past", "g", "x", "ttl", e.in(-time.Hour)), item("pk", "soon", "g", "x", "ttl", e.in(time.Minute)), item("pk", "never", "g", "x"))
	if got := len(tb.scanAll(t, "")); got != 3 {
		t.Errorf("without TTL: %d items, want 3", got)
	}
	tb.setTTL(t, true, "ttl")
	tb.awaitGoneItem(t, item("pk", "past"))
	if tb.get(t, item("pk", "soon")) == nil {
		t.Error("gone early")
	}
	e.Advance(2 * time.Minute)
	tb.awaitGoneItem(t, item("pk", "soon"))
	tb.awaitIndex(t, "byG", 1)
	if tb.get(t, item("pk", "never")) == nil {
		t.Error("an item without a deadline is gone")
	}
}

// With TTL off nothing expires, for any value of the attribute.
func expiryDisabled(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	e.pauseTTL()
	it := item("pk", "a", "ttl", e.in(time.Minute))
	tb.put(t, it)
	tb.setTTL(t, false, "ttl")
	after := item("pk", "b", "ttl", e.in(time.Minute))
	tb.put(t, after)
	e.Advance(time.Hour)
	tb.wantStored(t, item("pk", "a"), it)
	tb.wantStored(t, item("pk", "b"), after)
}

// After a change of attribute only the new one counts, for old items and new ones.
func expiryChangeOfAttribute(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	e.pauseTTL()
	soon, late := e.in(e.TTLPause+time.Minute), e.in(e.TTLPause+time.Hour)
	tb.put(t, item("pk", "a", "ttl", soon, "until", late), item("pk", "b", "ttl", late, "until", soon), item("pk", "c", "ttl", soon))
	tb.setTTL(t, false, "ttl")
	e.pauseTTL()
	tb.setTTL(t, true, "until")
	tb.put(t, item("pk", "d", "ttl", soon), item("pk", "e", "until", soon))
	e.Advance(2 * time.Minute)
	for _, pk := range []string{"b", "e"} {
		tb.awaitGoneItem(t, item("pk", pk))
	}
	if got := sorted(column(tb.scanAll(t, ""), "pk")); got != "a c d" {
		t.Errorf("left: %s, want a c d", got)
	}
	e.Advance(time.Hour)
	tb.awaitGoneItem(t, item("pk", "a"))
	if got := sorted(column(tb.scanAll(t, ""), "pk")); got != "c d" {
		t.Errorf("left: %s, want c d", got)
	}
}

// Items that had expired before TTL was disabled do not come back.
func expiryStaysExpired(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	e.pauseTTL()
	tb.put(t, item("pk", "a", "ttl", e.in(time.Minute)))
	e.Advance(2 * time.Minute)
	tb.wantStored(t, item("pk", "a"), nil)
	tb.setTTL(t, false, "ttl")
	tb.wantStored(t, item("pk", "a"), nil)
}

// The attribute may be the sort key, or an index's key.
func expiryKeyAsAttribute(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("bySK", "sk:N", "ALL"))
	tb.setTTL(t, true, "sk")
	soon, late := e.in(time.Minute), e.in(time.Hour)
	tb.put(t, item("pk", "a", "sk", soon), item("pk", "a", "sk", late))
	e.Advance(2 * time.Minute)
	tb.awaitGoneItem(t, item("pk", "a", "sk", soon))
	tb.awaitIndex(t, "bySK", 1)
	if tb.get(t, item("pk", "a", "sk", late)) == nil {
		t.Error("gone early")
	}
}

// expired returns a table, at a strict endpoint, with two items in a collection: sk 1 has expired,
// and sk 2 lives. It advances the clock by two minutes.
func expired(t *testing.T, e *Endpoint, options ...tableOption) *table {
	t.Helper()
	tb := ttlTable(t, e, "pk:S sk:N", options...)
	tb.put(t, item("pk", "p", "sk", 1, "g", "x", "l", 1, "n", 1, "ttl", e.in(time.Minute)), item("pk", "p", "sk", 2, "g", "x", "l", 2, "n", 2))
	e.Advance(2 * time.Minute)
	return tb
}

// No read shows an expired item, or counts it.
func expiryHiddenFromReads(t *testing.T, e *Endpoint) {
	tb := expired(t, e)
	alive := []attributes{item("pk", "p", "sk", 2, "g", "x", "l", 2, "n", 2)}
	tb.wantStored(t, item("pk", "p", "sk", 1), nil)
	out := tb.query(t, "pk = :p", item(":p", "p"))
	wantItems(t, "query", out.Items, alive)
	if out.Count != 1 || out.ScannedCount != 1 {
		t.Errorf("query: Count %d, ScannedCount %d, want 1 and 1", out.Count, out.ScannedCount)
	}
	wantItems(t, "scan", tb.scanAll(t, ""), alive)
	if got := tb.scan(t, func(in *dynamodb.ScanInput) { in.Select = types.SelectCount }); got.Count != 1 || got.ScannedCount != 1 {
		t.Errorf("count: %d of %d, want 1 of 1", got.Count, got.ScannedCount)
	}
	batch, err := e.DB.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		tb.name: {Keys: []attributes{item("pk", "p", "sk", 1), item("pk", "p", "sk", 2)}}}})
	if err != nil {
		t.Fatal(err)
	}
	wantItems(t, "batch", batch.Responses[tb.name], alive)
	together, err := e.DB.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: &tb.name, Key: item("pk", "p", "sk", 1)}}}})
	if err != nil {
		t.Fatal(err)
	}
	wantItem(t, "transaction", together.Responses[0].Item, nil)
}

func expiryHiddenFromIndexes(t *testing.T, e *Endpoint) {
	tb := expired(t, e, global("byG", "g:S n:N", "ALL"), global("keys", "g:S", "KEYS_ONLY"), local("byL", "pk:S l:N", "ALL"))
	if got := column(tb.query(t, "g = :g", item(":g", "x"), onIndex("byG")).Items, "sk"); got != "2" {
		t.Errorf("global: got %s", got)
	}
	if got := column(tb.query(t, "pk = :p", item(":p", "p"), onIndex("byL")).Items, "sk"); got != "2" {
		t.Errorf("local: got %s", got)
	}
	for _, index := range []string{"byG", "keys", "byL"} {
		if got := column(tb.scanAll(t, index), "sk"); got != "2" {
			t.Errorf("scan of %s: got %s", index, got)
		}
	}
}

// Items that expire before an index is added, while it is built and after are hidden from it as
// from others, and leave nothing in it: when TTL is disabled none of them comes back.
func expiryHiddenFromNewIndexes(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	var items, left []attributes
	for i := range 300 {
		it := item("pk", fmt.Sprint("k", i), "g", fmt.Sprint("g", i%3))
		switch i % 4 {
		case 0:
			it["ttl"] = value(e.in(time.Minute))
		case 1:
			it["ttl"] = value(e.in(time.Hour))
		case 2:
			it["ttl"] = value(e.in(24 * time.Hour))
		default:
			left = append(left, it)
		}
		items = append(items, it)
	}
	tb.load(t, items)
	e.Advance(2 * time.Minute)
	tb.addIndex(t, "byG", "g:S", "ALL")
	e.Advance(2 * time.Hour)
	tb.awaitBuilt(t, "byG")
	const lasting = 75
	tb.awaitIndex(t, "byG", 2*lasting)
	renewed := item("pk", "k2", "g", "g2")
	tb.put(t, renewed)
	e.Advance(25 * time.Hour)
	tb.holds(t, "byG", append(left, renewed))
	tb.setTTL(t, false, "ttl")
	tb.holds(t, "byG", append(left, renewed))
}

// For a condition an expired item is missing, and an error carries no such item.
func expiryHiddenFromConditions(t *testing.T, e *Endpoint) {
	tb := expired(t, e)
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"p"},"sk":{"N":"1"}},"ConditionExpression":"attribute_exists(pk)"}`, conditionFailed, "")
	tb.refuse(t, "UpdateItem", `{"Key":{"pk":{"S":"p"},"sk":{"N":"1"}},"ConditionExpression":"attribute_exists(pk)"}`, conditionFailed, "")
	_, err := e.DB.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &tb.name, Key: item("pk", "p", "sk", 1),
		ConditionExpression: aws.String("n = :n"), ExpressionAttributeValues: item(":n", 1),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
	wantItem(t, "item in the error", failedItem(t, err), nil)
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"p"},"sk":{"N":"1"},"life":{"N":"2"}},"ConditionExpression":"attribute_not_exists(pk)"}`)
	tb.wantStored(t, item("pk", "p", "sk", 1), item("pk", "p", "sk", 1, "life", 2))
}

// An update of an expired item starts from nothing.
func expiryHiddenFromUpdates(t *testing.T, e *Endpoint) {
	tb := expired(t, e)
	key := item("pk", "p", "sk", 1)
	_, err := e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: key,
		UpdateExpression: aws.String("SET n = n + :one"), ExpressionAttributeValues: item(":one", 1)})
	wantError(t, err, validation, "The provided expression refers to an attribute that does not exist in the item")
	_, err = e.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &tb.name, Key: key,
		UpdateExpression: aws.String("ADD n :one SET m = if_not_exists(l, :one)"), ExpressionAttributeValues: item(":one", 1)})
	if err != nil {
		t.Fatal(err)
	}
	tb.wantStored(t, key, item("pk", "p", "sk", 1, "n", 1, "m", 1))
}

func expiryHiddenFromReturnValues(t *testing.T, e *Endpoint) {
	for _, row := range []struct{ op, body string }{
		{"PutItem", `{"Item":{"pk":{"S":"p"},"sk":{"N":"1"}},"ReturnValues":"ALL_OLD"}`},
		{"DeleteItem", `{"Key":{"pk":{"S":"p"},"sk":{"N":"1"}},"ReturnValues":"ALL_OLD"}`},
		{"UpdateItem", `{"Key":{"pk":{"S":"p"},"sk":{"N":"1"}},"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"9"}},"ReturnValues":"ALL_OLD"}`},
		{"UpdateItem", `{"Key":{"pk":{"S":"p"},"sk":{"N":"1"}},"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"9"}},"ReturnValues":"UPDATED_OLD"}`},
	} {
		expired(t, e).ok(t, row.op, row.body).wantAbsent(t, "Attributes")
	}
}

// Transactions treat an expired item as missing.
func expiryHiddenFromTransactions(t *testing.T, e *Endpoint) {
	tb := expired(t, e)
	err := e.transact(t,
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &tb.name, Key: item("pk", "p", "sk", 1), ConditionExpression: aws.String("attribute_exists(pk)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}},
		types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "q", "sk", 1)}})
	reasons := wantCanceled(t, err, "ConditionalCheckFailed: The conditional request failed", "None").CancellationReasons
	wantItem(t, "item in the reason", reasons[0].Item, nil)
	if err := e.transact(t,
		types.TransactWriteItem{Put: &types.Put{TableName: &tb.name, Item: item("pk", "p", "sk", 1), ConditionExpression: aws.String("attribute_not_exists(pk)")}}); err != nil {
		t.Errorf("a put over an expired item: %v", err)
	}
}

// No read sees an item that was written with a past deadline. It is read at once, so that its
// deadline must hide it: the reaper has had no time to remove it.
func expiryHiddenFromBirth(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S sk:N", global("byG", "g:S", "ALL"))
	key, past := item("pk", "p", "sk", 1), e.in(-time.Hour)
	for _, look := range []func() int{
		func() int { return len(tb.get(t, key)) },
		func() int { return int(tb.query(t, "pk = :p", item(":p", "p")).ScannedCount) },
		func() int { return int(tb.query(t, "g = :g", item(":g", "x"), onIndex("byG")).ScannedCount) },
		func() int { return int(tb.scan(t).ScannedCount) },
		func() int {
			return len(tb.ok(t, "BatchGetItem", `{"RequestItems":{"$T":{"Keys":[{"pk":{"S":"p"},"sk":{"N":"1"}}]}}}`).at("Responses." + tb.name).([]any))
		},
		func() int {
			a := tb.ok(t, "TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"$T","Key":{"pk":{"S":"p"},"sk":{"N":"1"}}}}]}`)
			return len(a.at("Responses").([]any)[0].(map[string]any))
		},
		func() int {
			return len(tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"p"},"sk":{"N":"1"}},"ReturnValues":"ALL_OLD"}`))
		},
		func() int {
			tb.ok(t, "DeleteItem", `{"Key":{"pk":{"S":"p"},"sk":{"N":"1"}},"ConditionExpression":"attribute_not_exists(pk)"}`)
			return 0
		},
	} {
		for range 25 {
			tb.put(t, item("pk", "p", "sk", 1, "g", "x", "ttl", past))
			if seen := look(); seen != 0 {
				t.Fatalf("an item that was born expired is seen (%d)", seen)
			}
		}
	}
}

// A page does not end early at expired items, and a start key may be the key of one.
func expiryPagesOverHoles(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S sk:N")
	for n := range 12 {
		it := item("pk", "p", "sk", n)
		if n%3 != 0 {
			it["ttl"] = value(e.in(time.Minute))
		}
		tb.put(t, it)
	}
	first := tb.query(t, "pk = :p", item(":p", "p"), func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(5) })
	e.Advance(2 * time.Minute)
	rest := tb.query(t, "pk = :p", item(":p", "p"), func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = first.LastEvaluatedKey })
	if got := column(rest.Items, "sk"); got != "6 9" {
		t.Errorf("after an expired start key: got %s, want 6 9", got)
	}
	for _, back := range []bool{false, true} {
		pages := tb.queryAll(t, "pk = :p", item(":p", "p"), func(in *dynamodb.QueryInput) {
			in.Limit = aws.Int32(2)
			in.ScanIndexForward = aws.Bool(!back)
		})
		if got := sorted(column(slices.Concat(pages...), "sk")); got != "0 3 6 9" {
			t.Errorf("backward %v: got %s", back, got)
		}
	}
}

// Hundreds of items that fall due at one instant all go.
func expiryManyAtOnce(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:N", global("byG", "g:N", "ALL"))
	at := e.in(5 * time.Minute)
	var items []attributes
	for n := range 500 {
		items = append(items, item("pk", n, "g", n%7, "ttl", at))
	}
	items = append(items, item("pk", 1000, "g", 1))
	tb.load(t, items)
	if got := len(tb.scanAll(t, "")); got != 501 {
		t.Errorf("before the deadline: %d items, want 501", got)
	}
	e.Advance(6 * time.Minute)
	tb.await(t, "expiry of all but one", func() bool { return len(tb.scanAll(t, "")) == 1 })
	tb.awaitIndex(t, "byG", 1)
}

// Enabling covers a table of many items, while others are being written.
func expiryManyFromBefore(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N", global("byG", "g:N", "KEYS_ONLY"))
	at := e.in(10 * time.Minute)
	items := func(from, to int) (list []attributes) {
		for n := from; n < to; n++ {
			list = append(list, item("pk", n, "g", n%3, "ttl", at))
		}
		return list
	}
	tb.load(t, items(0, 600))
	var writer sync.WaitGroup
	writer.Go(func() {
		for _, it := range items(600, 700) {
			tb.putQuietly(t, it)
		}
	})
	tb.setTTL(t, true, "ttl")
	writer.Wait()
	if got := len(tb.scanAll(t, "")); got != 700 {
		t.Errorf("before the deadline: %d items, want 700", got)
	}
	e.Advance(11 * time.Minute)
	tb.await(t, "expiry of all", func() bool { return len(tb.scanAll(t, "")) == 0 })
	tb.awaitIndex(t, "byG", 0)
}

// However often TTL is switched, a deadline counts when TTL is on at that time, and an item that
// outlived its deadline while TTL was off goes when it is switched on again.
func expiryToggles(t *testing.T, e *Endpoint) {
	tb := ttlTable(t, e, "pk:S")
	e.pauseTTL()
	const more = 7 // changes after the first two
	outlived, late := e.in(time.Minute), e.in(more*e.TTLPause+time.Hour)
	tb.put(t, item("pk", "outlived", "ttl", outlived), item("pk", "late", "ttl", late))
	tb.setTTL(t, false, "ttl")
	e.Advance(2 * time.Minute)
	if tb.get(t, item("pk", "outlived")) == nil {
		t.Error("gone while TTL was off")
	}
	for range 3 {
		e.pauseTTL()
		tb.setTTL(t, true, "other attribute")
		e.pauseTTL()
		tb.setTTL(t, false, "other attribute")
	}
	if got := len(tb.scanAll(t, "")); got != 2 {
		t.Errorf("%d items, want 2", got)
	}
	e.pauseTTL()
	tb.setTTL(t, true, "ttl")
	tb.awaitGoneItem(t, item("pk", "outlived"))
	if tb.get(t, item("pk", "late")) == nil {
		t.Error("gone early")
	}
	e.Advance(time.Hour)
	tb.awaitGoneItem(t, item("pk", "late"))
}
