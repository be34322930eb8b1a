package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var scanChecks = []check{
	{"PagesByLimit", scanPagesByLimit},
	{"PagesByMegabyte", scanPagesByMegabyte},
	{"Segments", scanSegments},
	{"Collections", scanCollections},
	{"FilterAndSelect", scanFilterAndSelect},
	{"FilterOnKeys", scanFilterOnKeys},
	{"Index", scanIndex},
	{"IndexPages", scanIndexPages},
	{"SegmentsRefused", scanSegmentsRefused},
	{"Refused", scanRefused},
}

// scan returns one page.
func (tb *table) scan(t *testing.T, change ...func(*dynamodb.ScanInput)) *dynamodb.ScanOutput {
	t.Helper()
	in := &dynamodb.ScanInput{TableName: &tb.name}
	for _, c := range change {
		c(in)
	}
	out, err := tb.DB.Scan(t.Context(), in)
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	return out
}

// scanPages follows LastEvaluatedKey to the end and returns the pages.
func (tb *table) scanPages(t *testing.T, change ...func(*dynamodb.ScanInput)) (pages [][]attributes) {
	t.Helper()
	var start attributes
	for {
		out := tb.scan(t, append(change, func(in *dynamodb.ScanInput) { in.ExclusiveStartKey = start })...)
		pages = append(pages, out.Items)
		if start = out.LastEvaluatedKey; start == nil {
			return pages
		}
		if len(pages) > 10_000 {
			t.Fatal("the scan does not end")
		}
	}
}

// scanAll returns all items of the table, or all entries of an index ("" is the table).
func (tb *table) scanAll(t *testing.T, index string) []attributes {
	t.Helper()
	return slices.Concat(tb.scanPages(t, func(in *dynamodb.ScanInput) {
		if index != "" {
			in.IndexName = &index
		}
	})...)
}

// await waits for a condition that an endpoint may bring about asynchronously.
func (tb *table) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const longest = 30 * time.Second
	for deadline := time.Now().Add(longest); !holds(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not as it should be after %v", what, longest)
		}
	}
}

// sorted returns a column's cells in ascending order, for results without an order.
func sorted(cells string) string {
	list := strings.Fields(cells)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Pages of any size return each item once, always in the same order.
func scanPagesByLimit(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	var want []string
	for n := range 9 {
		tb.put(t, item("pk", fmt.Sprint(n)))
		want = append(want, fmt.Sprint(n))
	}
	whole := column(tb.scanAll(t, ""), "pk")
	if got := sorted(whole); got != strings.Join(want, " ") {
		t.Fatalf("one page: got %s", got)
	}
	for limit := int32(1); limit <= 10; limit++ {
		pages := tb.scanPages(t, func(in *dynamodb.ScanInput) { in.Limit = &limit })
		if got := column(slices.Concat(pages...), "pk"); got != whole {
			t.Errorf("limit %d: got %s, want %s", limit, got, whole)
		}
	}
}

// A page ends at 1 MB.
func scanPagesByMegabyte(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N")
	var items []attributes
	for n := range 12 {
		items = append(items, item("pk", n, "v", bigString(300<<10)))
	}
	tb.load(t, items)
	pages := tb.scanPages(t)
	for i, page := range pages {
		if len(page) > 4 {
			t.Errorf("page %d has %d items of 300 KB", i, len(page))
		}
	}
	if got := len(slices.Concat(pages...)); got != 12 || len(pages) < 3 {
		t.Errorf("got %d items in %d pages, want 12 in three or more", got, len(pages))
	}
}

// Segments divide the table: together they hold each item once, for any number of them, paged or
// not.
func scanSegments(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N")
	var items []attributes
	for n := range 60 {
		items = append(items, item("pk", n))
	}
	tb.load(t, items)
	whole := sorted(column(tb.scanAll(t, ""), "pk"))
	for _, total := range []int32{1, 2, 3, 7, 100, 1_000_000} {
		var union []string
		for segment := range min(total, 100) {
			if total == 1_000_000 {
				segment *= 10_000 // a sample of a great many: none may fail, and none may overlap
			}
			pages := tb.scanPages(t, func(in *dynamodb.ScanInput) {
				in.Segment, in.TotalSegments = aws.Int32(segment), &total
				if total == 3 {
					in.Limit = aws.Int32(4)
				}
			})
			union = append(union, strings.Fields(column(slices.Concat(pages...), "pk"))...)
		}
		slices.Sort(union)
		if total <= 100 && strings.Join(union, " ") != whole {
			t.Errorf("%d segments: got %d items, want each of 60 once", total, len(union))
		}
		if len(slices.Compact(slices.Clone(union))) != len(union) {
			t.Errorf("%d segments: some item is in two of them", total)
		}
	}
}

// An item collection is contiguous and in the order of its sort key.
func scanCollections(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	for _, n := range []int{3, 1, 2} {
		for _, pk := range []string{"a", "b", "c", "d"} {
			tb.put(t, item("pk", pk, "sk", n))
		}
	}
	rows := tb.scanAll(t, "")
	if len(rows) != 12 {
		t.Fatalf("got %d items, want 12", len(rows))
	}
	seen := map[string]bool{}
	for i := 0; i < len(rows); i += 3 {
		pks := strings.Fields(column(rows[i:i+3], "pk"))
		if pks[0] != pks[1] || pks[1] != pks[2] || seen[pks[0]] {
			t.Errorf("the collections are mixed: %s", column(rows, "pk"))
		}
		seen[pks[0]] = true
		if got := column(rows[i:i+3], "sk"); got != "1 2 3" {
			t.Errorf("collection %s: got %s", pks[0], got)
		}
	}
}

func scanFilterAndSelect(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.put(t, item("pk", "a", "n", 1), item("pk", "b", "n", 2), item("pk", "c", "n", 3), item("pk", "d"))
	const filter = `"FilterExpression":"n > :n","ExpressionAttributeValues":{":n":{"N":"1"}}`
	a := tb.ok(t, "Scan", `{`+filter+`,"Select":"COUNT"}`)
	a.want(t, "Count", `2`)
	a.want(t, "ScannedCount", `4`)
	a.wantAbsent(t, "Items")
	out := tb.scan(t, func(in *dynamodb.ScanInput) {
		in.FilterExpression, in.ExpressionAttributeValues = aws.String("n > :n"), item(":n", 2)
		in.ProjectionExpression = aws.String("pk")
	})
	wantItems(t, "filtered, then projected", out.Items, []attributes{item("pk", "c")})
	if out.Count != 1 || out.ScannedCount != 4 {
		t.Errorf("Count %d, ScannedCount %d", out.Count, out.ScannedCount)
	}
}

// A scan may filter on the key, which a query may not.
func scanFilterOnKeys(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N")
	tb.put(t, item("pk", "a", "sk", 1), item("pk", "a", "sk", 2), item("pk", "b", "sk", 2))
	out := tb.scan(t, func(in *dynamodb.ScanInput) {
		in.FilterExpression, in.ExpressionAttributeValues = aws.String("begins_with(pk, :p) AND sk = :s"), item(":p", "a", ":s", 2)
	})
	wantItems(t, "filtered", out.Items, []attributes{item("pk", "a", "sk", 2)})
}

// An index is scanned like a table, and holds only the items that have its key.
func scanIndex(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:S", global("byG", "g:S", "KEYS_ONLY"), local("byL", "pk:S l:N", "ALL"))
	tb.put(t, item("pk", "a", "sk", "1", "g", "x", "v", 1), item("pk", "b", "sk", "1", "l", 5), item("pk", "c", "sk", "1"))
	tb.awaitIndex(t, "byG", 1)
	wantItems(t, "byG", tb.scanAll(t, "byG"), []attributes{item("pk", "a", "sk", "1", "g", "x")})
	wantItems(t, "byL", tb.scanAll(t, "byL"), []attributes{item("pk", "b", "sk", "1", "l", 5)})
}

// Pages and segments of an index return each entry once.
func scanIndexPages(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N", global("byG", "g:N", "ALL"))
	var items []attributes
	for n := range 30 {
		items = append(items, item("pk", n, "g", n%4))
	}
	tb.load(t, items)
	tb.awaitIndex(t, "byG", 30)
	whole := sorted(column(tb.scanAll(t, "byG"), "pk"))
	var paged []attributes
	for segment := range int32(3) {
		paged = append(paged, slices.Concat(tb.scanPages(t, func(in *dynamodb.ScanInput) {
			in.IndexName, in.Limit = aws.String("byG"), aws.Int32(4)
			in.Segment, in.TotalSegments = aws.Int32(segment), aws.Int32(3)
		})...)...)
	}
	if got := sorted(column(paged, "pk")); got != whole {
		t.Errorf("got %s\nwant %s", got, whole)
	}
}

func scanSegmentsRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S")
	tb.refuse(t, "Scan", `{"Segment":1}`, validation,
		"The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	tb.refuse(t, "Scan", `{"TotalSegments":2}`, validation,
		"The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	tb.refuse(t, "Scan", `{"Segment":2,"TotalSegments":2}`, validation,
		"The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than TotalSegments: 2")
	tb.refuse(t, "Scan", `{"Segment":-1,"TotalSegments":2}`, validation,
		"1 validation error detected: Value '-1' at 'segment' failed to satisfy constraint: Member must have value greater than or equal to 0")
	tb.refuse(t, "Scan", `{"Segment":0,"TotalSegments":1000001}`, validation,
		"1 validation error detected: Value '1000001' at 'totalSegments' failed to satisfy constraint: Member must have value less than or equal to 1000000")

	// A start key belongs to one segment; the others refuse it.
	tb.put(t, item("pk", "a"))
	refused := 0
	for segment := range int32(4) {
		_, err := e.DB.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tb.name, Segment: &segment, TotalSegments: aws.Int32(4), ExclusiveStartKey: item("pk", "a")})
		if err != nil {
			wantError(t, err, validation, fmt.Sprintf("The provided starting key is invalid: Invalid ExclusiveStartKey. "+
				"Please use ExclusiveStartKey with correct Segment. TotalSegments: 4 Segment: %d", segment))
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("%d of 4 segments refused the start key, want 3", refused)
	}
}

func scanRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", global("byG", "g:S", "KEYS_ONLY"))
	tb.refuse(t, "Scan", `{"Limit":0}`, validation,
		"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	tb.refuse(t, "Scan", `{"IndexName":"none"}`, validation, "The table does not have the specified index: none")
	tb.refuse(t, "Scan", `{"IndexName":"byG","ConsistentRead":true}`, validation, "Consistent reads are not supported on global secondary indexes")
	tb.refuse(t, "Scan", `{"IndexName":"byG","Select":"ALL_ATTRIBUTES"}`, validation,
		invalid+"Select type ALL_ATTRIBUTES is not supported for global secondary index byG because its projection type is not ALL")
	tb.refuse(t, "Scan", `{"Select":"SPECIFIC_ATTRIBUTES"}`, validation,
		"Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	tb.refuse(t, "Scan", `{"Select":"ALL_PROJECTED_ATTRIBUTES"}`, validation, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	tb.refuse(t, "Scan", `{"ExclusiveStartKey":{"pk":{"N":"1"}}}`, validation,
		"The provided starting key is invalid: The provided key element does not match the schema")
	e.refuse(t, "Scan", `{"TableName":"no-such-table"}`, notFound, "Requested resource not found")
	_, err := e.DB.Scan(t.Context(), &dynamodb.ScanInput{TableName: &tb.name, Select: types.Select("SOME")})
	wantError(t, err, validation,
		"1 validation error detected: Value 'SOME' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]")
}
