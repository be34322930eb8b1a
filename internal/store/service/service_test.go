package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// epoch is the instant at which the clocks of tests are frozen.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// db is a service over a memory engine whose clock is frozen until a test moves it.
type db struct {
	*Service
	t     *testing.T
	clock *clock.Clock
}

var ctx = context.Background()

func open(t *testing.T) *db {
	t.Helper()
	c := clock.NewFrozenAt(epoch)
	d := &db{t: t, clock: c}
	e, err := engine.Open(engine.Options{Clock: c, OnDrop: func(space, name string) { d.NoteDrop(space, name) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	d.Service = New(Options{Engine: e, Region: "eu-west-1", Account: "123456789012"})
	return d
}

// music creates a table with a partition key "artist" (S), a sort key "song" (S), a local index
// "byYear" on "year" (N) that projects keys only, and a global index "byGenre" on "genre" (S),
// "year" that projects "label". It returns the table's name.
func (d *db) music() string {
	d.t.Helper()
	in := musicTable("Music")
	if _, err := d.CreateTable(ctx, &in); err != nil {
		d.t.Fatal(err)
	}
	return "Music"
}

func musicTable(name string) CreateTableInput {
	return CreateTableInput{
		TableName:   Some(name),
		Attributes:  definitions("artist:S", "song:S", "year:N", "genre:S"),
		KeySchema:   keys("artist", "song"),
		BillingMode: Some("PAY_PER_REQUEST"),
		Local:       []IndexSpec{index("byYear", "KEYS_ONLY", "artist", "year")},
		Global:      []IndexSpec{include(index("byGenre", "INCLUDE", "genre", "year"), "label")},
	}
}

// counters creates a table with only a partition key, "id" (S), and returns its name.
func (d *db) counters() string {
	d.t.Helper()
	in := CreateTableInput{
		TableName: Some("Counters"), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST"),
	}
	if _, err := d.CreateTable(ctx, &in); err != nil {
		d.t.Fatal(err)
	}
	return "Counters"
}

func definitions(namesAndTypes ...string) []AttributeDefinition {
	defs := []AttributeDefinition{}
	for _, nt := range namesAndTypes {
		name, typ, _ := strings.Cut(nt, ":")
		defs = append(defs, AttributeDefinition{Name: Some(name), Type: Some(typ)})
	}
	return defs
}

// keys returns a key schema of a partition key and, with two names, a sort key.
func keys(names ...string) []KeySchemaElement {
	schema := []KeySchemaElement{}
	for i, name := range names {
		schema = append(schema, KeySchemaElement{Name: Some(name), Type: Some([]string{"HASH", "RANGE"}[min(i, 1)])})
	}
	return schema
}

func index(name, projection string, key ...string) IndexSpec {
	return IndexSpec{IndexName: Some(name), KeySchema: keys(key...), Projection: ProjectionSpec{Present: true, Type: Some(projection)}}
}

func include(ix IndexSpec, attributes ...string) IndexSpec {
	ix.Projection.NonKey = attributes
	return ix
}

// item returns the item of a JSON text.
func item(text string) dynamo.Item { return arg(text).Item }

// arg returns the item of a JSON text as the wire reads it: with its first error.
func arg(text string) ItemArg {
	out, bad, fatal := dynamo.NewJSON([]byte(text)).AppendItem(nil)
	if fatal != nil {
		panic(fmt.Sprintf("%s: %v", text, fatal))
	}
	return ItemArg{Item: out, Err: bad}
}

// vals returns ExpressionAttributeValues.
func vals(text string) Values {
	v := Values{V: map[string]dynamo.Value{}}
	for name, value := range item(text).All() {
		v.V[string(name)] = value
	}
	return v
}

// put puts an item and fails the test on an error.
func (d *db) put(table, text string) {
	d.t.Helper()
	if _, err := d.PutItem(ctx, &WriteInput{TableName: Some(table), Item: arg(text)}); err != nil {
		d.t.Fatalf("put %s: %v", text, err)
	}
}

// get returns an item by its key, or "(none)".
func (d *db) get(table, key string) string {
	d.t.Helper()
	out, err := d.GetItem(ctx, &GetItemInput{TableName: Some(table), Key: arg(key)})
	if err != nil {
		d.t.Fatalf("get %s: %v", key, err)
	}
	return out.Item.String()
}

func equal[T comparable](t *testing.T, subject string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", subject, got, want)
	}
}

// refused checks that err is the API's, with this code and message. A message that ends in … is a
// prefix.
func refused(t *testing.T, err error, code dynamo.Code, message string) {
	t.Helper()
	var e *dynamo.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v\nwant %s: %s", err, code, message)
		return
	}
	if start, open := strings.CutSuffix(message, "…"); e.Code != code || e.Message != message && !(open && strings.HasPrefix(e.Message, start)) {
		t.Errorf("got  %s: %s\nwant %s: %s", e.Code, e.Message, code, message)
	}
}

// invalidRequest checks that err is a ValidationException with this message.
func invalidRequest(t *testing.T, err error, message string) {
	t.Helper()
	refused(t, err, dynamo.CodeValidation, message)
}

// lines returns items as text, one a line.
func lines(items []dynamo.Item) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintln(&b, it)
	}
	return b.String()
}
