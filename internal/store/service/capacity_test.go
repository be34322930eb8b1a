package service

import (
	"fmt"
	"strings"
	"testing"
)

// describe returns a capacity as text: all units, the table's, each index's.
func (c *Capacity) describe() string {
	return strings.TrimSpace(fmt.Sprint(c.Units, " table ", c.Table.Units, unitsOf(c.Local), unitsOf(c.Global)))
}

func unitsOf(parts map[string]CapacityPart) string {
	var b strings.Builder
	for name, p := range parts {
		fmt.Fprint(&b, " ", name, " ", p.Units)
	}
	return b.String()
}

// Each step changes one item of the music table. Its entries in the indexes appear, change, move or
// disappear.
func TestWriteCapacity(t *testing.T) {
	d := open(t)
	table := d.music()
	kb := strings.Repeat("x", 1024)
	steps := []struct{ about, attributes, want string }{
		{"in no index", ``, "1 table 1"},
		{"into the local one", `,"year":{"N":"1"}`, "2 table 1 byYear 1"},
		{"into the global one, too", `,"year":{"N":"1"},"genre":{"S":"g"}`, "2 table 1 byGenre 1"},
		{"nothing that is projected changes", `,"year":{"N":"1"},"genre":{"S":"g"},"notes":{"S":"n"}`, "1 table 1"},
		{"a projected attribute changes", `,"year":{"N":"1"},"genre":{"S":"g"},"label":{"S":"l"}`, "2 table 1 byGenre 1"},
		{"a key of both changes", `,"year":{"N":"2"},"genre":{"S":"g"},"label":{"S":"l"}`, "5 table 1 byYear 2 byGenre 2"},
		{"it grows", `,"year":{"N":"2"},"genre":{"S":"g"},"label":{"S":"` + kb + `"}`, "4 table 2 byGenre 2"},
		{"the larger of two sizes counts", `,"year":{"N":"2"}`, "4 table 2 byGenre 2"},
		{"out of the last", ``, "2 table 1 byYear 1"},
	}
	for _, s := range steps {
		out, err := d.PutItem(ctx, &WriteInput{
			TableName: Some(table), Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}` + s.attributes + `}`), ReturnConsumedCapacity: Some("INDEXES"),
		})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, s.about, out.Capacity.describe(), s.want)
	}
	gone, err := d.DeleteItem(ctx, &WriteInput{TableName: Some(table), Item: arg(`{"artist":{"S":"z"},"song":{"S":"b"}}`), ReturnConsumedCapacity: Some("TOTAL")})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "deleting nothing", fmt.Sprint(gone.Capacity.Units, gone.Capacity.Detail), "1 false")
}

// 40 items of about 1.5 KB are 60 KB: 15 units for a consistent read and half as many for an
// eventually consistent one, whether or not a filter drops items.
func TestReadCapacity(t *testing.T) {
	d := open(t)
	table := d.music()
	for i := range 40 {
		d.put(table, fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"s%02d"},"year":{"N":"%d"},"x":{"S":"%s"}}`, i, i+1, strings.Repeat("x", 1500)))
	}
	key, values := Some("artist = :a"), vals(`{":a":{"S":"a"}}`)
	tests := []struct {
		about string
		in    QueryInput
		want  string
	}{
		{"strong", QueryInput{ConsistentRead: Some(true)}, "15 table 15"},
		{"eventual", QueryInput{}, "7.5 table 7.5"},
		{"filtered", QueryInput{Filter: Some("x = :a")}, "7.5 table 7.5"},
		{"counted", QueryInput{Select: Some("COUNT")}, "7.5 table 7.5"},
		{"by the entries of the index", QueryInput{IndexName: Some("byYear")}, "0.5 table 0 byYear 0.5"},
		{"fetched, each by itself", QueryInput{IndexName: Some("byYear"), Select: Some("ALL_ATTRIBUTES")}, "20.5 table 20 byYear 0.5"},
	}
	for _, tt := range tests {
		tt.in.TableName, tt.in.KeyCondition, tt.in.Values, tt.in.ReturnConsumedCapacity = Some(table), key, values, Some("INDEXES")
		out, err := d.Query(ctx, &tt.in)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, tt.about, out.Capacity.describe(), tt.want)
	}
	got, err := d.GetItem(ctx, &GetItemInput{
		TableName: Some(table), Key: arg(`{"artist":{"S":"a"},"song":{"S":"s01"}}`), ConsistentRead: Some(true),
		Projection: Some("song"), ReturnConsumedCapacity: Some("TOTAL"),
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a projection does not make it cheaper", got.Capacity.Units, 1)
}
