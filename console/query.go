package console

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// query is the choice of items on a page, as its URL has it.
type query struct {
	table      *table
	index      *index   // nil: the table itself
	keys       []string // key attributes of the table or index: the partition key first
	partition  int      // the number of partition key attributes
	values     []string // of the key attributes
	operators  []string // of the key attributes
	second     string   // of BETWEEN
	filters    []filter
	projection []string
	descending bool
	limit      int32
	start      attr.Item
	counting   bool // only the number of items
}

// filter is a condition on an attribute. second is the end of BETWEEN.
type filter struct{ name, operator, kind, value, second string }

const (
	filtersMost    = 3
	projectionMost = 100
	pageDefault    = 50 // items of a page
	pageMost       = 1_000
)

// operators are the comparisons of keys and filters.
var operators = []option{{"=", "="}, {"<>", "≠"}, {"<", "<"}, {"<=", "≤"}, {">", ">"}, {">=", "≥"}, {"begins_with", "begins with"}, {"contains", "contains"}, {"exists", "exists"}, {"missing", "is missing"}}

// sortOperators are the comparisons that a Query accepts for a sort key.
var sortOperators = []option{{"=", "="}, {"<", "<"}, {"<=", "≤"}, {">", ">"}, {">=", "≥"}, {"between", "between"}, {"begins_with", "begins with"}}

// readQuery returns the query in a URL.
func readQuery(t *table, f form) (*query, error) {
	q := &query{table: t, limit: pageDefault}
	schema := t.KeySchema
	if name := f.get("index"); name != "" {
		if q.index = t.index(name); q.index == nil {
			return nil, &pageError{http.StatusNotFound, fmt.Sprintf("The table has no index %q.", name)}
		}
		schema = q.index.schema
	}
	for _, e := range schema {
		if e.KeyType == types.KeyTypeHash {
			q.partition++
		}
	}
	q.keys = keysOf(schema)
	for i := range q.keys {
		n := strconv.Itoa(i)
		q.values = append(q.values, f.values.Get("k"+n))
		q.operators = append(q.operators, f.get("o"+n))
	}
	q.second = f.values.Get("second")
	for i := range filtersMost {
		n := strconv.Itoa(i)
		if name := f.values.Get("f" + n); name != "" {
			q.filters = append(q.filters, filter{name, f.get("fo" + n), f.get("ft" + n), f.values.Get("fv" + n), ""})
		}
	}
	for _, name := range strings.Split(f.get("projection"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			q.projection = append(q.projection, name)
		}
	}
	if len(q.projection) > projectionMost {
		return nil, &pageError{http.StatusBadRequest, fmt.Sprintf("A projection names at most %d attributes. Leave it empty to read all.", projectionMost)}
	}
	q.descending = f.get("order") == "down"
	if text := f.get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > pageMost {
			return nil, &pageError{http.StatusBadRequest, fmt.Sprintf("A page has 1 to %d items.", pageMost)}
		}
		q.limit = int32(n)
	}
	if text := f.get("start"); text != "" {
		start, err := transfer.ReadKey([]byte(text))
		if err != nil {
			return nil, &pageError{http.StatusBadRequest, "The URL's start is not a key: " + err.Error()}
		}
		q.start = start
	}
	return q, nil
}

// isQuery reports whether all partition key attributes have values. Otherwise it is a Scan.
func (q *query) isQuery() bool {
	for _, v := range q.values[:q.partition] {
		if v == "" {
			return false
		}
	}
	return true
}

// built is a query as expressions.
type built struct {
	key, filter, projection string
	names                   map[string]string
	values                  attr.Item
}

func (b *built) name(name string) string {
	place := "#n" + strconv.Itoa(len(b.names))
	for p, n := range b.names {
		if n == name {
			return p
		}
	}
	b.names[place] = name
	return place
}

// add gives a name a place, and reports whether it had none.
func (b *built) add(name string) bool {
	n := len(b.names)
	b.name(name)
	return len(b.names) > n
}

func (b *built) value(v types.AttributeValue) string {
	place := ":v" + strconv.Itoa(len(b.values))
	b.values[place] = v
	return place
}

// keyConditions returns the conditions on key attributes. Those of a Query end at the first
// attribute without a value.
func (q *query) keyConditions() (all []filter) {
	for i, name := range q.keys {
		switch {
		case q.values[i] == "" && q.isQuery():
			return all
		case q.values[i] == "":
			continue
		}
		f := filter{name, "=", string(q.table.kind(name)), q.values[i], q.second}
		if i >= q.partition {
			f.operator = q.operators[i]
		}
		all = append(all, f)
	}
	return all
}

// build returns the query's expressions.
func (q *query) build() (*built, error) {
	b := &built{names: map[string]string{}, values: attr.Item{}}
	keys, filters := q.keyConditions(), q.filters
	if !q.isQuery() { // a Scan: the known parts of the key filter too
		keys, filters = nil, append(keys, filters...)
	}
	var err error
	if b.key, err = b.conditions(keys); err == nil {
		b.filter, err = b.conditions(filters)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range q.projected() {
		if b.projection != "" {
			b.projection += ", "
		}
		b.projection += b.name(name)
	}
	return b, nil
}

// projected returns the attributes to read, with the keys and the deadline; none: all.
func (q *query) projected() []string {
	if len(q.projection) == 0 {
		return nil
	}
	var all []string
	seen := map[string]bool{}
	for _, name := range append(append(q.table.keys(), q.table.ttl), q.projection...) {
		if name != "" && !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

// conditions returns filters as an expression that is true if all of them are.
func (b *built) conditions(all []filter) (string, error) {
	var parts []string
	for _, f := range all {
		part, err := b.condition(f)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " AND "), nil
}

// condition returns a filter as an expression.
func (b *built) condition(f filter) (string, error) {
	switch f.operator {
	case "exists":
		return "attribute_exists(" + b.name(f.name) + ")", nil
	case "missing":
		return "attribute_not_exists(" + b.name(f.name) + ")", nil
	}
	v, err := valueOf(f.kind, f.value)
	if err != nil {
		return "", wrong(f.name, err)
	}
	switch f.operator {
	case "between":
		to, err := valueOf(f.kind, f.second)
		if err != nil {
			return "", wrong(f.name, err)
		}
		return b.name(f.name) + " BETWEEN " + b.value(v) + " AND " + b.value(to), nil
	case "begins_with", "contains":
		return f.operator + "(" + b.name(f.name) + ", " + b.value(v) + ")", nil
	case "<>", "<", "<=", ">", ">=":
		return b.name(f.name) + " " + f.operator + " " + b.value(v), nil
	}
	return b.name(f.name) + " = " + b.value(v), nil
}

// valueOf returns a value from the text of a field.
func valueOf(kind, text string) (types.AttributeValue, error) {
	switch kind {
	case "N":
		text = strings.TrimSpace(text)
		if _, err := strconv.ParseFloat(text, 64); err != nil && !errors.Is(err, strconv.ErrRange) { // the endpoint judges the range
			return nil, fmt.Errorf("%q is not a number", clip(text, cellMost))
		}
		return attr.N(text), nil
	case "B":
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%q is not base64", clip(text, cellMost))
		}
		return attr.B(b), nil
	case "BOOL":
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true":
			return attr.Bool(true), nil
		case "false":
			return attr.Bool(false), nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", clip(text, cellMost))
	}
	return attr.S(text), nil
}

// wrong returns the error of a field's value.
func wrong(name string, err error) error {
	return &pageError{http.StatusBadRequest, fmt.Sprintf("The value of %q: %s.", name, err)}
}

// found is a page of items.
type found struct {
	items    []attr.Item
	next     attr.Item // nil: the last page
	matched  int32
	scanned  int32
	consumed float64
	request  request
}

// run asks the endpoint for a page of items.
func (q *query) run(ctx context.Context, db *dynamodb.Client) (*found, error) {
	b, err := q.build()
	if err != nil {
		return nil, err
	}
	name, index := q.table.name(), ""
	if q.index != nil {
		index = q.index.name
	}
	f := &found{request: request{operation: "Scan"}}
	f.request.add("TableName", name)
	f.request.add("IndexName", index)
	if !q.isQuery() {
		in := &dynamodb.ScanInput{
			TableName: &name, IndexName: pointer(index), FilterExpression: pointer(b.filter), ProjectionExpression: pointer(b.projection),
			ExpressionAttributeNames: orNil(b.names), ExpressionAttributeValues: orNil(b.values),
			Limit: &q.limit, ExclusiveStartKey: orNil(q.start), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}
		if q.counting {
			in.Select = types.SelectCount
		}
		out, err := db.Scan(ctx, in)
		if err != nil {
			return nil, err
		}
		f.items, f.next, f.matched, f.scanned, f.consumed = asItems(out.Items), out.LastEvaluatedKey, out.Count, out.ScannedCount, unitsOf(out.ConsumedCapacity)
	} else {
		f.request.operation = "Query"
		f.request.add("KeyConditionExpression", b.key)
		in := &dynamodb.QueryInput{
			TableName: &name, IndexName: pointer(index), KeyConditionExpression: &b.key, FilterExpression: pointer(b.filter), ProjectionExpression: pointer(b.projection),
			ExpressionAttributeNames: orNil(b.names), ExpressionAttributeValues: orNil(b.values),
			Limit: &q.limit, ExclusiveStartKey: orNil(q.start), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}
		if q.descending {
			in.ScanIndexForward = aws.Bool(false)
			f.request.add("ScanIndexForward", false)
		}
		if q.counting {
			in.Select = types.SelectCount
		}
		out, err := db.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		f.items, f.next, f.matched, f.scanned, f.consumed = asItems(out.Items), out.LastEvaluatedKey, out.Count, out.ScannedCount, unitsOf(out.ConsumedCapacity)
	}
	f.request.add("FilterExpression", b.filter)
	f.request.add("ProjectionExpression", b.projection)
	f.request.add("ExpressionAttributeNames", b.names)
	f.request.add("ExpressionAttributeValues", b.values)
	f.request.add("ExclusiveStartKey", q.start)
	f.request.add("Limit", q.limit)
	return f, nil
}

func asItems(all []map[string]types.AttributeValue) []attr.Item {
	items := make([]attr.Item, len(all))
	copy(items, all)
	return items
}

func unitsOf(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

// orNil returns nil for an empty map: the API refuses those.
func orNil[M ~map[K]V, K comparable, V any](m M) map[K]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

// nextPage returns the URL of the page after this one.
func (f *found) nextPage(u *url.URL) string {
	return urlWith(u, url.Values{"start": {string(transfer.AppendItem(nil, f.next))}})
}
