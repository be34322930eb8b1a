package service

import (
	"slices"
	"testing"
)

// TestLeadingKeysOfComposites: policies see every attribute of an index's partition key, and none of
// its sort key.
func TestLeadingKeysOfComposites(t *testing.T) {
	d := open(t)
	in := keyedTable("HASH a, HASH b, RANGE c")
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	query := &QueryInput{
		TableName: Some("Keyed"), IndexName: Some("byKey"), KeyCondition: Some("c = :c AND b = :b AND a = :a"),
		Values: vals(`{":a":{"S":"x"},":b":{"S":"y"},":c":{"S":"z"}}`),
	}
	got := d.Accesses("Query", query, Facts{LeadingKeys: true, Attributes: true})[0]
	if want := []string{"x", "y"}; !slices.Equal(got.LeadingKeys, want) {
		t.Errorf("leading keys %q, want %q", got.LeadingKeys, want)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(got.Attributes, want) {
		t.Errorf("attributes %q, want %q", got.Attributes, want)
	}
}
