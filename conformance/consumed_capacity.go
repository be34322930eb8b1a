package conformance

import (
	"fmt"
	"testing"
)

var consumedCapacityChecks = []check{
	{"NotUnlessAsked", capacityNotUnlessAsked},
	{"GetItem", capacityGetItem},
	{"Writes", capacityWrites},
	{"Indexes", capacityIndexes},
	{"QueryAndScan", capacityQueryAndScan},
	{"Batches", capacityBatches},
	{"Transactions", capacityTransactions},
}

const total = `"ReturnConsumedCapacity":"TOTAL"`

// units checks that an answer consumed so many units of this table, with no details.
func (tb *table) units(t *testing.T, what string, a answer, units string) {
	t.Helper()
	a.want(t, "ConsumedCapacity", `{"TableName":"`+tb.name+`","CapacityUnits":`+units+`}`)
	if t.Failed() {
		t.Logf("that was: %s", what)
	}
}

func capacityNotUnlessAsked(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"}}}`).wantAbsent(t, "ConsumedCapacity")
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"a"}},"ReturnConsumedCapacity":"NONE"}`).wantAbsent(t, "ConsumedCapacity")
}

// A strong read costs a unit for each 4 KB begun, an eventually consistent one half of that. A read
// of a missing item costs as much as one of a small item.
func capacityGetItem(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "small"), item("pk", "4K", "v", bigString(4096-2-2-1)), item("pk", "4K1", "v", bigString(4096-2-3)))
	for _, row := range []struct{ pk, eventual, strong string }{
		{"none", "0.5", "1"}, {"small", "0.5", "1"}, {"4K", "0.5", "1"}, {"4K1", "1", "2"},
	} {
		tb.units(t, row.pk, tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"`+row.pk+`"}},`+total+`}`), row.eventual)
		tb.units(t, row.pk+", strong", tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"`+row.pk+`"}},"ConsistentRead":true,`+total+`}`), row.strong)
	}
	tb.ok(t, "GetItem", `{"Key":{"pk":{"S":"small"}},"ReturnConsumedCapacity":"INDEXES"}`).
		want(t, "ConsumedCapacity", `{"TableName":"`+tb.name+`","CapacityUnits":0.5,"Table":{"CapacityUnits":0.5}}`)
}

// A write costs a unit for each KB begun of the larger of the item before and after.
func capacityWrites(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	put := func(size int) answer {
		return tb.ok(t, "PutItem", fmt.Sprintf(`{"Item":{"pk":{"S":"a"},"v":{"S":"%s"}},%s}`, bigString(size-4), total))
	}
	tb.units(t, "put of 1 KB", put(1024), "1")
	tb.units(t, "put of 1 KB + 1", put(1025), "2")
	tb.units(t, "small over large", put(10), "2")
	tb.units(t, "large over small", put(3000), "3")
	tb.units(t, "update of a small attribute", tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"a"}},"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"1"}},`+total+`}`), "3")
	tb.units(t, "delete", tb.ok(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},`+total+`}`), "3")
	tb.units(t, "delete of nothing", tb.ok(t, "DeleteItem", `{"Key":{"pk":{"S":"a"}},`+total+`}`), "1")
}

// A write also costs units for each index whose entry changes. A changed index key costs two
// writes: the entry is deleted and put.
func capacityIndexes(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byL", "pk:S l:S", "ALL"), global("byG", "g:S", "KEYS_ONLY"))
	put := func(rest string) answer {
		return tb.ok(t, "PutItem", `{"Item":{"pk":{"S":"a"},"sk":{"S":"a"}`+rest+`},"ReturnConsumedCapacity":"INDEXES"}`)
	}
	want := func(what string, a answer, units, rest string) {
		t.Helper()
		a.want(t, "ConsumedCapacity", `{"TableName":"`+tb.name+`","CapacityUnits":`+units+`,"Table":{"CapacityUnits":1}`+rest+`}`)
		if t.Failed() {
			t.Logf("that was: %s", what)
		}
	}
	l := func(n string) string { return `,"LocalSecondaryIndexes":{"byL":{"CapacityUnits":` + n + `}}` }
	g := func(n string) string { return `,"GlobalSecondaryIndexes":{"byG":{"CapacityUnits":` + n + `}}` }
	want("no index key", put(``), "1", ``)
	want("both enter", put(`,"l":{"S":"1"},"g":{"S":"1"}`), "3", l("1")+g("1"))
	want("both move", put(`,"l":{"S":"2"},"g":{"S":"2"}`), "5", l("2")+g("2"))
	want("only what the local one projects changes", put(`,"l":{"S":"2"},"g":{"S":"2"},"v":{"S":"x"}`), "2", l("1"))
	want("one leaves", put(`,"l":{"S":"2"},"v":{"S":"x"}`), "3", l("1")+g("1"))
	want("nothing changes", put(`,"l":{"S":"2"},"v":{"S":"x"}`), "1", ``)
	want("the rest leaves", tb.ok(t, "DeleteItem", `{"Key":{"pk":{"S":"a"},"sk":{"S":"a"}},"ReturnConsumedCapacity":"INDEXES"}`), "2", l("1"))
}

// A page costs the sum of the items read, before filter and projection.
func capacityQueryAndScan(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("byG", "g:S", "KEYS_ONLY"))
	const query = `{"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},` + total
	tb.units(t, "nothing found", tb.ok(t, "Query", query+`}`), "0.5")
	var items []attributes
	for n := range 10 {
		items = append(items, item("pk", "p", "sk", n, "g", "x", "v", bigString(1700)))
	}
	tb.load(t, items)
	// Ten items of about 1.7 KB are about 17 KB: five blocks of 4 KB, though each item by itself
	// would need one.
	tb.units(t, "query", tb.ok(t, "Query", query+`}`), "2.5")
	tb.units(t, "strong query", tb.ok(t, "Query", query+`,"ConsistentRead":true}`), "5")
	tb.units(t, "count", tb.ok(t, "Query", query+`,"Select":"COUNT"}`), "2.5")
	tb.units(t, "projected", tb.ok(t, "Query", query+`,"ProjectionExpression":"sk"}`), "2.5")
	tb.units(t, "filtered", tb.ok(t, "Query", query+`,"FilterExpression":"attribute_exists(nope)"}`), "2.5")
	tb.units(t, "scan", tb.ok(t, "Scan", `{`+total+`}`), "2.5")
	tb.awaitIndex(t, "byG", 10)
	// On an index only the index is read.
	a := tb.ok(t, "Query", `{"IndexName":"byG","KeyConditionExpression":"g = :g","ExpressionAttributeValues":{":g":{"S":"x"}},"ReturnConsumedCapacity":"INDEXES"}`)
	a.want(t, "ConsumedCapacity", `{"TableName":"`+tb.name+`","CapacityUnits":0.5,"Table":{"CapacityUnits":0},"GlobalSecondaryIndexes":{"byG":{"CapacityUnits":0.5}}}`)
}

// The answer of a batch lists the units by table. Each item's size is rounded up on its own.
func capacityBatches(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	a := tb.ok(t, "BatchWriteItem", `{"RequestItems":{"$T":[{"PutRequest":{"Item":{"pk":{"S":"a"}}}},{"PutRequest":{"Item":{"pk":{"S":"b"},"v":{"S":"`+bigString(1500)+`"}}}}]},`+total+`}`)
	a.want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":3}]`)
	a = tb.ok(t, "BatchGetItem", `{"RequestItems":{"$T":{"Keys":[{"pk":{"S":"a"}},{"pk":{"S":"b"}}]}},`+total+`}`)
	a.want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":1}]`)
}

// Transactions cost twice, and report read and write units separately.
func capacityTransactions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	a := tb.ok(t, "TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"$T","Item":{"pk":{"S":"a"}}}},{"Put":{"TableName":"$T","Item":{"pk":{"S":"b"}}}}],`+total+`}`)
	a.want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":4,"WriteCapacityUnits":4}]`)
	a = tb.ok(t, "TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"$T","Key":{"pk":{"S":"a"}}}}],`+total+`}`)
	a.want(t, "ConsumedCapacity", `[{"TableName":"`+tb.name+`","CapacityUnits":2,"ReadCapacityUnits":2}]`)
}
