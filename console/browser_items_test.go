package console_test

import (
	"encoding/csv"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// orders is a table of an endpoint: customers have orders with lines, and two indexes know their
// states. Its items expire where the endpoint can enable TTL.
type orders struct {
	*world
	t     *testing.T
	table string
}

// newOrders makes an empty table.
func newOrders(t *testing.T, w *world, table string) *orders {
	t.Helper()
	o := &orders{w, t, table}
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: kind}
	}
	index := func(name string, projection types.ProjectionType) types.GlobalSecondaryIndex {
		return types.GlobalSecondaryIndex{
			IndexName: &name, Projection: &types.Projection{ProjectionType: projection},
			KeySchema: []types.KeySchemaElement{key("state", types.KeyTypeHash), key("line", types.KeyTypeRange)},
		}
	}
	_, err := w.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{key("customer", types.KeyTypeHash), key("line", types.KeyTypeRange)},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("customer"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("line"), AttributeType: types.ScalarAttributeTypeN},
			{AttributeName: aws.String("state"), AttributeType: types.ScalarAttributeTypeS},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{index("by-state", types.ProjectionTypeAll), index("keys-of-state", types.ProjectionTypeKeysOnly)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ready := dynamodb.NewTableExistsWaiter(w.db, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 20*time.Millisecond
	})
	if err := ready.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o.expires() {
		if _, err := w.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// expires reports whether the endpoint can enable TTL.
func (o *orders) expires() bool { return o.own != nil }

// clock returns the endpoint's time.
func (o *orders) clock() time.Time {
	if o.own == nil {
		return clock.New().Now()
	}
	return o.own.Clock().Now()
}

// write writes items in batches.
func (o *orders) write(items ...attr.Item) {
	o.t.Helper()
	for part := range slices.Chunk(items, 25) {
		puts := make([]types.WriteRequest, len(part))
		for i, item := range part {
			puts[i].PutRequest = &types.PutRequest{Item: item}
		}
		out, err := o.db.BatchWriteItem(o.t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{o.table: puts}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			o.t.Fatal(err, len(out.UnprocessedItems))
		}
	}
}

// order returns an item.
func order(customer string, line int, more attr.Item) attr.Item {
	item := attr.Item{"customer": attr.S(customer), "line": attr.Int(line), "state": attr.S("open"), "total": attr.Int(100 * line)}
	for name, v := range more {
		item[name] = v
	}
	return item
}

// get returns an item of the table, or nil.
func (o *orders) get(customer string, line int) attr.Item {
	o.t.Helper()
	out, err := o.db.GetItem(o.t.Context(), &dynamodb.GetItemInput{
		TableName: &o.table, Key: attr.Item{"customer": attr.S(customer), "line": attr.Int(line)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return out.Item
}

// check fails the test unless the table has an item with these attributes; nil: unless it has none.
func (o *orders) check(customer string, line int, want attr.Item) {
	o.t.Helper()
	if got := o.get(customer, line); !reflect.DeepEqual(got, want) {
		o.t.Errorf("%s %d is %s, not %s", customer, line, attr.String(attr.M(got)), attr.String(attr.M(want)))
	}
}

// page returns the URL of a page of the table.
func (o *orders) page(path string, query ...string) string {
	set := url.Values{}
	for i := 0; i < len(query); i += 2 {
		set.Set(query[i], query[i+1])
	}
	return o.pages + "console/table/" + o.table + path + "?" + set.Encode()
}

// key returns a key as the pages' URLs have it.
func key(customer string, line int) string {
	return typed(attr.Item{"customer": attr.S(customer), "line": attr.Int(line)})
}

// rows returns the cells of the list on the page, without the check boxes.
func rows(tab *chrome.Tab) [][]string {
	return chrome.Eval[[][]string](tab, `[...document.querySelectorAll("main table[data-rows] > tbody > tr")].map(r => [...r.cells].filter(c => !c.querySelector("input")).map(c => c.innerText.trim()))`)
}

// column returns a column of the list on the page.
func column(tab *chrome.Tab, n int) (cells []string) {
	for _, row := range rows(tab) {
		cells = append(cells, row[n])
	}
	return cells
}

// numbers returns the numbers from one to another as texts.
func numbers(from, to int) (all []string) {
	for n := from; n <= to; n++ {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

// expect fails the test unless a column of the list shows texts.
func expect(t *testing.T, tab *chrome.Tab, n int, want ...string) {
	t.Helper()
	if got := column(tab, n); !slices.Equal(got, want) {
		t.Fatalf("column %d of %s shows %q, not %q", n, tab.URL(), got, want)
	}
}

// steady fails the test if a reload changes the list.
func steady(t *testing.T, tab *chrome.Tab, n int) {
	t.Helper()
	before := column(tab, n)
	tab.Reload()
	expect(t, tab, n, before...)
}

func TestBrowserItems(t *testing.T) {
	b := chrome.Start(t)
	everywhere(t, func(t *testing.T, w *world) {
		for _, view := range w.views() {
			t.Run(view.Name, func(t *testing.T) {
				o := newOrders(t, w, "orders-"+view.Name)
				var many []attr.Item
				for n := range 120 {
					many = append(many, order("c-1", n+1, nil))
				}
				o.write(many...)
				o.write(order("c-2", 1, attr.Item{"state": attr.S("sent"), "note": attr.S("fragile")}), order("c-2", 2, attr.Item{"state": attr.S("sent")}))
				tab := b.Open(t, view)
				o.browse(t, tab)
				if !walks(view) {
					return
				}
				o.query(t, tab)
				o.filter(t, tab)
				o.byIndex(t, tab)
				o.code(t, tab)
				o.export(t, tab)
			})
		}
	})
}

// browse goes through the pages of the table.
func (o *orders) browse(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.pages)
	tab.Press("g", "t")
	tab.WaitText("h1", "Tables")
	tab.FollowText(o.table)
	tab.WaitText("main", "50 items")
	tab.Picture("items")
	seen := column(tab, 1)
	tab.FollowText("Next page")
	tab.WaitText("main", "50 items")
	steady(t, tab, 1)
	seen = append(seen, column(tab, 1)...)
	tab.FollowText("Next page")
	tab.WaitText("main", "22 items")
	seen = append(seen, column(tab, 1)...)
	if want := append(numbers(1, 120), "1", "2"); len(seen) != 122 || !slices.Equal(sorted(seen), sorted(want)) {
		t.Errorf("the pages show %q", seen)
	}
	tab.FollowText("First page")
	tab.WaitText("main", "50 items")
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

// query asks by key.
func (o *orders) query(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/items"))
	tab.Press("/")
	tab.Wait(`document.activeElement.name === "k0"`)
	tab.Fill("input[name=k0]", "c-1")
	if chrome.Eval[bool](tab, `!!document.querySelector("input[name=second]").offsetParent`) {
		t.Error("a field for the end of a range is shown without a range")
	}
	tab.Choose("select[name=o1]", "between")
	tab.Fill("input[name=k1]", "9")
	tab.Fill("input[name=second]", "12")
	tab.FollowText("Show")
	expect(t, tab, 1, "9", "10", "11", "12")
	steady(t, tab, 1)
	tab.Picture("between")
	if at := tab.URL(); !strings.HasSuffix(at, "?k0=c-1&o1=between&k1=9&second=12") {
		t.Errorf("the page is at %s", at)
	}
	tab.Choose("select[name=o1]", ">=")
	tab.Fill("input[name=k1]", "118")
	tab.ClickText("Filter, attributes, order")
	tab.Choose("select[name=order]", "down")
	tab.FollowText("Show")
	expect(t, tab, 1, "120", "119", "118")
	tab.Fill("input[name=k1]", "many")
	tab.FollowText("Show")
	tab.WaitText("[role=alert]", `"many" is not a number`)
	tab.Forgive("400")
	if got := chrome.Eval[string](tab, `document.querySelector("input[name=k1]").value`); got != "many" {
		t.Errorf("the form forgot its text: %q", got)
	}
	tab.FollowText("Clear")
	tab.WaitText("main", "50 items")
}

// filter asks by other attributes, for some attributes.
func (o *orders) filter(t *testing.T, tab *chrome.Tab) {
	tab.ClickText("Filter, attributes, order")
	tab.Fill("input[name=f0]", "note")
	tab.Choose("select[name=fo0]", "contains")
	tab.Fill("input[name=fv0]", "agil")
	tab.Fill("input[name=f1]", "total")
	tab.Choose("select[name=fo1]", "<=")
	tab.Choose("select[name=ft1]", "N")
	tab.Fill("input[name=fv1]", "100")
	tab.Fill("input[name=projection]", "note")
	tab.Choose("select[name=limit]", "200")
	tab.Picture("filter")
	tab.FollowText("Show")
	tab.WaitText("main", "1 item of 122 read")
	expect(t, tab, len(rows(tab)[0])-1, "fragile")
	heads := chrome.Eval[[]string](tab, `[...document.querySelectorAll("main th")].map(h => h.innerText.trim())`)
	if slices.Contains(heads, "total") || !slices.Contains(heads, "note") {
		t.Errorf("the columns are %q", heads)
	}
	steady(t, tab, 1)
	tab.FollowText("Clear")
	// a part of the key filters too
	tab.Choose("select[name=o1]", "<")
	tab.Fill("input[name=k1]", "2")
	tab.ClickText("Filter, attributes, order")
	tab.Choose("select[name=limit]", "200")
	tab.FollowText("Show")
	expect(t, tab, 1, "1", "1")
	if at := sorted(column(tab, 0)); !slices.Equal(at, []string{"c-1", "c-2"}) {
		t.Errorf("line 1 is of %q", at)
	}
}

// byIndex browses and asks by index.
func (o *orders) byIndex(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/items"))
	tab.Choose("select[name=index]", "by-state")
	tab.FollowText("Show")
	tab.WaitText(".query", "state")
	tab.Fill("input[name=k0]", "sent")
	tab.FollowText("Show")
	expect(t, tab, 0, "c-2", "c-2")
	steady(t, tab, 0)
	tab.Choose("select[name=index]", "keys-of-state")
	tab.FollowText("Show")
	expect(t, tab, 0, "c-2", "c-2")
	if o.expires() {
		tab.WaitText("main tbody tr", "not in the index")
	}
	tab.Follow("main tbody a")
	tab.WaitText("h2", "c-2")
	tab.WaitText("main", "fragile") // of the table: the index has only keys
}

// code copies the request in each language.
func (o *orders) code(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/items", "k0", "c-1", "o1", ">", "k1", "2", "order", "down", "limit", "200"))
	address := strings.TrimSuffix(o.pages, "/_mayfly/")
	for name, want := range map[string][]string{
		"AWS CLI":    {"aws dynamodb query", "--table-name " + o.table, "--no-scan-index-forward", "--limit 200"},
		"Python":     {"boto3", `TableName="` + o.table + `"`, "ScanIndexForward=False", `{"N": "2"}`},
		"JavaScript": {"QueryCommand", `"` + o.table + `"`, "ScanIndexForward: false"},
		"Go":         {"dynamodb.QueryInput", `aws.String("` + o.table + `")`, `&types.AttributeValueMemberN{Value: "2"}`},
	} {
		tab.ClickText(name)
		tab.Click(".code[open] button")
		tab.WaitText(".code[open] button", "Copied")
		code := tab.Copied()
		for _, part := range want {
			if !strings.Contains(code, part) {
				t.Errorf("%s lacks %s:\n%s", name, part, code)
			}
		}
		if o.own != nil && !strings.Contains(code, address) {
			t.Errorf("%s does not name %s:\n%s", name, address, code)
		}
		if name == "Python" {
			tab.Picture("code")
		}
		tab.ClickText(name)
	}
}

// export downloads what a query finds.
func (o *orders) export(t *testing.T, tab *chrome.Tab) {
	tab.Go(o.page("/items", "k0", "c-2"))
	name, text := tab.Download("JSON lines")
	want := `{"customer":{"S":"c-2"},"line":{"N":"1"},"note":{"S":"fragile"},"state":{"S":"sent"},"total":{"N":"100"}}
{"customer":{"S":"c-2"},"line":{"N":"2"},"state":{"S":"sent"},"total":{"N":"200"}}
`
	if name != o.table+".jsonl" || text != want {
		t.Errorf("%s has\n%s", name, text)
	}
	name, text = tab.Download("CSV")
	if name != o.table+".csv" || text != "customer,line,note,state,total\nc-2,1,fragile,sent,100\nc-2,2,,sent,200\n" {
		t.Errorf("%s has\n%s", name, text)
	}
	tab.Go(o.page("/items")) // all pages, and not only the one that is shown
	_, text = tab.Download("CSV")
	if lines, err := csv.NewReader(strings.NewReader(text)).ReadAll(); err != nil || len(lines) != 123 {
		t.Errorf("the file has %d lines, %v", len(lines), err)
	}
}
