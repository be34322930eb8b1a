package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// indexChangeChecks add global indexes to tables that hold items, and remove them.
var indexChangeChecks = []check{
	{"Added", indexAdded},
	{"AddedWhileWriting", indexAddedWhileWriting},
	{"AddedToEmptyTable", indexAddedToEmptyTable},
	{"Projections", indexAddedProjections},
	{"WhatDoesNotFit", indexAddedToWhatDoesNotFit},
	{"Removed", indexRemoved},
	{"RemovedAndAddedAgain", indexRemovedAndAddedAgain},
	{"Provisioned", indexAddedProvisioned},
	{"Definitions", indexDefinitions},
	{"Refused", indexChangesRefused},
}

// buildTimeout is the limit for building an index. Amazon takes 8 to 17 minutes, even on an empty
// table.
const buildTimeout = 30 * time.Minute

// addIndex adds a global index, with the arguments of global. The answer must show it as CREATING.
func (tb *table) addIndex(t *testing.T, name, key, holds string) {
	t.Helper()
	var defined dynamodb.CreateTableInput
	action := &types.CreateGlobalSecondaryIndexAction{IndexName: &name, KeySchema: keySchema(&defined, key), Projection: projection(holds)}
	out, err := tb.DB.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &tb.name, AttributeDefinitions: defined.AttributeDefinitions,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: action}},
	})
	if err != nil {
		t.Fatalf("add index %s: %v", name, err)
	}
	d := out.TableDescription
	ix := indexOf(d, name)
	if d.TableStatus != types.TableStatusUpdating || ix == nil || ix.IndexStatus != types.IndexStatusCreating || ix.Backfilling == nil {
		t.Errorf("the answer shows the table %s with %+v", d.TableStatus, ix)
	}
}

// removeIndex removes a global index. The answer must still show it, as DELETING.
func (tb *table) removeIndex(t *testing.T, name string) {
	t.Helper()
	out, err := tb.DB.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName:                   &tb.name,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &name}}},
	})
	if err != nil {
		t.Fatalf("remove index %s: %v", name, err)
	}
	d := out.TableDescription
	if ix := indexOf(d, name); d.TableStatus != types.TableStatusUpdating || ix == nil || ix.IndexStatus != types.IndexStatusDeleting {
		t.Errorf("the answer shows the table %s with %+v", d.TableStatus, ix)
	}
}

func indexOf(d *types.TableDescription, name string) *types.GlobalSecondaryIndexDescription {
	for i := range d.GlobalSecondaryIndexes {
		if *d.GlobalSecondaryIndexes[i].IndexName == name {
			return &d.GlobalSecondaryIndexes[i]
		}
	}
	return nil
}

// awaitBuilt waits until an index is ACTIVE, as waiters do. Until then the index is CREATING and
// reports whether the backfill is under way.
func (tb *table) awaitBuilt(t *testing.T, name string) *types.TableDescription {
	t.Helper()
	for deadline := time.Now().Add(buildTimeout); ; time.Sleep(pollEvery) {
		out, err := tb.DB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name})
		if err != nil {
			t.Fatal(err)
		}
		ix := indexOf(out.Table, name)
		switch {
		case ix == nil:
			t.Fatalf("there is no index %s", name)
		case ix.IndexStatus == types.IndexStatusActive && out.Table.TableStatus == types.TableStatusActive:
			if ix.Backfilling != nil {
				t.Errorf("%s is ACTIVE, and Backfilling is %v", name, *ix.Backfilling)
			}
			return out.Table
		case ix.IndexStatus != types.IndexStatusCreating || ix.Backfilling == nil:
			t.Errorf("on its way %s is %s, Backfilling %v", name, ix.IndexStatus, ix.Backfilling)
		case time.Now().After(deadline):
			t.Fatalf("%s is not ACTIVE after %v", name, buildTimeout)
		}
	}
}

// awaitRemoved waits until an index is gone, and returns the table's description.
func (tb *table) awaitRemoved(t *testing.T, name string) *types.TableDescription {
	t.Helper()
	var d *types.TableDescription
	tb.await(t, "removal of index "+name, func() bool {
		out, err := tb.DB.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name})
		if err != nil {
			t.Fatal(err)
		}
		d = out.Table
		return indexOf(d, name) == nil && d.TableStatus == types.TableStatusActive
	})
	return d
}

// holds waits until an index has exactly these items, in any order.
func (tb *table) holds(t *testing.T, index string, want []attributes) {
	t.Helper()
	sorted := func(items []attributes) string {
		texts := make([]string, len(items))
		for i, it := range items {
			texts[i] = itemText(it)
		}
		slices.Sort(texts)
		return strings.Join(texts, "\n")
	}
	wanted := sorted(want)
	for deadline := time.Now().Add(activeTimeout); ; time.Sleep(pollEvery) {
		got := sorted(tb.scanAll(t, index))
		if got == wanted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("index %s holds\n%s\nwant\n%s", index, got, wanted)
		}
	}
}

// definitionsOf returns a table's attribute definitions as text, sorted.
func definitionsOf(d *types.TableDescription) string {
	var defs []string
	for _, def := range d.AttributeDefinitions {
		defs = append(defs, *def.AttributeName+":"+string(def.AttributeType))
	}
	slices.Sort(defs)
	return strings.Join(defs, " ")
}

// wave returns n items. Every fifth lacks the index key g.
func wave(n int) (items, indexed []attributes) {
	for i := range n {
		it := item("pk", fmt.Sprint("k", i), "n", i, "pad", strings.Repeat("x", 100))
		if i%5 > 0 {
			it["g"] = value(fmt.Sprint("g", i%7))
			indexed = append(indexed, it)
		}
		items = append(items, it)
	}
	return items, indexed
}

// An index added to a full table is readable from ACTIVE on, and holds the items with its key;
// earlier reads are refused.
func indexAdded(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("other", "n:N", "KEYS_ONLY"))
	items, indexed := wave(300)
	tb.load(t, items)
	tb.addIndex(t, "byG", "g:S n:N", "ALL")
	for {
		_, err := tb.DB.Query(t.Context(), &dynamodb.QueryInput{
			TableName: &tb.name, IndexName: aws.String("byG"), KeyConditionExpression: aws.String("g = :g"), ExpressionAttributeValues: item(":g", "g1"),
		})
		if err == nil {
			break
		}
		if problem := errorProblem(err, validation, "Cannot read from backfilling global secondary index: byG"); problem != "" {
			t.Fatalf("a query before the index is built: %s", problem)
		}
		time.Sleep(pollEvery)
	}
	d := tb.awaitBuilt(t, "byG")
	if got := definitionsOf(d); got != "g:S n:N pk:S" {
		t.Errorf("AttributeDefinitions are %s", got)
	}
	if ix := indexOf(d, "other"); ix == nil || ix.IndexStatus != types.IndexStatusActive {
		t.Errorf("the other index: %+v", ix)
	}
	tb.holds(t, "byG", indexed)
	got := tb.query(t, "g = :g AND n < :n", item(":g", "g1", ":n", 30), onIndex("byG")).Items
	wantItems(t, "query", got, []attributes{items[1], items[8], items[22], items[29]})
}

// Writes continue while an index is built, and the index reflects them.
func indexAddedWhileWriting(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	items, _ := wave(200)
	tb.load(t, items)
	tb.addIndex(t, "byG", "g:S", "ALL")
	var want []attributes
	for i, it := range items {
		switch {
		case i%4 == 0:
			tb.delete(t, item("pk", fmt.Sprint("k", i)))
			continue
		case i%4 == 1:
			it["g"] = value("changed")
			tb.put(t, it)
		case i%4 == 2:
			_, err := tb.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: &tb.name, Key: item("pk", fmt.Sprint("k", i)), UpdateExpression: aws.String("SET n = :n REMOVE g"), ExpressionAttributeValues: item(":n", -i),
			})
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if it["g"] != nil {
			want = append(want, it)
		}
	}
	tb.awaitBuilt(t, "byG")
	tb.holds(t, "byG", want)
	late := item("pk", "late", "g", "g1")
	tb.put(t, late)
	tb.delete(t, item("pk", want[0]["pk"]))
	tb.holds(t, "byG", append(want[1:], late))
}

// An index can be added to a table without items.
func indexAddedToEmptyTable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byL", "pk:S l:S", "ALL"))
	tb.addIndex(t, "turned", "sk:S pk:S", "ALL")
	if d := tb.awaitBuilt(t, "turned"); definitionsOf(d) != "l:S pk:S sk:S" || len(d.LocalSecondaryIndexes) != 1 {
		t.Errorf("the table: %+v", d)
	}
	it := item("pk", "a", "sk", "b")
	tb.put(t, it)
	tb.holds(t, "turned", []attributes{it})
}

// The backfill projects as writes do.
func indexAddedProjections(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "g", "x", "in", 1, "out", 2))
	tb.addIndex(t, "include", "g:S", "INCLUDE in")
	tb.awaitBuilt(t, "include")
	tb.holds(t, "include", []attributes{item("pk", "a", "g", "x", "in", 1)})
	tb.addIndex(t, "keys", "g:S", "KEYS_ONLY")
	tb.awaitBuilt(t, "keys")
	tb.holds(t, "keys", []attributes{item("pk", "a", "g", "x")})
	tb.put(t, item("pk", "a", "g", "x", "in", 3, "out", 4))
	tb.holds(t, "include", []attributes{item("pk", "a", "g", "x", "in", 3)})
}

// The backfill skips and keeps items whose attribute has another type, is empty or is too long. Later writes of
// such items are refused.
func indexAddedToWhatDoesNotFit(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	fits := item("pk", "fits", "g", "x")
	tb.put(t, fits, item("pk", "number", "g", 1), item("pk", "null", "g", nil), item("pk", "empty", "g", ""), item("pk", "long", "g", bigString(2049)), item("pk", "none"))
	tb.addIndex(t, "byG", "g:S", "ALL")
	tb.awaitBuilt(t, "byG")
	tb.holds(t, "byG", []attributes{fits})
	if got := len(tb.scanAll(t, "")); got != 6 {
		t.Errorf("the table has %d items, want 6", got)
	}
	tb.refuse(t, "PutItem", `{"Item":{"pk":{"S":"number"},"g":{"N":"2"}}}`, validation,
		invalid+"Type mismatch for Index Key g Expected: S Actual: N IndexName: byG")
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"number"}},"UpdateExpression":"SET v = :v","ExpressionAttributeValues":{":v":{"N":"1"}}}`)
	tb.ok(t, "UpdateItem", `{"Key":{"pk":{"S":"number"}},"UpdateExpression":"SET g = :g","ExpressionAttributeValues":{":g":{"S":"y"}}}`)
	tb.holds(t, "byG", []attributes{fits, item("pk", "number", "g", "y", "v", 1)})
}

// A removed index is gone, with the definitions of its attributes; the table's items stay.
func indexRemoved(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S n:N", "ALL"), global("byH", "h:S n:N", "ALL"))
	it := item("pk", "a", "g", "x", "h", "y", "n", 1)
	tb.put(t, it)
	tb.removeIndex(t, "byG")
	d := tb.awaitRemoved(t, "byG")
	if got := definitionsOf(d); got != "h:S n:N pk:S" {
		t.Errorf("AttributeDefinitions are %s", got)
	}
	tb.refuse(t, "Query", `{"IndexName":"byG","KeyConditionExpression":"g = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, validation,
		"The table does not have the specified index: byG")
	tb.refuse(t, "Scan", `{"IndexName":"byG"}`, validation, "The table does not have the specified index: byG")
	tb.wantStored(t, item("pk", "a"), it)
	tb.holds(t, "byH", []attributes{it})
	tb.put(t, item("pk", "a", "g", 1, "h", "y", "n", 1)) // any type now
	tb.removeIndex(t, "byH")
	if d := tb.awaitRemoved(t, "byH"); definitionsOf(d) != "pk:S" || len(d.GlobalSecondaryIndexes) != 0 {
		t.Errorf("without indexes: %+v", d)
	}
}

// A new index may have the name of a removed one, and has none of its entries.
func indexRemovedAndAddedAgain(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("index", "g:S", "ALL"))
	tb.put(t, item("pk", "a", "g", "x"), item("pk", "c", "h", "y"))
	tb.removeIndex(t, "index")
	tb.awaitRemoved(t, "index")
	tb.put(t, item("pk", "b", "g", 1))
	tb.addIndex(t, "index", "g:N", "KEYS_ONLY")
	tb.awaitBuilt(t, "index")
	tb.holds(t, "index", []attributes{item("pk", "b", "g", 1)})
	tb.removeIndex(t, "index")
	tb.awaitRemoved(t, "index")
	tb.addIndex(t, "index", "h:S", "ALL")
	tb.awaitBuilt(t, "index")
	tb.holds(t, "index", []attributes{item("pk", "c", "h", "y")})
}

// An index of a provisioned table needs throughput of its own, and one of an on-demand table has
// none.
func indexAddedProvisioned(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", provisioned(1, 1))
	const create = `{"AttributeDefinitions":[{"AttributeName":"g","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"byG",` +
		`"KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}`
	tb.refuse(t, "UpdateTable", create+`}}]}`, validation, invalid+"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: byG")
	tb.refuse(t, "UpdateTable", create+`,`+throughput(1, 1)+`}}],`+throughput(2, 2)+`}`, validation,
		invalid+"You cannot create or delete index while updating table IOPS")
	tb.ok(t, "UpdateTable", create+`,`+throughput(3, 4)+`}}]}`)
	ix := indexOf(tb.awaitBuilt(t, "byG"), "byG")
	if p := ix.ProvisionedThroughput; aws.ToInt64(p.ReadCapacityUnits) != 3 || aws.ToInt64(p.WriteCapacityUnits) != 4 {
		t.Errorf("throughput: %+v", p)
	}
	onDemand := newTable(t, e, "pk:S")
	onDemand.refuse(t, "UpdateTable", create+`,`+throughput(3, 4)+`}}]}`, validation,
		invalid+"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: byG when BillingMode is PAY_PER_REQUEST")
}

// The AttributeDefinitions of a change add to the table's, and may not contradict them. Unused ones
// are dropped.
func indexDefinitions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byN", "n:N", "ALL"))
	tb.put(t, item("pk", "a", "n", 1, "g", "x"))
	change := func(kind string) string {
		return `{"AttributeDefinitions":[
		{"AttributeName":"n","AttributeType":"` + kind + `"},{"AttributeName":"g","AttributeType":"S"},{"AttributeName":"unused","AttributeType":"S"}],
		"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"byG","KeySchema":[{"AttributeName":"g","KeyType":"HASH"},{"AttributeName":"n","KeyType":"RANGE"}],
		"Projection":{"ProjectionType":"KEYS_ONLY"}}}]}`
	}
	tb.refuse(t, "UpdateTable", change("S"), validation, "…")
	tb.ok(t, "UpdateTable", change("N"))
	if d := tb.awaitBuilt(t, "byG"); definitionsOf(d) != "g:S n:N pk:S" {
		t.Errorf("AttributeDefinitions are %s", definitionsOf(d))
	}
	tb.holds(t, "byG", []attributes{item("pk", "a", "n", 1, "g", "x")})
}

// A refused change leaves the table unchanged.
func indexChangesRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byL", "pk:S l:S", "ALL"), global("byG", "g:S", "ALL"))
	create := func(name, key string) string {
		return `{"Create":{"IndexName":"` + name + `","KeySchema":[{"AttributeName":"` + key + `","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}`
	}
	define := func(name string) string {
		return `"AttributeDefinitions":[{"AttributeName":"` + name + `","AttributeType":"S"}],`
	}
	const remove = `{"Delete":{"IndexName":"byG"}}`
	for _, row := range []struct{ name, before, list, code, message string }{
		{"taken", define("g"), create("byG", "g"), validation, "Attempting to create an index which already exists"},
		{"taken by a local one", define("g"), create("byL", "g"), validation, "Attempting to create an index which already exists"},
		{"no definitions", "", create("byX", "g"), validation, invalid + "AttributeDefinitions is not specified for index: byX"},
		{"not defined", define("y"), create("byX", "x"), validation,
			invalid + "Some index key attributes are not defined in AttributeDefinitions. Keys: [x], AttributeDefinitions: [y]"},
		{"two created", define("x"), create("byX", "x") + `,` + create("byY", "x"), limitExceeded,
			"Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"},
		{"created and deleted", define("x"), create("byX", "x") + `,` + remove, limitExceeded,
			"Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"},
		{"same name", define("g"), create("byG", "g") + `,` + remove, validation,
			invalid + "Only one global secondary index update per index is allowed simultaneously. Index: byG"},
		{"unknown", "", `{"Delete":{"IndexName":"none"}}`, notFound, "Requested resource not found: Index none for table $T"},
		{"local", "", `{"Delete":{"IndexName":"byL"}}`, validation, "Cannot delete an index that is not a GlobalSecondaryIndex: byL"},
		{"with a stream", `"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"},`, remove, validation,
			invalid + "You cannot create or delete index while changing stream status"},
		{"empty action", "", `{"Create":{}}`, validation, "3 validation errors detected: …"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tb.refuse(t, "UpdateTable", `{`+row.before+`"GlobalSecondaryIndexUpdates":[`+row.list+`]}`, row.code, row.message)
		})
	}
	if d := tb.awaitActive(t); len(d.GlobalSecondaryIndexes) != 1 || definitionsOf(d) != "g:S l:S pk:S sk:S" {
		t.Errorf("the table is %+v", d)
	}
	_, err := e.DB.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName:                   aws.String(tb.name + "-none"),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("byG")}}},
	})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		t.Errorf("a table that is not there: %v", err)
	}
}
