package console

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// showItems shows a page of a table's items, and the form that chooses them.
func showItems(ctx context.Context, v *visit) (*page, error) {
	t, err := v.table(ctx)
	if err != nil {
		return nil, err
	}
	q, err := readQuery(t, form{v.r.Form})
	if err != nil {
		return nil, err
	}
	body := []node{q.form(v)}
	f, err := q.run(ctx, v.DynamoDB())
	if err != nil {
		if asksForKey(err) {
			return nil, err
		}
		return t.page("items", body...).with(err), nil
	}
	body = append(body, q.results(ctx, v, f), f.request.shown(v))
	return t.page("items", body...), nil
}

// form returns the form that chooses items. Its fields are the URL's.
func (q *query) form(v *visit) node {
	f := form{v.r.Form}
	indexes := []option{{"", "the table itself"}}
	for _, x := range q.table.indexes() {
		indexes = append(indexes, option{x.name, x.name})
	}
	kinds := []option{{"S", "string"}, {"N", "number"}, {"BOOL", "true or false"}, {"B", "binary"}}
	fields := []node{el("fieldset", el("legend", words("Where")), f.choice("index", "Index", indexes))}
	for i, name := range q.keys {
		n := strconv.Itoa(i)
		value := el("label", words(name+" "), el("input", has("name", "k"+n), has("value", q.values[i]), has("autocomplete", "off"), optional(i == 0, has("data-search")), has("placeholder", kindText(q.table.kind(name)))))
		if i < q.partition {
			fields = append(fields, el("fieldset", el("legend", words("Partition key")), value))
			continue
		}
		fields = append(fields, el("fieldset", el("legend", words("Sort key")), f.choice("o"+n, "Comparison of "+name, sortOperators), value,
			optional(i == len(q.keys)-1, el("label", has("class", "second"), words("and "), el("input", has("aria-label", "and, for between"), has("name", "second"), has("value", q.second), has("autocomplete", "off"))))))
	}
	var filters []node
	for i := range filtersMost {
		n := strconv.Itoa(i)
		filters = append(filters, together("Condition "+strconv.Itoa(i+1),
			f.text("f"+n, "Attribute", ""), f.choice("fo"+n, "Comparison", operators), f.choice("ft"+n, "Type", kinds), f.text("fv"+n, "Value", ""),
		))
	}
	fields = append(fields,
		el("details", optional(len(q.filters) > 0 || len(q.projection) > 0, has("open")),
			el("summary", words("Filter, attributes, order")),
			el("fieldset", append([]node{el("legend", words("Filter"))}, filters...)...),
			el("div", has("class", "row"),
				f.text("projection", "Attributes, with commas between them", ""),
				f.choice("order", "Order of the sort key", []option{{"", "ascending"}, {"down", "descending"}}),
				f.choice("limit", "Items of a page", []option{{"", strconv.Itoa(pageDefault)}, {"200", "200"}, {"1000", "1,000"}}),
			),
		),
		el("button", has("class", "primary"), words("Show")), words(" "), el("a", has("href", q.table.path("items")), words("Clear")),
	)
	return el("form", has("class", "query"), has("method", "get"), has("data-token", v.token), group(fields))
}

// kindText returns the type of a key attribute as a visitor's word.
func kindText(kind types.ScalarAttributeType) string {
	return map[types.ScalarAttributeType]string{"S": "string", "N": "number", "B": "binary, as base64"}[kind]
}

// chosenBytes is the length of all keys that a page lets a visitor choose, as its form sends them. It
// leaves room below bodyMost for the other fields and for what the preview adds.
const chosenBytes = bodyMost / 2

// columnsMost is the number of columns, besides keys and deadline.
const columnsMost = 8

// columns returns the attributes that most items of a page have.
func (q *query) columns(items []attr.Item) []string {
	count := map[string]int{}
	for _, item := range items {
		for name := range item {
			count[name]++
		}
	}
	fixed := q.table.keys()
	for _, name := range append(fixed, q.table.ttl) {
		delete(count, name)
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	return append(fixed, names[:min(len(names), columnsMost)]...)
}

// results shows a page of items.
func (q *query) results(ctx context.Context, v *visit, f *found) node {
	clock := v.clock(ctx)
	columns := q.columns(f.items)
	keys := len(q.table.keys())
	heads := append([]string{""}, columns...)
	var end fate
	if q.table.ttl != "" { // after the key, so that a telephone shows it
		heads = slices.Insert(heads, 1+keys, "Expires ("+q.table.ttl+")")
		end = v.fate(ctx, q.table)
	}
	rows := make([]node, len(f.items))
	room, full := chosenBytes, false
	for i, item := range f.items {
		key := keyJSON(item, q.table.keys())
		room -= len(url.QueryEscape(key)) + len("&key=")
		full = full || room < 0
		cells := []node{el("td", el("input", has("type", "checkbox"), has("name", "key"), optional(!full, has("value", key)), optional(full, has("disabled")), has("form", "bulk"), has("aria-label", "Select "+clip(key, cellMost))))}
		for n, name := range columns {
			shown := cell(item[name])
			if n == 0 {
				shown = el("a", has("href", q.table.itemPath(key)), shown)
			}
			cells = append(cells, el("td", shown))
		}
		if q.table.ttl != "" {
			cells = slices.Insert(cells, 1+keys, el("td", q.deadlineCell(item, clock, end)))
		}
		rows[i] = el("tr", cells...)
	}
	summary := counted(len(f.items), "item")
	if int(f.scanned) != len(f.items) {
		summary += fmt.Sprintf(" of %s read", grouped(int64(f.scanned)))
	}
	summary += fmt.Sprintf(", %s read units", strconv.FormatFloat(f.consumed, 'f', -1, 64))
	none := "No item matches."
	if f.next != nil {
		none = "No item of this page matches; the next page may have some."
	}
	changed, _ := strconv.ParseUint(v.r.FormValue("changed"), 10, 32) // 0: the page does not come from a change
	return el("section", has("aria-label", "Items"),
		optional(changed > 0, el("p", has("class", "done"), has("role", "status"), words(counted(int64(changed), "item")+" changed."))),
		el("div", has("class", "heading"), el("p", has("role", "status"), words(summary)), el("a", has("class", "button"), has("href", q.table.path("item")), words("Create an item"))),
		list(heads, rows, none),
		optional(end.long != "" && len(rows) > 0, el("p", el("small", words(end.long)))),
		optional(full, el("p", has("class", "missing"), words("The keys of this page are too long to choose all of them at once: the last rows cannot be chosen. Show fewer items on a page."))),
		optionally(len(rows) > 0, func() node { return q.table.bulkForm(v) }),
		q.exportLinks(v),
		el("nav", has("class", "more"), has("aria-label", "Pages"),
			optional(q.start != nil, v.to(urlWith(v.r.URL, url.Values{"start": {""}}), words("First page"))),
			optionally(f.next != nil, func() node { return v.to(f.nextPage(v.r.URL), has("rel", "next"), words("Next page")) }),
		),
	)
}

// exportLinks returns the links to files of what the form chooses.
func (q *query) exportLinks(v *visit) node {
	u := *v.r.URL
	u.Path = q.table.path("export")
	as := func(kind string) string { return urlWith(&u, url.Values{"as": {kind}, "start": {""}, "changed": {""}}) }
	return el("div", has("class", "export"),
		el("p", words("Export all that match: "), v.to(as("jsonl"), words("JSON lines")), words(", "), v.to(as("csv"), words("CSV")), words(", "), v.to(as("sheet"), words("CSV for spreadsheets"))),
		el("p", el("small", words(fmt.Sprintf("Up to %s items: more are refused, and mayfly export has no limit. CSV has all values as they are, and a spreadsheet takes one that begins with = + - or @ for a formula. CSV for spreadsheets puts an apostrophe before such texts.", grouped(exportMost))))))
}

// itemPath returns the path of an item's page, with more names and values of its URL. The key is
// JSON.
func (t *table) itemPath(key string, more ...string) string {
	set := url.Values{"key": {urlKey(key)}}
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			set.Set(more[i], more[i+1])
		}
	}
	return t.path("item") + "?" + set.Encode()
}

// deadlineCell shows the time left of an item, and what happens to it then.
func (q *query) deadlineCell(item attr.Item, clock reading, end fate) node {
	ttl := q.table.ttl
	value, ok := item[ttl]
	if !ok && q.index != nil && !q.index.has(ttl) {
		return el("span", has("class", "absent"), has("title", "The index has no attribute "+ttl+"."), words("not in the index"))
	}
	if !ok {
		return el("span", has("class", "absent"), words("never"))
	}
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return el("span", has("class", "warning"), words("never: not a number"))
	}
	at, reason := deadlineOf(n.Value, clock.now)
	if reason != "" {
		return el("span", has("class", "warning"), words("never: "+reason))
	}
	return group{until(at, clock.now), words(" "), el("small", words(end.short))}
}
