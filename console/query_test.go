package console

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// keysIn returns the keys of the items that a page lists, in its order: the values of the check
// boxes.
func keysIn(m markup) (keys []string) {
	for _, one := range m.all("input") {
		if one.values["type"] == "checkbox" && one.values["name"] == "key" {
			keys = append(keys, one.values["value"])
		}
	}
	return keys
}

// pagesOf returns the keys of the items on all pages of a query, and the number of pages.
func (s *site) pagesOf(path string, query url.Values) (keys []string, pages int) {
	s.t.Helper()
	for {
		m := s.page(path, query)
		keys = append(keys, keysIn(m)...)
		pages++
		next := ""
		for _, one := range m.all("a") {
			if one.values["rel"] == "next" {
				next = one.values["href"]
			}
		}
		if next == "" {
			return keys, pages
		}
		u, err := url.Parse(next)
		must(s.t, err)
		path, query = strings.TrimPrefix(u.Path, below), u.Query()
	}
}

// sortKeys are the values of sort keys, by type, in their order.
var sortKeys = map[string][]string{
	"S": {"", "a", "a\"c", "a'b", "b", "é", "\U0001F600"},
	"N": {"-12345678901234567890123456789012345678", "-1.5", "0", "0.00000001", "2", "10", "12345678901234567890123456789012345678"},
	"B": {"", "\x00", "\x00\xff", "a", "ab", "b", "\xc3", "\xff\xfe"},
}

// sortValue returns a value of a type from the text of a sort key.
func sortValue(kind, text string) types.AttributeValue {
	switch kind {
	case "N":
		return attr.N(text)
	case "B":
		return attr.B([]byte(text))
	}
	return attr.S(text)
}

// entered returns the text that a visitor enters for a value.
func entered(kind, text string) string {
	if kind == "B" {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	return text
}

// ranges creates a table "range" + kind with an index and an item for each sort key in two
// partitions.
func (s *site) ranges(kind string) (table string) {
	s.t.Helper()
	table = "range" + kind
	s.table(table, func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema("p", "s"), defined("p", "S", "s", kind, "other", kind, "group", "N")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("others"), KeySchema: keySchema("group", "other"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}}}
	})
	for _, p := range []string{"one", "two"} {
		for i, text := range sortKeys[kind] {
			if text != "" {
				s.put(table, attr.Item{"p": attr.S(p), "s": sortValue(kind, text), "other": sortValue(kind, text), "group": attr.N("7"), "n": attr.Int(i), "even": attr.Bool(i%2 == 0)})
			}
		}
	}
	return table
}

// keyOf returns the key of an item of such a table.
func keyOf(kind, p, text string) string {
	return jsonText(attr.Item{"p": attr.S(p), "s": sortValue(kind, text)})
}

// TestKeyConditions: each comparison of a sort key finds the right items, for each type, in a
// table and in an index, upwards and downwards, and in a Scan, where no partition key is entered.
func TestKeyConditions(t *testing.T) {
	s := open(t, mayfly.Options{})
	for kind, texts := range sortKeys {
		table := s.ranges(kind)
		least := slices.IndexFunc(texts, func(text string) bool { return text != "" })
		for at := least; at < len(texts); at++ {
			for operator, matches := range map[string]func(i int) bool{
				"": func(i int) bool { return i == at }, "=": func(i int) bool { return i == at },
				"<": func(i int) bool { return i < at }, "<=": func(i int) bool { return i <= at }, ">": func(i int) bool { return i > at }, ">=": func(i int) bool { return i >= at },
				"between": func(i int) bool { return i >= at && i <= at+2 }, "begins_with": func(i int) bool { return strings.HasPrefix(texts[i], texts[at]) },
			} {
				if operator == "begins_with" && kind == "N" {
					continue
				}
				query := url.Values{"k1": {entered(kind, texts[at])}, "o1": {operator}, "second": {entered(kind, texts[min(at+2, len(texts)-1)])}}
				var want []string
				for i := least; i < len(texts); i++ {
					if matches(i) {
						want = append(want, texts[i])
					}
				}
				check := func(where string, more url.Values, key func(p, text string) string, partitions []string, sorted bool) {
					t.Helper()
					all := maps.Clone(query)
					maps.Copy(all, more)
					var expected []string
					for _, p := range partitions {
						for _, text := range want {
							expected = append(expected, key(p, text))
						}
					}
					got := keysIn(s.page("table/"+table+"/items", all))
					if more.Get("order") == "down" {
						slices.Reverse(expected)
					}
					if !sorted {
						slices.Sort(expected)
						slices.Sort(got)
					}
					if !slices.Equal(got, expected) {
						t.Errorf("%s %s %s %q: %q; want %q", where, kind, operator, texts[at], got, expected)
					}
				}
				key := func(p, text string) string { return keyOf(kind, p, text) }
				check("query", url.Values{"k0": {"one"}}, key, []string{"one"}, true)
				check("downward query", url.Values{"k0": {"two"}, "order": {"down"}}, key, []string{"two"}, true)
				check("query of the index", url.Values{"index": {"others"}, "k0": {"7"}}, key, []string{"one", "two"}, false)
				check("scan", nil, key, []string{"one", "two"}, false)
			}
		}
	}
}

// TestFilters: each filter lets the right items pass, for each type.
func TestFilters(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	hostile := `f "' #n :v <script>`
	for i := range 6 {
		item := attr.Item{"id": attr.S(strconv.Itoa(i)), "n": attr.N(strconv.Itoa(10 * i)), "s": attr.S("text " + strconv.Itoa(i)), "b": attr.B([]byte{0xff, byte(i)}), "t": attr.Bool(i == 3), hostile: attr.S(strconv.Itoa(i % 2))}
		if i == 5 {
			delete(item, "n")
			item["tags"] = &types.AttributeValueMemberSS{Value: []string{"x", "y"}}
		}
		s.put("things", item)
	}
	binary := func(i byte) string { return base64.StdEncoding.EncodeToString([]byte{0xff, i}) }
	for _, c := range []struct{ name, operator, kind, value, want string }{
		{"n", "=", "N", "20", "2"}, {"n", "", "N", " 20 ", "2"}, {"n", "<>", "N", "20", "01345"}, {"n", "<", "N", "20", "01"}, {"n", "<=", "N", "2e1", "012"}, {"n", ">", "N", "20", "34"}, {"n", ">=", "N", "20.0", "234"},
		{"n", "exists", "", "", "01234"}, {"n", "missing", "", "", "5"}, {"n", "=", "S", "20", ""},
		{"s", "=", "S", "text 1", "1"}, {"s", "begins_with", "S", "text", "012345"}, {"s", "contains", "S", "t 4", "4"}, {"s", ">", "S", "text 3", "45"}, {"tags", "contains", "S", "y", "5"},
		{"b", "=", "B", binary(4), "4"}, {"b", "<", "B", binary(2), "01"}, {"b", "begins_with", "B", "/w==", "012345"},
		{"t", "=", "BOOL", "true", "3"}, {"t", "=", "BOOL", "False", "01245"}, {"t", "<>", "BOOL", "TRUE", "01245"},
		{hostile, "=", "S", "1", "135"}, {"none", "exists", "S", "", ""},
	} {
		got := keysIn(s.page("table/things/items", url.Values{"f0": {c.name}, "fo0": {c.operator}, "ft0": {c.kind}, "fv0": {c.value}}))
		var want []string
		for _, id := range c.want {
			want = append(want, jsonText(attr.Item{"id": attr.S(string(id))}))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s %s %s %q: %q; want %q", c.name, c.operator, c.kind, c.value, got, want)
		}
	}
	both := s.page("table/things/items", url.Values{"f0": {"n"}, "fo0": {">"}, "ft0": {"N"}, "fv0": {"0"}, "f1": {"s"}, "fo1": {"<"}, "ft1": {"S"}, "fv1": {"text 3"}, "f2": {hostile}, "fo2": {"="}, "ft2": {"S"}, "fv2": {"0"}})
	if got := keysIn(both); len(got) != 1 || got[0] != `{"id":{"S":"2"}}` {
		t.Errorf("three filters let pass %q", got)
	}
	if got := field(t, both, "f2"); got != hostile {
		t.Errorf("the form keeps the name %q", got)
	}
}

// TestProjection: a page with chosen attributes has them, the key and the deadline, and no others.
func TestProjection(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things")
	s.expires("things", "ends")
	s.put("things", attr.Item{"id": attr.S("a"), "ends": attr.N("1893502800"), "shown": attr.S("to be seen"), "hidden": attr.S("not to be seen"), "a.b": attr.S("with a dot")})
	m := s.page("table/things/items", url.Values{"projection": {" shown, a.b,,id "}})
	if text := m.text(); !strings.Contains(text, "to be seen") || !strings.Contains(text, "with a dot") || strings.Contains(text, "not to be seen") || !m.has("1893502800000") {
		t.Errorf("the page has %.900s", text)
	}
}

// TestPaging: the pages of a query have each item once, in both orders, with a filter, in a table,
// in an index and in a Scan, also with keys full of markup.
func TestPaging(t *testing.T) {
	s := open(t, mayfly.Options{})
	s.table("things", func(in *dynamodb.CreateTableInput) {
		in.KeySchema, in.AttributeDefinitions = keySchema("p", "s"), defined("p", "S", "s", "S", "x", "N")
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("byX"), KeySchema: keySchema("x"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}}}
	})
	var all []string
	for i := range 57 {
		text := fmt.Sprintf("%s %02d &?=%%\"\n", hostileTexts[i%len(hostileTexts)], i)
		s.put("things", attr.Item{"p": attr.S("one"), "s": attr.S(text), "x": attr.N("1"), "odd": attr.Bool(i%2 == 1)})
		all = append(all, jsonText(attr.Item{"p": attr.S("one"), "s": attr.S(text)}))
	}
	slices.Sort(all)
	for name, c := range map[string]struct {
		query       url.Values
		items, most int
	}{
		"a query": {url.Values{"k0": {"one"}}, 57, 6}, "a downward query": {url.Values{"k0": {"one"}, "order": {"down"}}, 57, 6}, "a scan": {url.Values{}, 57, 6},
		"an index": {url.Values{"index": {"byX"}, "k0": {"1"}}, 57, 6}, "a scan of the index": {url.Values{"index": {"byX"}}, 57, 6},
		"a filter": {url.Values{"k0": {"one"}, "f0": {"odd"}, "fo0": {"="}, "ft0": {"BOOL"}, "fv0": {"true"}}, 28, 6},
	} {
		c.query.Set("limit", "10")
		keys, pages := s.pagesOf("table/things/items", c.query)
		if pages != c.most {
			t.Errorf("%s has %d pages; want %d", name, pages, c.most)
		}
		order := slices.Clone(keys)
		if slices.Sort(keys); len(slices.Compact(slices.Clone(keys))) != c.items || len(keys) != c.items {
			t.Errorf("%s has %d items on its pages; want %d", name, len(keys), c.items)
		}
		if c.items == 57 && !slices.Equal(keys, all) {
			t.Errorf("%s has other items", name)
		}
		if name == "a downward query" {
			up, _ := s.pagesOf("table/things/items", url.Values{"k0": {"one"}, "limit": {"20"}})
			if slices.Reverse(order); !slices.Equal(order, up) {
				t.Errorf("downwards the items are not in the opposite order")
			}
		}
	}
}

// TestBadQueries: input that is none is refused with the field and the reason, and with 400.
func TestBadQueries(t *testing.T) {
	s := open(t, mayfly.Options{})
	table := "table/" + s.ranges("N") + "/items"
	binary := "table/" + s.ranges("B") + "/items"
	for _, c := range []struct {
		path   string
		query  url.Values
		status int
		text   string
	}{
		{table, url.Values{"k0": {"one"}, "k1": {"<script>"}}, 400, `The value of "s": "<script>" is not a number.`},
		{table, url.Values{"k0": {"one"}, "k1": {"1"}, "o1": {"between"}}, 400, `The value of "s": "" is not a number.`},
		{table, url.Values{"k0": {"one"}, "k1": {"2"}, "o1": {"between"}, "second": {"1"}}, 400, "ValidationException"},
		{table, url.Values{"k0": {"one"}, "k1": {"1e999"}}, 400, "ValidationException"},
		{table, url.Values{"k0": {"one"}, "k1": {"NaN"}}, 400, ""},
		{table, url.Values{"k0": {"one"}, "k1": {"0x10"}}, 400, ""},
		{table, url.Values{"k0": {"one"}, "k1": {"1"}, "o1": {"begins_with"}}, 400, "ValidationException"},
		{binary, url.Values{"k0": {"one"}, "k1": {"?"}}, 400, `The value of "s": "?" is not base64.`},
		{table, url.Values{"f0": {"x"}, "ft0": {"N"}, "fv0": {""}}, 400, `The value of "x": "" is not a number.`},
		{table, url.Values{"f0": {"x"}, "ft0": {"BOOL"}, "fv0": {"yes"}}, 400, `The value of "x": "yes" is neither true nor false.`},
		{table, url.Values{"k0": {"one"}, "f0": {"p"}, "ft0": {"S"}, "fv0": {"a"}}, 400, "ValidationException"},
		{table, url.Values{"index": {"none"}}, 404, `The table has no index "none".`},
		{table, url.Values{"limit": {"0"}}, 400, "A page has 1 to 1000 items."}, {table, url.Values{"limit": {"1001"}}, 400, "A page has"}, {table, url.Values{"limit": {"many"}}, 400, "A page has"},
		{table, url.Values{"start": {"{"}}, 400, "The URL's start is not a key"}, {table, url.Values{"start": {`{"x":{"S":"a"}}`}}, 400, "ValidationException"},
	} {
		text := s.get(c.path, c.query).refused(t, c.status)
		if !strings.Contains(text, c.text) {
			t.Errorf("%v: %.500s; want %q", c.query, text, c.text)
		}
	}
	if keys := keysIn(s.page(table, url.Values{"k0": {"nothing has this key"}})); len(keys) != 0 {
		t.Errorf("an empty partition has %q", keys)
	}
	if a := s.do(http.MethodGet, below+table+"?k0=%zz&k1=%", "", ""); a.status != http.StatusOK {
		t.Errorf("a malformed URL has the status %d", a.status)
	}
}
