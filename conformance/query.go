package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var queryChecks = []check{
	{"SortKeyConditions", querySortKeyConditions},
	{"OrderOfNumbers", queryOrderOfNumbers},
	{"OrderOfStrings", queryOrderOfStrings},
	{"OrderOfBinaries", queryOrderOfBinaries},
	{"PagesByLimit", queryPagesByLimit},
	{"LimitReached", queryLimitReached},
	{"PagesByLimitWithFilter", queryPagesByLimitWithFilter},
	{"PagesByMegabyte", queryPagesByMegabyte},
	{"StartKeyNeedNotExist", queryStartKeyNeedNotExist},
	{"Select", querySelect},
	{"Projection", queryProjection},
	{"NothingFound", queryNothingFound},
	{"PartitionsDoNotMeet", queryPartitionsDoNotMeet},
	{"SelectRefused", querySelectRefused},
	{"StartKeyRefused", queryStartKeyRefused},
	{"Refused", queryRefused},
}

// query runs one page of a query with a key condition and values.
func (tb *table) query(t *testing.T, condition string, values attributes, change ...func(*dynamodb.QueryInput)) *dynamodb.QueryOutput {
	t.Helper()
	in := &dynamodb.QueryInput{TableName: &tb.name, KeyConditionExpression: &condition, ExpressionAttributeValues: values}
	for _, c := range change {
		c(in)
	}
	out, err := tb.DB.Query(t.Context(), in)
	if err != nil {
		t.Fatalf("query %s: %v", condition, err)
	}
	if int(out.Count) != len(out.Items) && in.Select != types.SelectCount {
		t.Errorf("Count is %d and there are %d items", out.Count, len(out.Items))
	}
	return out
}

// queryAll follows LastEvaluatedKey to the end and returns the pages.
func (tb *table) queryAll(t *testing.T, condition string, values attributes, change ...func(*dynamodb.QueryInput)) (pages [][]attributes) {
	t.Helper()
	var start attributes
	for {
		out := tb.query(t, condition, values, append(change, func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = start })...)
		pages = append(pages, out.Items)
		if start = out.LastEvaluatedKey; start == nil {
			return pages
		}
		if len(pages) > 10_000 {
			t.Fatal("the query does not end")
		}
	}
}

// backward reads in descending order.
func backward(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }

// onIndex returns a change that reads an index.
func onIndex(name string) func(*dynamodb.QueryInput) {
	return func(in *dynamodb.QueryInput) { in.IndexName = &name }
}

// column returns one attribute of each item as text, joined by blanks, for checks of order.
func column(items []attributes, name string) string {
	var cells []string
	for _, it := range items {
		switch v := it[name].(type) {
		case *types.AttributeValueMemberS:
			cells = append(cells, v.Value)
		case *types.AttributeValueMemberN:
			cells = append(cells, v.Value)
		case *types.AttributeValueMemberB:
			cells = append(cells, fmt.Sprintf("%x", v.Value))
		default:
			cells = append(cells, "-")
		}
	}
	return strings.Join(cells, " ")
}

// Every condition that a sort key allows, in both directions.
func querySortKeyConditions(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S")
	for _, sk := range []string{"a", "ab", "abc", "b", "ba", "c"} {
		tb.put(t, item("pk", "p", "sk", sk))
	}
	for _, row := range []struct {
		condition string
		values    attributes
		want      string
	}{
		{"pk = :p", item(":p", "p"), "a ab abc b ba c"},
		{"pk = :p AND sk = :a", item(":p", "p", ":a", "ab"), "ab"},
		{"pk = :p AND sk < :a", item(":p", "p", ":a", "b"), "a ab abc"},
		{"pk = :p AND sk <= :a", item(":p", "p", ":a", "b"), "a ab abc b"},
		{"pk = :p AND sk > :a", item(":p", "p", ":a", "abc"), "b ba c"},
		{"pk = :p AND sk >= :a", item(":p", "p", ":a", "abc"), "abc b ba c"},
		{"pk = :p AND sk BETWEEN :a AND :b", item(":p", "p", ":a", "ab", ":b", "b"), "ab abc b"},
		{"pk = :p AND begins_with(sk, :a)", item(":p", "p", ":a", "ab"), "ab abc"},
		{"sk > :a AND pk = :p", item(":p", "p", ":a", "b"), "ba c"},
		{":p = pk AND :a < sk", item(":p", "p", ":a", "b"), "ba c"},
		{"(pk = :p) AND (sk > :a)", item(":p", "p", ":a", "b"), "ba c"},
	} {
		t.Run(row.condition, func(t *testing.T) {
			if got := column(tb.query(t, row.condition, row.values).Items, "sk"); got != row.want {
				t.Errorf("forward: got %s, want %s", got, row.want)
			}
			want := strings.Fields(row.want)
			slices.Reverse(want)
			if got := column(tb.query(t, row.condition, row.values, backward).Items, "sk"); got != strings.Join(want, " ") {
				t.Errorf("backward: got %s, want %s", got, strings.Join(want, " "))
			}
		})
	}
}

// Numbers sort by value over the whole range.
func queryOrderOfNumbers(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	ascending := []string{
		"-9.9999999999999999999999999999999999999E+125", "-1E+100", "-1000", "-100.5", "-100", "-99.999", "-2", "-1.5", "-1", "-0.5", "-1E-130",
		"0",
		"1E-130", "0.00001", "0.5", "0.50000000000000000000000000000000000001", "1", "1.5", "2", "10", "99.999", "100", "100.5", "1000", "1E+100",
		"9.9999999999999999999999999999999999999E+125",
	}
	for i := range ascending {
		// in some other order; 7 and the length have no common divisor
		i = (i*7 + 3) % len(ascending)
		tb.put(t, item("pk", "p", "sk", number(ascending[i]), "rank", i))
	}
	var want []string
	for i := range ascending {
		want = append(want, fmt.Sprint(i))
	}
	if got := column(tb.query(t, "pk = :p", item(":p", "p")).Items, "rank"); got != strings.Join(want, " ") {
		t.Errorf("got  %s\nwant %s", got, strings.Join(want, " "))
	}
	if got := column(tb.query(t, "pk = :p AND sk BETWEEN :a AND :b", item(":p", "p", ":a", -1, ":b", number("0.5"))).Items, "rank"); got != "8 9 10 11 12 13 14" {
		t.Errorf("between -1 and 0.5: got %s", got)
	}
}

// Strings sort by the bytes of their UTF-8.
func queryOrderOfStrings(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S")
	ascending := []string{"\x00", "\x00a", " ", "A", "B", "a", "a\x00", "a\x00b", "aa", "b", "z", "é", "漢", "\uffee", "🦋"}
	for _, sk := range ascending {
		tb.put(t, item("pk", "p", "sk", sk))
	}
	if got := column(tb.query(t, "pk = :p", item(":p", "p")).Items, "sk"); got != strings.Join(ascending, " ") {
		t.Errorf("got %q\nwant %q", got, strings.Join(ascending, " "))
	}
}

// Binaries sort as unsigned bytes, a prefix before its extensions.
func queryOrderOfBinaries(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:B sk:B")
	for _, sk := range [][]byte{{0xff, 0xff}, {0x80}, {0}, {0x7f}, {0, 1}, {0, 0}, {0xff}, {1}} {
		tb.put(t, item("pk", []byte{7}, "sk", sk))
	}
	const want = "00 0000 0001 01 7f 80 ff ffff"
	if got := column(tb.query(t, "pk = :p", item(":p", []byte{7})).Items, "sk"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := column(tb.query(t, "pk = :p AND begins_with(sk, :a)", item(":p", []byte{7}, ":a", []byte{0xff})).Items, "sk"); got != "ff ffff" {
		t.Errorf("begins_with ff: got %s", got)
	}
}

// Pages of any size return the same items in the same order, both ways, and each page but the last
// is full.
func queryPagesByLimit(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	var want []string
	for n := range 7 {
		tb.put(t, item("pk", "p", "sk", n))
		want = append(want, fmt.Sprint(n))
	}
	for limit := int32(1); limit <= 8; limit++ {
		for _, back := range []bool{false, true} {
			pages := tb.queryAll(t, "pk = :p", item(":p", "p"), func(in *dynamodb.QueryInput) {
				in.Limit = &limit
				in.ScanIndexForward = aws.Bool(!back)
			})
			expected := slices.Clone(want)
			if back {
				slices.Reverse(expected)
			}
			if got := column(slices.Concat(pages...), "sk"); got != strings.Join(expected, " ") {
				t.Errorf("limit %d, backward %v: got %s", limit, back, got)
			}
			for i, page := range pages[:len(pages)-1] {
				if len(page) != int(limit) {
					t.Errorf("limit %d, backward %v: page %d has %d items", limit, back, i, len(page))
				}
			}
		}
	}
}

// A page that ends by Limit has a LastEvaluatedKey even if nothing follows, since the service does
// not look further. A page that ends with the collection has none.
func queryLimitReached(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	for n := range 3 {
		tb.put(t, item("pk", "p", "sk", n))
	}
	for limit, want := range map[int32]attributes{2: item("pk", "p", "sk", 1), 3: item("pk", "p", "sk", 2), 4: nil} {
		out := tb.query(t, "pk = :p", item(":p", "p"), func(in *dynamodb.QueryInput) { in.Limit = &limit })
		wantItem(t, fmt.Sprintf("LastEvaluatedKey of Limit %d", limit), out.LastEvaluatedKey, want)
	}
}

// Limit counts items read, before the filter: a page may be empty and still not the last.
func queryPagesByLimitWithFilter(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	for n := range 6 {
		tb.put(t, item("pk", "p", "sk", n, "odd", n%2))
	}
	filter := func(in *dynamodb.QueryInput) {
		in.FilterExpression = aws.String("odd = :one")
		in.Limit = aws.Int32(1)
	}
	pages := tb.queryAll(t, "pk = :p", item(":p", "p", ":one", 1), filter)
	if got := column(slices.Concat(pages...), "sk"); got != "1 3 5" {
		t.Errorf("got %s, want 1 3 5", got)
	}
	if len(pages) < 6 || len(pages[0]) != 0 {
		t.Errorf("six items read one by one: got %d pages, the first with %d items", len(pages), len(pages[0]))
	}
	out := tb.query(t, "pk = :p", item(":p", "p", ":one", 1), func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("odd = :one") })
	if out.Count != 3 || out.ScannedCount != 6 || out.LastEvaluatedKey != nil {
		t.Errorf("Count %d, ScannedCount %d, LastEvaluatedKey %v", out.Count, out.ScannedCount, out.LastEvaluatedKey)
	}
}

// A page holds at most 1 MB of items, measured before filter and projection.
func queryPagesByMegabyte(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	var items []attributes
	for n := range 10 {
		items = append(items, item("pk", "p", "sk", n, "v", bigString(250<<10)))
	}
	tb.load(t, items)
	for _, change := range []func(*dynamodb.QueryInput){
		func(*dynamodb.QueryInput) {},
		backward,
		func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("sk") },
		func(in *dynamodb.QueryInput) { in.Select = types.SelectCount },
		func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("attribute_exists(v)") },
	} {
		first := tb.query(t, "pk = :p", item(":p", "p"), change)
		if first.LastEvaluatedKey == nil || first.ScannedCount < 4 || first.ScannedCount > 5 {
			t.Errorf("the first page read %d items of 250 KB, LastEvaluatedKey %s", first.ScannedCount, itemText(first.LastEvaluatedKey))
		}
	}
	if got := column(slices.Concat(tb.queryAll(t, "pk = :p", item(":p", "p"))...), "sk"); got != "0 1 2 3 4 5 6 7 8 9" {
		t.Errorf("all pages: got %s", got)
	}
}

// A page begins after its start key, also when that item is no longer there.
func queryStartKeyNeedNotExist(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	for n := range 5 {
		tb.put(t, item("pk", "p", "sk", n))
	}
	tb.delete(t, item("pk", "p", "sk", 2))
	after := func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item("pk", "p", "sk", 2) }
	if got := column(tb.query(t, "pk = :p", item(":p", "p"), after).Items, "sk"); got != "3 4" {
		t.Errorf("forward after 2: got %s", got)
	}
	if got := column(tb.query(t, "pk = :p", item(":p", "p"), after, backward).Items, "sk"); got != "1 0" {
		t.Errorf("backward after 2: got %s", got)
	}
}

func querySelect(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.put(t, item("pk", "p", "sk", 1, "a", 1, "b", 2), item("pk", "p", "sk", 2, "a", 1))
	const values = `"ExpressionAttributeValues":{":p":{"S":"p"}}`
	a := tb.ok(t, "Query", `{"KeyConditionExpression":"pk = :p","Select":"COUNT",`+values+`}`)
	a.wantAbsent(t, "Items")
	a.want(t, "Count", `2`)
	a.want(t, "ScannedCount", `2`)
	a = tb.ok(t, "Query", `{"KeyConditionExpression":"pk = :p","Select":"ALL_ATTRIBUTES","Limit":1,`+values+`}`)
	a.want(t, "Items", `[{"pk":{"S":"p"},"sk":{"N":"1"},"a":{"N":"1"},"b":{"N":"2"}}]`)
	a = tb.ok(t, "Query", `{"KeyConditionExpression":"pk = :p","Select":"SPECIFIC_ATTRIBUTES","ProjectionExpression":"b",`+values+`}`)
	a.want(t, "Items", `[{"b":{"N":"2"}},{}]`)
}

// A projection applies to each item; the key is not added.
func queryProjection(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.put(t, item("pk", "p", "sk", 1, "m", item("x", 1, "y", 2)), item("pk", "p", "sk", 2, "m", item("y", 3)), item("pk", "p", "sk", 3))
	out := tb.query(t, "pk = :p", item(":p", "p"), func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("sk, m.x") })
	wantItems(t, "projected", out.Items, []attributes{item("sk", 1, "m", item("x", 1)), item("sk", 2), item("sk", 3)})
}

// A query that finds nothing answers with an empty list.
func queryNothingFound(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	a := tb.ok(t, "Query", `{"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"none"}}}`)
	a.want(t, "Items", `[]`)
	a.want(t, "Count", `0`)
	a.want(t, "ScannedCount", `0`)
	a.wantAbsent(t, "LastEvaluatedKey")
}

// Partitions whose keys begin alike stay apart.
func queryPartitionsDoNotMeet(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S")
	for _, pk := range []string{"a", "a\x00", "aa", "b"} {
		tb.put(t, item("pk", pk, "sk", "of "+pk))
	}
	for _, pk := range []string{"a", "a\x00", "aa", "b"} {
		if got := column(tb.query(t, "pk = :p", item(":p", pk)).Items, "sk"); got != "of "+pk {
			t.Errorf("%q: got %q", pk, got)
		}
	}
}

func querySelectRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	const query = `{"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},`
	tb.refuse(t, "Query", query+`"Select":"SOME"}`, validation,
		"1 validation error detected: Value 'SOME' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]")
	tb.refuse(t, "Query", query+`"Select":"ALL_PROJECTED_ATTRIBUTES"}`, validation, "…ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	tb.refuse(t, "Query", query+`"Select":"SPECIFIC_ATTRIBUTES"}`, validation,
		"1 validation error detected: Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	tb.refuse(t, "Query", query+`"Select":"ALL_ATTRIBUTES","ProjectionExpression":"a"}`, validation,
		"…Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES")
	tb.refuse(t, "Query", query+`"Select":"COUNT","ProjectionExpression":"a"}`, validation,
		"…Cannot specify the ProjectionExpression when choosing to get only the Count")
}

func queryStartKeyRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	const query = `{"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},"ExclusiveStartKey":`
	const schema = "The provided starting key is invalid: The provided key element does not match the schema"
	tb.refuse(t, "Query", query+`{"pk":{"S":"p"}}}`, validation, "The provided starting key is invalid…")
	tb.refuse(t, "Query", query+`{"pk":{"S":"p"},"sk":{"S":"1"}}}`, validation, schema)
	tb.refuse(t, "Query", query+`{"pk":{"S":"p"},"sk":{}}}`, validation,
		"The provided starting key is invalid: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	tb.refuse(t, "Query", query+`{"pk":{"S":"p"},"sk":{"N":"x"}}}`, validation, "The parameter cannot be converted to a numeric value: x")
	tb.refuse(t, "Query", query+`{"pk":{"S":"other"},"sk":{"N":"1"}}}`, validation,
		"The provided starting key is outside query boundaries based on provided conditions")
	tb.refuse(t, "Query", `{"KeyConditionExpression":"pk = :p AND sk > :s","ExpressionAttributeValues":{":p":{"S":"p"},":s":{"N":"5"}},"ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"N":"1"}}}`,
		validation, "The provided starting key does not match the range key predicate")
}

func queryRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	const query = `{"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},`
	tb.refuse(t, "Query", `{}`, validation, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	tb.refuse(t, "Query", query+`"Limit":0}`, validation, "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	tb.refuse(t, "Query", query+`"IndexName":"none"}`, validation, "The table does not have the specified index: none")
	tb.refuse(t, "Query", query+`"IndexName":"x"}`, validation,
		"1 validation error detected: Value 'x' at 'indexName' failed to satisfy constraint: Member must have length greater than or equal to 3")
	e.refuse(t, "Query", `{"TableName":"no-such-table","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}}}`, notFound, "Requested resource not found")
}
