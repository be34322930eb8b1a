package service

import (
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func TestGetItemProjection(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"m":{"M":{"x":{"N":"1"},"y":{"N":"2"}}},"n":{"N":"1"}}`)
	tests := []struct{ projection, want string }{
		{"n", `{"n":{"N":"1"}}`},
		{"m.y, id", `{"id":{"S":"a"},"m":{"M":{"y":{"N":"2"}}}}`},
		{"absent", `{}`},
	}
	for _, tt := range tests {
		out, err := d.GetItem(ctx, &GetItemInput{TableName: Some(table), Key: arg(`{"id":{"S":"a"}}`), Projection: Some(tt.projection)})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, tt.projection, out.Item.String(), tt.want)
	}
}

func TestGetItemMissing(t *testing.T) {
	d := open(t)
	out, err := d.GetItem(ctx, &GetItemInput{
		TableName: Some(d.counters()), Key: arg(`{"id":{"S":"a"}}`), Projection: Some("n"), ReturnConsumedCapacity: Some("TOTAL"),
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "no item", out.Item == nil, true)
	equal(t, "looking costs half a unit", out.Capacity.Units, 0.5)
}

// At its deadline an item is gone for every kind of access, though the reaper has not removed it.
func TestExpiredItemsAreGone(t *testing.T) {
	d := open(t)
	table := d.counters()
	if _, err := d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some(table), Present: true, Enabled: Some(true), Attribute: Some("ttl")}); err != nil {
		t.Fatal(err)
	}
	text := `{"id":{"S":"a"},"ttl":{"N":"1767225660.5"}}` // 60.5 s after the epoch of tests
	d.put(table, text)
	advance := func(step time.Duration) {
		t.Helper()
		if err := d.clock.Advance(step); err != nil {
			t.Fatal(err)
		}
	}
	advance(60*time.Second + 499*time.Millisecond)
	equal(t, "a millisecond before", d.get(table, `{"id":{"S":"a"}}`), text)
	advance(time.Millisecond)
	equal(t, "at the deadline", d.get(table, `{"id":{"S":"a"}}`), "(none)")
	_, err := d.DeleteItem(ctx, &WriteInput{
		TableName: Some(table), Item: arg(`{"id":{"S":"a"}}`), Condition: Some("attribute_exists(id)"), ReturnValuesOnConditionFail: Some("ALL_OLD"),
	})
	refused(t, err, dynamo.CodeConditionalCheckFailed, "The conditional request failed")
	equal(t, "item in error", err.(*dynamo.Error).Item == nil, true)
}

func TestGetItemValidation(t *testing.T) {
	d := open(t)
	table := d.counters()
	tests := []struct {
		about string
		in    GetItemInput
		want  string
	}{
		{"nothing", GetItemInput{},
			"2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; " +
				"Value null at 'key' failed to satisfy constraint: Member must not be null"},
		{"empty table name", GetItemInput{TableName: Some(""), Key: arg(`{}`)},
			"1 validation error detected: Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"old and new", GetItemInput{TableName: Some(table), Key: arg(`{}`), Projection: Some("a"), Legacy: Legacy{AttributesToGet: []string{"a"}}},
			"Can not use both expression and non-expression parameters in the same request: " +
				"Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"},
		{"undefined name", GetItemInput{TableName: Some(table), Key: arg(`{"id":{"S":"a"}}`), Projection: Some("#a")},
			"Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; attribute name: #a"},
		{"overlap", GetItemInput{TableName: Some(table), Key: arg(`{"id":{"S":"a"}}`), Projection: Some("a, a.b")},
			"Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a, b]"},
		{"empty key", GetItemInput{TableName: Some(table), Key: arg(`{}`)}, "The provided key element does not match the schema"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.GetItem(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
}
