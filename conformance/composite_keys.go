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

// compositeKeyChecks are about global indexes whose keys have several attributes: up to four of the
// partition key and up to four of the sort key (Amazon, November 2025).
var compositeKeyChecks = []check{
	{"Described", compositeDescribed},
	{"Widest", compositeWidest},
	{"Query", compositeQuery},
	{"Ranges", compositeRanges},
	{"Order", compositeOrder},
	{"PartitionsDoNotMeet", compositePartitionsDoNotMeet},
	{"Pages", compositePages},
	{"StartKeyRefused", compositeStartKeyRefused},
	{"Scan", compositeScan},
	{"Sparse", compositeSparse},
	{"WrongValues", compositeWrongValues},
	{"TooLong", compositeTooLong},
	{"Projections", compositeProjections},
	{"Filters", compositeFilters},
	{"KeyConditions", compositeKeyConditions},
	{"QueryRefused", compositeQueryRefused},
	{"Added", compositeAdded},
	{"Restored", compositeRestored},
	{"Refused", compositeRefused},
}

// contest returns a table of matches with the index "byRound" of tournament and region, which sorts
// by round, score and name.
func contest(t *testing.T, e *Endpoint, options ...tableOption) *table {
	t.Helper()
	return newTable(t, e, "id:S", append(options, global("byRound", "tour:S,area:N round:S,score:N,title:B", "ALL"))...)
}

func match(id, tour string, area int, round string, score int, title string) attributes {
	return item("id", id, "tour", tour, "area", area, "round", round, "score", score, "title", []byte(title))
}

// played are some matches in the order of the index, after two of other partitions.
func played() []attributes {
	return []attributes{
		match("z1", "cup", 2, "a", 1, "x"), match("z2", "open", 1, "a", 1, "x"),
		match("m7", "cup", 1, "a", -3, "x"), match("m3", "cup", 1, "a", 2, "x"), match("m5", "cup", 1, "a", 2, "xy"),
		match("m1", "cup", 1, "a", 10, "b"), match("m6", "cup", 1, "ab", 1, "x"), match("m2", "cup", 1, "b", 0, "x"), match("m4", "cup", 1, "b", 7, "x"),
	}
}

const inRound = "tour = :t AND area = :a"

// DescribeTable shows the key as it was given.
func compositeDescribed(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	d := tb.awaitActive(t)
	var key []string
	for _, k := range indexOf(d, "byRound").KeySchema {
		key = append(key, *k.AttributeName+":"+string(k.KeyType))
	}
	if got, want := strings.Join(key, " "), "tour:HASH area:HASH round:RANGE score:RANGE title:RANGE"; got != want {
		t.Errorf("key schema %s, want %s", got, want)
	}
	if got, want := definitionsOf(d), "area:N id:S round:S score:N title:B tour:S"; got != want {
		t.Errorf("definitions %s, want %s", got, want)
	}
}

// A key may have eight attributes, the table's own among them, and a partition key alone may have four.
func compositeWidest(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "id:S", global("eight", "a:S,b:N,c:B,id:S d:S,e:N,f:B,g:S", "ALL"), global("four", "a:S,b:N,c:B,d:S", "KEYS_ONLY"))
	full := item("id", "1", "a", "a", "b", 2, "c", []byte{3}, "d", "d", "e", 5, "f", []byte{6}, "g", "g")
	less := item("id", "2", "a", "a", "b", 2, "c", []byte{3}, "d", "d", "e", 5, "f", []byte{6})
	tb.put(t, full, less)
	tb.awaitIndex(t, "eight", 1)
	tb.awaitIndex(t, "four", 2)
	values := item(":a", "a", ":b", 2, ":c", []byte{3}, ":i", "1", ":d", "d", ":e", 5, ":f", []byte{6}, ":g", "g")
	out := tb.query(t, "a = :a AND b = :b AND c = :c AND id = :i AND d = :d AND e = :e AND f = :f AND g = :g", values, onIndex("eight"))
	wantItems(t, "all eight", out.Items, []attributes{full})
	out = tb.query(t, "d = :d AND c = :c AND b = :b AND a = :a", item(":a", "a", ":b", 2, ":c", []byte{3}, ":d", "d"), onIndex("four"))
	if got := sorted(column(out.Items, "id")); got != "1 2" {
		t.Errorf("a partition key of four: got %s", got)
	}
}

// A query names every partition attribute, and sort attributes from the left, in any order of text.
func compositeQuery(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, played()...)
	tb.awaitIndex(t, "byRound", 9)
	for _, row := range []struct {
		condition string
		values    attributes
		want      string
	}{
		{inRound, nil, "m7 m3 m5 m1 m6 m2 m4"},
		{inRound + " AND round = :r", item(":r", "a"), "m7 m3 m5 m1"},
		{inRound + " AND round = :r AND score = :s", item(":r", "a", ":s", 2), "m3 m5"},
		{inRound + " AND round = :r AND score = :s AND title = :n", item(":r", "a", ":s", 2, ":n", []byte("xy")), "m5"},
		{"score = :s AND area = :a AND round = :r AND tour = :t", item(":r", "a", ":s", 2), "m3 m5"},
		{inRound + " AND round = :r", item(":r", "c"), ""},
	} {
		t.Run(row.condition, func(t *testing.T) {
			values := item(":t", "cup", ":a", 1)
			for name, v := range row.values {
				values[name] = v
			}
			if got := column(tb.query(t, row.condition, values, onIndex("byRound")).Items, "id"); got != row.want {
				t.Errorf("forward: got %s, want %s", got, row.want)
			}
			want := strings.Fields(row.want)
			slices.Reverse(want)
			if got := column(tb.query(t, row.condition, values, onIndex("byRound"), backward).Items, "id"); got != strings.Join(want, " ") {
				t.Errorf("backward: got %s, want %s", got, want)
			}
		})
	}
}

// The last sort attribute that a query names may have a range, of every kind.
func compositeRanges(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, played()...)
	tb.awaitIndex(t, "byRound", 9)
	for _, row := range []struct {
		condition string
		values    attributes
		want      string
	}{
		{"round > :x", item(":x", "a"), "m6 m2 m4"},
		{"round >= :x", item(":x", "ab"), "m6 m2 m4"},
		{"round < :x", item(":x", "ab"), "m7 m3 m5 m1"},
		{"round <= :x", item(":x", "ab"), "m7 m3 m5 m1 m6"},
		{"begins_with(round, :x)", item(":x", "a"), "m7 m3 m5 m1 m6"},
		{"round BETWEEN :x AND :y", item(":x", "ab", ":y", "b"), "m6 m2 m4"},
		{"round = :x AND score > :y", item(":x", "a", ":y", 2), "m1"},
		{"round = :x AND score >= :y", item(":x", "a", ":y", 2), "m3 m5 m1"},
		{"round = :x AND score < :y", item(":x", "a", ":y", 2), "m7"},
		{"round = :x AND score <= :y", item(":x", "a", ":y", 2), "m7 m3 m5"},
		{"round = :x AND score BETWEEN :y AND :z", item(":x", "a", ":y", -3, ":z", 2), "m7 m3 m5"},
		{"round = :x AND score = :y AND title > :z", item(":x", "a", ":y", 2, ":z", []byte("x")), "m5"},
		{"round = :x AND score = :y AND begins_with(title, :z)", item(":x", "a", ":y", 2, ":z", []byte("x")), "m3 m5"},
		{"round = :x AND score = :y AND title < :z", item(":x", "a", ":y", 2, ":z", []byte("xy")), "m3"},
	} {
		t.Run(row.condition, func(t *testing.T) {
			row.values[":t"], row.values[":a"] = value("cup"), value(1)
			if got := column(tb.query(t, row.condition+" AND "+inRound, row.values, onIndex("byRound")).Items, "id"); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// Each attribute sorts by its own type: numbers by value, not as text behind text.
func compositeOrder(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "id:S", global("sorts", "g:S s:S,n:N", "KEYS_ONLY"))
	var want []string
	for _, s := range []string{"", "#", "-"} {
		for _, n := range []number{"-1e100", "-2", "-0.5", "0", "1e-100", "2", "10", "1e100"} {
			id := fmt.Sprint(s, "/", n)
			tb.put(t, item("id", id, "g", "x", "s", "a"+s, "n", n))
			want = append(want, id)
		}
	}
	tb.awaitIndex(t, "sorts", len(want))
	if got := column(tb.query(t, "g = :g", item(":g", "x"), onIndex("sorts")).Items, "id"); got != strings.Join(want, " ") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Partition keys are not concatenations: ("ab", "c") is not ("a", "bc").
func compositePartitionsDoNotMeet(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "id:S", global("pairs", "a:S,b:S", "ALL"))
	for _, pair := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"a\x00", "b"}, {"a", "\x00b"}, {"c", "ab"}} {
		tb.put(t, item("id", pair[0]+"|"+pair[1], "a", pair[0], "b", pair[1]))
	}
	tb.awaitIndex(t, "pairs", 5)
	for _, it := range tb.scanAll(t, "pairs") {
		got := tb.query(t, "a = :a AND b = :b", attributes{":a": it["a"], ":b": it["b"]}, onIndex("pairs")).Items
		wantItems(t, column([]attributes{it}, "id"), got, []attributes{it})
	}
}

// Pages of any size return each entry once, in both directions, also entries with equal keys. The start
// key has all attributes of the index's key and of the table's.
func compositePages(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, played()...)
	for i := range 4 {
		tb.put(t, match(fmt.Sprint("same", i), "cup", 1, "c", 5, "x"))
	}
	tb.awaitIndex(t, "byRound", 13)
	values := item(":t", "cup", ":a", 1)
	whole := column(tb.query(t, inRound, values, onIndex("byRound")).Items, "id")
	reversed := strings.Fields(whole)
	slices.Reverse(reversed)
	for limit := int32(1); limit <= 12; limit++ {
		paged := func(in *dynamodb.QueryInput) { in.Limit = &limit }
		first := tb.query(t, inRound, values, onIndex("byRound"), paged)
		if got := strings.Join(names(first.LastEvaluatedKey), " "); limit < 11 && got != "area id round score title tour" {
			t.Errorf("LastEvaluatedKey has %s", got)
		}
		if got := column(slices.Concat(tb.queryAll(t, inRound, values, onIndex("byRound"), paged)...), "id"); got != whole {
			t.Errorf("limit %d: got %s, want %s", limit, got, whole)
		}
		if got := column(slices.Concat(tb.queryAll(t, inRound, values, onIndex("byRound"), paged, backward)...), "id"); got != strings.Join(reversed, " ") {
			t.Errorf("limit %d backward: got %s, want %s", limit, got, reversed)
		}
	}
	between := func(in *dynamodb.QueryInput) {
		in.ExclusiveStartKey = match("nobody", "cup", 1, "a", 5, "x")
	}
	if got := column(tb.query(t, inRound+" AND round = :r", item(":t", "cup", ":a", 1, ":r", "a"), onIndex("byRound"), between).Items, "id"); got != "m1" {
		t.Errorf("behind a key of no item: got %s", got)
	}
}

// A start key has every key attribute, of its type, and lies within all conditions.
func compositeStartKeyRefused(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	const (
		bad     = "The provided starting key is invalid"
		outside = "The provided starting key is outside query boundaries based on provided conditions"
		sorted  = "The provided starting key does not match the range key predicate"
	)
	start := func(key string) string {
		return `{"IndexName":"byRound","KeyConditionExpression":"tour = :t AND area = :a AND round = :r AND score > :s",` +
			`"ExpressionAttributeValues":{":t":{"S":"cup"},":a":{"N":"1"},":r":{"S":"a"},":s":{"N":"3"}},"ExclusiveStartKey":{` + key + `}}`
	}
	const id, tour, area, round, score, title = `"id":{"S":"i"}`, `"tour":{"S":"cup"}`, `"area":{"N":"1"}`, `"round":{"S":"a"}`, `"score":{"N":"4"}`, `"title":{"B":"eA=="}`
	full := []string{id, tour, area, round, score, title}
	tb.ok(t, "Query", start(strings.Join(full, ",")))
	for i := range full {
		tb.refuse(t, "Query", start(strings.Join(slices.Delete(slices.Clone(full), i, i+1), ",")), validation, bad+"…")
	}
	with := func(i int, attribute string) string {
		changed := slices.Clone(full)
		changed[i] = attribute
		return start(strings.Join(changed, ","))
	}
	tb.refuse(t, "Query", with(2, `"area":{"S":"1"}`), validation, bad)
	tb.refuse(t, "Query", with(5, `"title":{"S":"x"}`), validation, bad)
	tb.refuse(t, "Query", start(strings.Join(append(full, `"more":{"S":"x"}`), ",")), validation, bad)
	tb.refuse(t, "Query", with(1, `"tour":{"S":"open"}`), validation, outside)
	tb.refuse(t, "Query", with(2, `"area":{"N":"2"}`), validation, outside)
	tb.refuse(t, "Query", with(3, `"round":{"S":"b"}`), validation, sorted)
	tb.refuse(t, "Query", with(4, `"score":{"N":"3"}`), validation, sorted)
}

// A Scan returns each entry once: whole, by pages, and by segments with pages.
func compositeScan(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	var want []string
	for n := range 60 {
		id := fmt.Sprint("n", n)
		tb.put(t, match(id, fmt.Sprint("t", n%4), n%5, fmt.Sprint(n%3), n, "x"), item("id", "out"+id, "tour", "t1", "area", n))
		want = append(want, id)
	}
	slices.Sort(want)
	tb.awaitIndex(t, "byRound", 60)
	check := func(what string, items []attributes) {
		t.Helper()
		if got := sorted(column(items, "id")); got != strings.Join(want, " ") {
			t.Errorf("%s: got %s", what, got)
		}
	}
	on := func(in *dynamodb.ScanInput) { in.IndexName = aws.String("byRound") }
	pages := tb.scanPages(t, on, func(in *dynamodb.ScanInput) { in.Limit = aws.Int32(7) })
	check("pages", slices.Concat(pages...))
	var all []attributes
	for segment := range int32(3) {
		all = append(all, slices.Concat(tb.scanPages(t, on, func(in *dynamodb.ScanInput) {
			in.Segment, in.TotalSegments, in.Limit = &segment, aws.Int32(3), aws.Int32(4)
		})...)...)
	}
	check("segments", all)
	filtered := tb.scan(t, on, func(in *dynamodb.ScanInput) {
		in.FilterExpression, in.ExpressionAttributeValues = aws.String("score < :n"), item(":n", 5)
	})
	if got := sorted(column(filtered.Items, "id")); got != "n0 n1 n2 n3 n4" {
		t.Errorf("a filter on a key attribute: got %s", got)
	}
}

// An item without one of the attributes is not in the index, and every write moves its entry.
func compositeSparse(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	full := match("m", "cup", 1, "a", 2, "x")
	for i, name := range []string{"tour", "area", "round", "score", "title"} {
		less := match(fmt.Sprint("less", i), "cup", 1, "a", 2, "x")
		delete(less, name)
		tb.put(t, less)
	}
	tb.put(t, full)
	tb.holds(t, "byRound", []attributes{full})
	update := func(expression string, values attributes) {
		t.Helper()
		in := &dynamodb.UpdateItemInput{TableName: &tb.name, Key: item("id", "m"), UpdateExpression: &expression, ExpressionAttributeValues: values}
		if _, err := e.DB.UpdateItem(t.Context(), in); err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
	}
	for name, v := range map[string]any{"tour": "open", "area": 3, "round": "b", "score": 9, "title": []byte("y")} {
		update("REMOVE "+name, nil)
		tb.holds(t, "byRound", nil)
		update("SET "+name+" = :v", item(":v", v))
		full[name] = value(v)
		tb.holds(t, "byRound", []attributes{full})
	}
	tb.delete(t, item("id", "m"))
	tb.holds(t, "byRound", nil)
}

// A write with a value that an attribute of the key cannot have is refused, wherever the attribute
// stands, and also if another one is missing.
func compositeWrongValues(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	const mismatch = invalid + "Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: byRound"
	for _, row := range []struct{ name, wrong, want, got string }{
		{"tour", `{"N":"1"}`, "S", "N"}, {"area", `{"S":"1"}`, "N", "S"}, {"round", `{"B":"eA=="}`, "S", "B"},
		{"score", `{"BOOL":true}`, "N", "BOOL"}, {"title", `{"S":"x"}`, "B", "S"},
	} {
		message := fmt.Sprintf(mismatch, row.name, row.want, row.got)
		tb.refuse(t, "PutItem", `{"Item":{"id":{"S":"i"},"`+row.name+`":`+row.wrong+`}}`, validation, message)
		whole := map[string]string{"tour": `{"S":"t"}`, "area": `{"N":"1"}`, "round": `{"S":"r"}`, "score": `{"N":"1"}`, "title": `{"B":"eA=="}`}
		whole[row.name] = row.wrong
		body := `{"Item":{"id":{"S":"i"}`
		for name, v := range whole {
			body += `,"` + name + `":` + v
		}
		tb.refuse(t, "PutItem", body+`}}`, validation, message)
		tb.refuse(t, "UpdateItem", `{"Key":{"id":{"S":"i"}},"UpdateExpression":"SET `+row.name+` = :v","ExpressionAttributeValues":{":v":`+row.wrong+`}}`,
			validation, message)
	}
	for name, empty := range map[string]string{"tour": `{"S":""}`, "round": `{"S":""}`, "title": `{"B":""}`} {
		tb.refuse(t, "PutItem", `{"Item":{"id":{"S":"i"},"`+name+`":`+empty+`}}`, validation, "One or more parameter values are not valid…"+name+"…")
	}
	tb.wantStored(t, item("id", "i"), nil)
}

// The attributes of the partition key share 2,048 bytes, and the sort key's share 1,024.
func compositeTooLong(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "id:S", global("long", "a:S,b:S c:S,d:S", "KEYS_ONLY"))
	const partition, sort = invalid + "Size of hashkey has exceeded the maximum size limit of2048 bytes", invalid + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
	long := func(n int) string { return `{"S":"` + strings.Repeat("x", n) + `"}` }
	put := func(a, b, c, d int) string {
		return `{"Item":{"id":{"S":"i"},"a":` + long(a) + `,"b":` + long(b) + `,"c":` + long(c) + `,"d":` + long(d) + `}}`
	}
	tb.ok(t, "PutItem", put(1024, 1024, 512, 512))
	tb.refuse(t, "PutItem", put(1024, 1025, 512, 512), validation, partition)
	tb.refuse(t, "PutItem", put(1024, 1024, 1, 1024), validation, sort)
	update := func(name string, n int) string {
		return `{"Key":{"id":{"S":"i"}},"UpdateExpression":"SET ` + name + ` = :v","ExpressionAttributeValues":{":v":` + long(n) + `}}`
	}
	tb.refuse(t, "UpdateItem", update("b", 1025), validation, partition)
	tb.refuse(t, "UpdateItem", update("d", 513), validation, sort)
	tb.ok(t, "UpdateItem", update("d", 512))
	query := func(a, b, c, d int) string {
		return `{"IndexName":"long","KeyConditionExpression":"a = :a AND b = :b AND c = :c AND d = :d","ExpressionAttributeValues":{":a":` + long(a) +
			`,":b":` + long(b) + `,":c":` + long(c) + `,":d":` + long(d) + `}}`
	}
	tb.ok(t, "Query", query(1024, 1024, 512, 512))
	tb.refuse(t, "Query", query(1024, 1025, 512, 512), validation, partition)
	tb.refuse(t, "Query", query(1024, 1024, 513, 512), validation, sort)
}

// Every projection holds all attributes of both keys.
func compositeProjections(t *testing.T, e *Endpoint) {
	const key = "a:S,b:N c:S,d:N"
	tb := newTable(t, e, "id:S sk:N", global("all", key, "ALL"), global("keys", key, "KEYS_ONLY"), global("some", key, "INCLUDE in"))
	full := item("id", "i", "sk", 1, "a", "a", "b", 2, "c", "c", "d", 4, "in", 5, "rest", 6)
	keys := item("id", "i", "sk", 1, "a", "a", "b", 2, "c", "c", "d", 4)
	some := item("id", "i", "sk", 1, "a", "a", "b", 2, "c", "c", "d", 4, "in", 5)
	tb.put(t, full)
	for name, want := range map[string]attributes{"all": full, "keys": keys, "some": some} {
		tb.holds(t, name, []attributes{want})
		wantItems(t, name, tb.query(t, "a = :a AND b = :b", item(":a", "a", ":b", 2), onIndex(name)).Items, []attributes{want})
	}
	only := func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("d, id, b") }
	wantItems(t, "a projection", tb.query(t, "a = :a AND b = :b", item(":a", "a", ":b", 2), onIndex("keys"), only).Items, []attributes{item("id", "i", "b", 2, "d", 4)})
	tb.refuse(t, "Query", `{"IndexName":"keys","KeyConditionExpression":"a = :v AND b = :w","ExpressionAttributeValues":{":v":{"S":"x"},":w":{"N":"1"}},"ProjectionExpression":"rest"}`,
		validation, invalid+"…")
}

// A filter may name other attributes, and none of the index's key.
func compositeFilters(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, played()...)
	tb.awaitIndex(t, "byRound", 9)
	out := tb.query(t, inRound, item(":t", "cup", ":a", 1, ":i", "m3"), onIndex("byRound"), func(in *dynamodb.QueryInput) {
		in.FilterExpression = aws.String("id <= :i")
	})
	if got := column(out.Items, "id"); got != "m3 m1 m2" || out.ScannedCount != 7 {
		t.Errorf("got %s of %d", got, out.ScannedCount)
	}
	for _, name := range []string{"tour", "area", "round", "score", "title"} {
		tb.refuse(t, "Query", `{"IndexName":"byRound","KeyConditionExpression":"tour = :t AND area = :a","FilterExpression":"attribute_exists(`+name+`)",`+
			`"ExpressionAttributeValues":{":t":{"S":"cup"},":a":{"N":"1"}}}`,
			validation, "Filter Expression can only contain non-primary key attributes: Primary key attribute: "+name)
	}
}

// KeyConditions take as many conditions as the key has attributes.
func compositeKeyConditions(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, played()...)
	tb.awaitIndex(t, "byRound", 9)
	condition := func(operator types.ComparisonOperator, values ...any) types.Condition {
		c := types.Condition{ComparisonOperator: operator}
		for _, v := range values {
			c.AttributeValueList = append(c.AttributeValueList, value(v))
		}
		return c
	}
	conditions := map[string]types.Condition{"tour": condition("EQ", "cup"), "area": condition("EQ", 1)}
	expect := func(want string) {
		t.Helper()
		out, err := tb.DB.Query(t.Context(), &dynamodb.QueryInput{TableName: &tb.name, IndexName: aws.String("byRound"), KeyConditions: conditions})
		if err != nil {
			t.Fatal(err)
		}
		if got := column(out.Items, "id"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	expect("m7 m3 m5 m1 m6 m2 m4")
	conditions["round"] = condition("BEGINS_WITH", "a")
	expect("m7 m3 m5 m1 m6")
	conditions["round"] = condition("EQ", "a")
	conditions["score"] = condition("BETWEEN", -5, 2)
	expect("m7 m3 m5")
	conditions["score"] = condition("EQ", 2)
	conditions["title"] = condition("GT", []byte("x"))
	expect("m5")
	const legacy = `{"IndexName":"byRound","KeyConditions":{"tour":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"cup"}]},`
	tb.refuse(t, "Query", legacy+`"score":{"ComparisonOperator":"EQ","AttributeValueList":[{"N":"1"}]},"area":{"ComparisonOperator":"EQ","AttributeValueList":[{"N":"1"}]}}}`,
		validation, "Query condition missed key schema element: round")
	tb.refuse(t, "Query", legacy+`"area":{"ComparisonOperator":"GT","AttributeValueList":[{"N":"1"}]}}}`, validation, "Query key condition not supported")
}

// Equality on every partition attribute; sort attributes without gaps; a range in the last place only.
func compositeQueryRefused(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	const missed, unsupported = "Query condition missed key schema element: ", "Query key condition not supported"
	values := map[string]string{":t": `{"S":"cup"}`, ":a": `{"N":"1"}`, ":r": `{"S":"a"}`, ":s": `{"N":"2"}`, ":b": `{"B":"eA=="}`, ":x": `{"S":"x"}`, ":e": `{"S":""}`}
	for _, row := range []struct{ condition, message string }{
		{"tour = :t", missed + "area"},
		{"area = :a", missed + "tour"},
		{"tour = :t AND round = :r", missed + "area"},
		{inRound + " AND score = :s", missed + "round"},
		{inRound + " AND score > :s", missed + "round"},
		{inRound + " AND round = :r AND title = :b", missed + "score"},
		{inRound + " AND title = :b", missed + "round"},
		{"tour > :t AND area = :a", unsupported},
		{"tour = :t AND area > :a", unsupported},
		{"begins_with(tour, :t) AND area = :a", unsupported},
		{inRound + " AND round > :r AND score = :s", unsupported},
		{inRound + " AND begins_with(round, :r) AND score > :s", unsupported},
		{inRound + " AND round = :r AND score > :s AND title = :b", unsupported},
		{inRound + " AND round <> :r", "Invalid operator used in KeyConditionExpression: <>"},
		{inRound + " AND round = :r AND round > :x", "KeyConditionExpressions must only contain one condition per key"},
		{"tour = :t AND area = :x", invalid + "Condition parameter type does not match schema type"},
		{inRound + " AND round = :r AND score = :x", invalid + "Condition parameter type does not match schema type"},
		{inRound + " AND round = :e", "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: round"},
	} {
		t.Run(row.condition, func(t *testing.T) {
			var used []string
			for name, v := range values {
				if strings.Contains(row.condition, name) {
					used = append(used, `"`+name+`":`+v)
				}
			}
			tb.refuse(t, "Query", `{"IndexName":"byRound","KeyConditionExpression":"`+row.condition+`","ExpressionAttributeValues":{`+strings.Join(used, ",")+`}}`,
				validation, row.message)
		})
	}
	tb.refuse(t, "Query", `{"IndexName":"byRound","ConsistentRead":true,"KeyConditionExpression":"tour = :t AND area = :a","ExpressionAttributeValues":{":t":{"S":"c"},":a":{"N":"1"}}}`,
		validation, "Consistent reads are not supported on global secondary indexes")
}

// UpdateTable adds such an index to a table that holds items. Those that do not fit stay out of it.
func compositeAdded(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "id:S")
	var want []attributes
	for n := range 120 {
		it := match(fmt.Sprint("n", n), fmt.Sprint("t", n%3), n%4, fmt.Sprint(n%5), n, "x")
		switch n % 6 {
		case 1:
			it["score"] = value("text")
		case 2:
			delete(it, "title")
		case 3:
			it["round"] = value("")
		case 4:
			it["tour"], it["extra"] = value(strings.Repeat("x", 2049)), value(n)
		default:
			want = append(want, it)
		}
		tb.put(t, it)
	}
	tb.addIndex(t, "byRound", "tour:S,area:N round:S,score:N,title:B", "ALL")
	if d := tb.awaitBuilt(t, "byRound"); definitionsOf(d) != "area:N id:S round:S score:N title:B tour:S" || len(indexOf(d, "byRound").KeySchema) != 5 {
		t.Errorf("the table: %+v", d)
	}
	tb.holds(t, "byRound", want)
	late := match("late", "t9", 1, "a", 1, "x")
	tb.put(t, late)
	tb.holds(t, "byRound", append(want, late))
	tb.refuse(t, "PutItem", `{"Item":{"id":{"S":"n1"},"score":{"S":"text"}}}`, validation, "…Index Key score…")
	tb.removeIndex(t, "byRound")
	if d := tb.awaitRemoved(t, "byRound"); definitionsOf(d) != "id:S" {
		t.Errorf("definitions that are left: %s", definitionsOf(d))
	}
}

// Backups hold such indexes, and restores build them. An override names the whole key.
func compositeRestored(t *testing.T, e *Endpoint) {
	tb := contest(t, e)
	tb.put(t, played()...)
	arn := tb.backup(t, "composite")
	restored := tb.restore(t, arn)
	restored.holds(t, "byRound", played())
	if got := column(restored.query(t, inRound, item(":t", "cup", ":a", 1), onIndex("byRound")).Items, "id"); got != "m7 m3 m5 m1 m6 m2 m4" {
		t.Errorf("got %s", got)
	}
	var defined dynamodb.CreateTableInput
	override := types.GlobalSecondaryIndex{
		IndexName: aws.String("byRound"), KeySchema: keySchema(&defined, "tour:S,area:N round:S,score:N,title:B"), Projection: projection("ALL"),
	}
	named := tb.restore(t, arn, func(in *dynamodb.RestoreTableFromBackupInput) {
		in.GlobalSecondaryIndexOverride = []types.GlobalSecondaryIndex{override}
	})
	named.holds(t, "byRound", played())
	override.KeySchema = override.KeySchema[:4]
	_, err := e.DB.RestoreTableFromBackup(t.Context(), &dynamodb.RestoreTableFromBackupInput{
		BackupArn: &arn, TargetTableName: aws.String(uniqueName(t) + "x"), GlobalSecondaryIndexOverride: []types.GlobalSecondaryIndex{override},
	})
	if problem := errorProblem(err, validation, invalid+"…byRound…"); problem != "" {
		t.Errorf("an override with a part of the key:\n%s", problem)
	}
}

// An expired item is hidden from such an index, also if its deadline is a part of the key, and so are
// its places in pages and counts.
func compositeExpiry(t *testing.T, e *Endpoint) {
	tb := expired(t, e, global("byKey", "g:S,pk:S n:N,sk:N", "ALL"), global("keys", "g:S,pk:S n:N,l:N", "KEYS_ONLY"), global("byTTL", "g:S,pk:S ttl:N,sk:N", "ALL"))
	values := item(":g", "x", ":p", "p")
	for index, want := range map[string]string{"byKey": "2", "keys": "2", "byTTL": ""} {
		for _, limit := range []int32{1, 10} {
			paged := func(in *dynamodb.QueryInput) { in.Limit = &limit }
			if got := column(slices.Concat(tb.queryAll(t, "g = :g AND pk = :p", values, onIndex(index), paged)...), "sk"); got != want {
				t.Errorf("%s by pages of %d: got %s, want %s", index, limit, got, want)
			}
		}
		if got := column(tb.scanAll(t, index), "sk"); got != want {
			t.Errorf("scan of %s: got %s, want %s", index, got, want)
		}
	}
}

// HASH comes before RANGE, four of each at most, each attribute once and defined. Tables and local
// indexes have one of each.
func compositeRefused(t *testing.T, e *Endpoint) {
	const defined = "id:S a:S b:S c:S d:S e:S f:S"
	of := func(key string) string {
		return object(attrs(defined), keys("id:HASH"), onDemand, globals(index("byKey", keys(key), projectAll)))
	}
	const tooLong = "1 validation error detected: Value '…' at '…eySchema' failed to satisfy constraint: Member must have length less than or equal to 2"
	refuseCreation(t, e, []refusedTable{
		{"five partition attributes", of("a:HASH b:HASH c:HASH d:HASH e:HASH"), "…"},
		{"five sort attributes", of("id:HASH a:RANGE b:RANGE c:RANGE d:RANGE e:RANGE"), "…"},
		{"RANGE first", of("a:RANGE b:HASH"), "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"only RANGE", of("a:RANGE b:RANGE"), "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"HASH behind RANGE", of("a:HASH b:RANGE c:HASH"), "…"},
		{"attribute twice", of("a:HASH b:HASH c:RANGE b:RANGE"), "…"},
		{"partition attribute twice", of("a:HASH b:HASH a:HASH"), "…"},
		{"not defined", object(attrs("id:S a:S c:S"), keys("id:HASH"), onDemand, globals(index("byKey", keys("a:HASH b:HASH c:RANGE"), projectAll))),
			invalid + "Some index key attributes are not defined in AttributeDefinitions. Keys: […], AttributeDefinitions: […]"},
		{"definition unused", object(attrs("id:S a:S b:S c:S"), keys("id:HASH"), onDemand, globals(index("byKey", keys("a:HASH b:HASH"), projectAll))),
			invalid + "Some AttributeDefinitions are not used. AttributeDefinitions: […], keys used: […]"},
		{"no scalar", object(attrs("id:S a:S b:L"), keys("id:HASH"), onDemand, globals(index("byKey", keys("a:HASH b:HASH"), projectAll))),
			"1 validation error detected: Value 'L' at 'attributeDefinitions.3.member.attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]"},
		{"table", object(attrs("id:S a:S b:S"), keys("id:HASH a:RANGE b:RANGE"), onDemand), tooLong},
		{"local index", object(attrs("id:S a:S b:S"), keys("id:HASH a:RANGE"), onDemand, locals(index("local", keys("id:HASH a:RANGE b:RANGE"), projectAll))), tooLong},
	})
}
