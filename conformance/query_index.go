package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var queryIndexChecks = []check{
	{"Local", indexLocal},
	{"Global", indexGlobal},
	{"FollowsWrites", indexFollowsWrites},
	{"Projections", indexProjections},
	{"LocalFetchesTheRest", indexLocalFetchesTheRest},
	{"EqualKeysPage", indexEqualKeysPage},
	{"NumbersAndBinaries", indexNumbersAndBinaries},
	{"KeyOfTableAsIndexKey", indexKeyOfTable},
	{"Refused", indexRefused},
}

// A local index reorders an item collection by another attribute, and may be read strongly.
func indexLocal(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byN", "pk:S n:N", "ALL"))
	tb.put(t,
		item("pk", "p", "sk", "a", "n", 3), item("pk", "p", "sk", "b", "n", 1), item("pk", "p", "sk", "c"),
		item("pk", "p", "sk", "d", "n", 2), item("pk", "q", "sk", "e", "n", 0))
	strong := func(in *dynamodb.QueryInput) { in.ConsistentRead = aws.Bool(true) }
	if got := column(tb.query(t, "pk = :p", item(":p", "p"), onIndex("byN"), strong).Items, "sk"); got != "b d a" {
		t.Errorf("forward: got %s", got)
	}
	if got := column(tb.query(t, "pk = :p AND n >= :n", item(":p", "p", ":n", 2), onIndex("byN"), strong, backward).Items, "sk"); got != "a d" {
		t.Errorf("backward from 2: got %s", got)
	}
}

// A global index has a partition key of its own; items without it are not in it.
func indexGlobal(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S n:N", "ALL"))
	tb.put(t,
		item("pk", "a", "g", "x", "n", 2), item("pk", "b", "g", "x", "n", 1), item("pk", "c", "g", "y", "n", 1),
		item("pk", "d", "g", "x"), item("pk", "e", "n", 1))
	tb.awaitIndex(t, "byG", 3)
	if got := column(tb.query(t, "g = :g", item(":g", "x"), onIndex("byG")).Items, "pk"); got != "b a" {
		t.Errorf("got %s, want b a", got)
	}
	if got := column(tb.query(t, "g = :g AND n = :n", item(":g", "x", ":n", 2), onIndex("byG")).Items, "pk"); got != "a" {
		t.Errorf("got %s, want a", got)
	}
}

// awaitIndex waits until an index holds so many entries: an endpoint may keep global indexes up to
// date asynchronously.
func (tb *table) awaitIndex(t *testing.T, name string, entries int) {
	t.Helper()
	tb.await(t, "index "+name, func() bool { return len(tb.scanAll(t, name)) == entries })
}

// An index follows every kind of write: put, replacement, update, removal of the key, deletion.
func indexFollowsWrites(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byL", "pk:S l:S", "ALL"), global("byG", "g:S", "ALL"))
	key := item("pk", "p", "sk", "s")
	expect := func(what, l, g string) {
		t.Helper()
		tb.await(t, what, func() bool {
			return column(tb.scanAll(t, "byL"), "l") == l && column(tb.scanAll(t, "byG"), "g") == g
		})
	}
	update := func(expression string, values attributes) {
		t.Helper()
		in := &dynamodb.UpdateItemInput{TableName: &tb.name, Key: key, UpdateExpression: &expression, ExpressionAttributeValues: values}
		if _, err := e.DB.UpdateItem(t.Context(), in); err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
	}
	tb.put(t, item("pk", "p", "sk", "s", "l", "l1", "g", "g1"))
	expect("after the put", "l1", "g1")
	tb.put(t, item("pk", "p", "sk", "s", "l", "l2", "g", "g1"))
	expect("after the replacement", "l2", "g1")
	update("SET g = :g", item(":g", "g2"))
	expect("after the update", "l2", "g2")
	update("REMOVE l", nil)
	expect("after the removal of a key", "", "g2")
	update("SET l = :l REMOVE g", item(":l", "l3"))
	expect("after its return", "l3", "")
	tb.delete(t, key)
	expect("after the deletion", "", "")
}

// An index returns its keys, the table's keys, and its projected attributes.
func indexProjections(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S",
		global("all", "g:S", "ALL"), global("keys", "g:S", "KEYS_ONLY"), global("some", "g:S", "INCLUDE a b"), local("lkeys", "pk:S g:S", "KEYS_ONLY"))
	full := item("pk", "p", "sk", "s", "g", "x", "a", 1, "c", 3)
	tb.put(t, full)
	keys := item("pk", "p", "sk", "s", "g", "x")
	for _, row := range []struct {
		index string
		want  attributes
	}{
		{"all", full}, {"keys", keys}, {"some", item("pk", "p", "sk", "s", "g", "x", "a", 1)}, {"lkeys", keys},
	} {
		tb.awaitIndex(t, row.index, 1)
		wantItems(t, row.index, tb.scanAll(t, row.index), []attributes{row.want})
	}
	// ALL_PROJECTED_ATTRIBUTES is the default on an index, and may be set too.
	out := tb.query(t, "g = :g", item(":g", "x"), onIndex("keys"), func(in *dynamodb.QueryInput) { in.Select = types.SelectAllProjectedAttributes })
	wantItems(t, "ALL_PROJECTED_ATTRIBUTES", out.Items, []attributes{keys})
	// Attributes outside a global index's projection cannot be read or filtered on through the
	// index.
	const onKeys = `{"IndexName":"keys","KeyConditionExpression":"g = :v","ExpressionAttributeValues":{":v":{"S":"x"}},`
	tb.refuse(t, "Query", onKeys+`"FilterExpression":"c = :v"}`, validation,
		invalid+"Secondary index keys does not project one or more filter attributes: [c]")
	tb.refuse(t, "Query", onKeys+`"ProjectionExpression":"a"}`, validation, invalid+"…")
}

// A local index reads other attributes from the table on request.
func indexLocalFetchesTheRest(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byN", "pk:S n:N", "KEYS_ONLY"))
	full := item("pk", "p", "sk", "s", "n", 1, "a", 1)
	tb.put(t, full)
	out := tb.query(t, "pk = :p", item(":p", "p"), onIndex("byN"), func(in *dynamodb.QueryInput) { in.Select = types.SelectAllAttributes })
	wantItems(t, "ALL_ATTRIBUTES", out.Items, []attributes{full})
	out = tb.query(t, "pk = :p", item(":p", "p"), onIndex("byN"), func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("a, n") })
	wantItems(t, "a projection", out.Items, []attributes{item("a", 1, "n", 1)})
}

// Entries with equal index keys page without loss: the start key holds the table's key too.
func indexEqualKeysPage(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", global("byG", "g:S", "ALL"), local("byL", "pk:S l:N", "ALL"))
	for n := range 5 {
		tb.put(t, item("pk", "p", "sk", n, "g", "same", "l", 1))
	}
	tb.awaitIndex(t, "byG", 5)
	for _, row := range []struct{ index, condition, value, key string }{
		{"byG", "g = :v", "same", "g pk sk"}, {"byL", "pk = :v", "p", "l pk sk"},
	} {
		for _, back := range []bool{false, true} {
			options := []func(*dynamodb.QueryInput){onIndex(row.index), func(in *dynamodb.QueryInput) {
				in.Limit = aws.Int32(2)
				in.ScanIndexForward = aws.Bool(!back)
			}}
			first := tb.query(t, row.condition, item(":v", row.value), options...)
			if got := strings.Join(names(first.LastEvaluatedKey), " "); got != row.key {
				t.Errorf("%s: LastEvaluatedKey has %s, want %s", row.index, got, row.key)
			}
			seen := strings.Fields(column(slices.Concat(tb.queryAll(t, row.condition, item(":v", row.value), options...)...), "sk"))
			slices.Sort(seen)
			if got := strings.Join(seen, " "); got != "0 1 2 3 4" {
				t.Errorf("%s, backward %v: got %s", row.index, back, got)
			}
		}
	}
}

// names returns the names of an item's attributes in order.
func names(it attributes) []string {
	var list []string
	for name := range it {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Index keys order as table keys do.
func indexNumbersAndBinaries(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byN", "g:N n:N", "ALL"), global("byB", "h:B b:B", "ALL"))
	for i, n := range []string{"10", "-1", "2", "0.5", "-1000"} {
		tb.put(t, item("pk", n, "g", 7, "n", number(n), "h", []byte{1}, "b", []byte{byte(i * 60)}))
	}
	tb.awaitIndex(t, "byN", 5)
	if got := column(tb.query(t, "g = :g", item(":g", number("7.0")), onIndex("byN")).Items, "n"); got != "-1000 -1 0.5 2 10" {
		t.Errorf("numbers: got %s", got)
	}
	tb.awaitIndex(t, "byB", 5)
	if got := column(tb.query(t, "h = :h AND b > :b", item(":h", []byte{1}, ":b", []byte{60}), onIndex("byB"), backward).Items, "b"); got != "f0 b4 78" {
		t.Errorf("binaries: got %s", got)
	}
}

// The table's own key attributes may be an index's keys, turned around.
func indexKeyOfTable(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", global("inverted", "sk:S pk:S", "KEYS_ONLY"))
	tb.put(t, item("pk", "b", "sk", "x"), item("pk", "a", "sk", "x"), item("pk", "a", "sk", "y"))
	tb.awaitIndex(t, "inverted", 3)
	out := tb.query(t, "sk = :s", item(":s", "x"), onIndex("inverted"))
	wantItems(t, "inverted", out.Items, []attributes{item("pk", "a", "sk", "x"), item("pk", "b", "sk", "x")})
}

func indexRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", local("byL", "pk:S l:S", "KEYS_ONLY"), global("byG", "g:S", "KEYS_ONLY"))
	const onG = `{"IndexName":"byG","KeyConditionExpression":"g = :v","ExpressionAttributeValues":{":v":{"S":"x"}}`
	tb.refuse(t, "Query", onG+`,"ConsistentRead":true}`, validation, "Consistent reads are not supported on global secondary indexes")
	tb.refuse(t, "Query", onG+`,"Select":"ALL_ATTRIBUTES"}`, validation,
		invalid+"Select type ALL_ATTRIBUTES is not supported for global secondary index byG because its projection type is not ALL")
	tb.refuse(t, "Query", onG+`,"ExclusiveStartKey":{"g":{"S":"x"}}}`, validation, "The provided starting key is invalid…")
	tb.refuse(t, "Query", `{"IndexName":"byG","KeyConditionExpression":"pk = :v","ExpressionAttributeValues":{":v":{"S":"x"}}}`, validation,
		"Query condition missed key schema element: g")
	tb.refuse(t, "Query", `{"IndexName":"byL","KeyConditionExpression":"pk = :v AND l = :n","ExpressionAttributeValues":{":v":{"S":"x"},":n":{"N":"1"}}}`, validation,
		invalid+"Condition parameter type does not match schema type")
}
