package service

import (
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// value returns the attribute value of a JSON text.
func value(text string) dynamo.Value { return item(`{"v":` + text + `}`).Get("v") }

func condition(operator string, values ...string) LegacyCondition {
	c := LegacyCondition{Operator: Some(operator)}
	for _, v := range values {
		c.List = append(c.List, value(v))
	}
	return c
}

func TestLegacyQuery(t *testing.T) {
	d := open(t)
	table := d.songs()
	artist := condition("EQ", `{"S":"a"}`)
	tests := []struct {
		about string
		in    QueryInput
		want  string
	}{
		{"key", QueryInput{Legacy: Legacy{KeyConditions: map[string]LegacyCondition{"artist": artist}}}, "0123456789"},
		{"range", QueryInput{Legacy: Legacy{KeyConditions: map[string]LegacyCondition{"artist": artist, "song": condition("BETWEEN", `{"S":"s2"}`, `{"S":"s4"}`)}}}, "234"},
		{"index", QueryInput{IndexName: Some("byYear"), Legacy: Legacy{KeyConditions: map[string]LegacyCondition{"artist": artist, "year": condition("GT", `{"N":"2007"}`)}}}, "89"},
		{"filter", QueryInput{Legacy: Legacy{
			KeyConditions:       map[string]LegacyCondition{"artist": artist},
			QueryFilter:         map[string]LegacyCondition{"genre": condition("EQ", `{"S":"jazz"}`), "label": condition("EQ", `{"S":"l4"}`)},
			ConditionalOperator: Some("OR"), AttributesToGet: []string{"song"},
		}}, "134579"},
		{"with a filter expression", QueryInput{Filter: Some("label = :l"), Values: vals(`{":l":{"S":"l4"}}`),
			Legacy: Legacy{KeyConditions: map[string]LegacyCondition{"artist": artist}}}, "4"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			tt.in.TableName = Some(table)
			out, err := d.Query(ctx, &tt.in)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "songs", names(out), tt.want)
		})
	}
}

func TestLegacyWrites(t *testing.T) {
	d := open(t)
	table := Some(d.counters())
	key := arg(`{"id":{"S":"a"}}`)
	put := WriteInput{TableName: table, Item: key, Legacy: Legacy{Expected: map[string]ExpectedValue{"id": {Exists: Some(false)}}}}
	if _, err := d.PutItem(ctx, &put); err != nil {
		t.Fatal(err)
	}
	_, err := d.PutItem(ctx, &put)
	refused(t, err, dynamo.CodeConditionalCheckFailed, "The conditional request failed")

	out, err := d.UpdateItem(ctx, &WriteInput{TableName: table, Item: key, ReturnValues: Some("ALL_NEW"), Legacy: Legacy{AttributeUpdates: map[string]AttributeUpdate{
		"n": {Action: Some("ADD"), Value: value(`{"N":"3"}`)},
		"x": {Value: value(`{"S":"y"}`)},
		"z": {Action: Some("DELETE")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "updated", out.Attributes.String(), `{"id":{"S":"a"},"n":{"N":"3"},"x":{"S":"y"}}`)

	got, err := d.GetItem(ctx, &GetItemInput{TableName: table, Key: key, Legacy: Legacy{AttributesToGet: []string{"n"}}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "attributes", got.Item.String(), `{"n":{"N":"3"}}`)
}

func TestLegacyValidation(t *testing.T) {
	d := open(t)
	table := Some(d.music())
	const p = "One or more parameter values were invalid: "
	put := func(l Legacy) error {
		_, err := d.PutItem(ctx, &WriteInput{TableName: table, Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`), Legacy: l})
		return err
	}
	update := func(l Legacy) error {
		_, err := d.UpdateItem(ctx, &WriteInput{TableName: table, Item: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`), Legacy: l})
		return err
	}
	query := func(l Legacy) error {
		_, err := d.Query(ctx, &QueryInput{TableName: table, Legacy: l})
		return err
	}
	get := func(names []string) error {
		_, err := d.GetItem(ctx, &GetItemInput{TableName: table, Key: arg(`{"artist":{"S":"a"},"song":{"S":"b"}}`), Legacy: Legacy{AttributesToGet: names}})
		return err
	}
	artist := condition("EQ", `{"S":"a"}`)
	tests := []struct {
		err  error
		want string
	}{
		{put(Legacy{Expected: map[string]ExpectedValue{"b": {}}}),
			"1 validation error detected: " + p + "Value must be provided when Exists is null for Attribute: b"},
		{put(Legacy{Expected: map[string]ExpectedValue{"b": {Operator: Some("hi")}}, ConditionalOperator: Some("XOR")}),
			"2 validation errors detected: Value 'hi' at 'expected.b.member.comparisonOperator' failed to satisfy constraint: Member must satisfy enum value set: " +
				"[IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]; " +
				"Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: Member must satisfy enum value set: [OR, AND]"},
		{put(Legacy{ConditionalOperator: Some("OR")}), "1 validation error detected: " + p + "ConditionalOperator cannot be used without Filter or Expected"},
		{update(Legacy{AttributeUpdates: map[string]AttributeUpdate{"x": {}}}),
			"1 validation error detected: " + p + "Only DELETE action is allowed when no attribute value is specified"},
		{update(Legacy{AttributeUpdates: map[string]AttributeUpdate{"song": {Value: value(`{"S":"c"}`)}}}),
			p + "Cannot update attribute song. This attribute is part of the key"},
		{update(Legacy{AttributeUpdates: map[string]AttributeUpdate{"year": {Value: value(`{"S":"c"}`)}}}),
			p + "Type mismatch for Index Key year Expected: N Actual: S IndexName: byGenre"},
		{query(Legacy{KeyConditions: map[string]LegacyCondition{}}), "Conditions can be of length 1 or 2 only"},
		{query(Legacy{KeyConditions: map[string]LegacyCondition{"artist": {}}}),
			"1 validation error detected: Value null at 'keyConditions.artist.member.comparisonOperator' failed to satisfy constraint: Member must not be null"},
		{query(Legacy{KeyConditions: map[string]LegacyCondition{"artist": artist}, QueryFilter: map[string]LegacyCondition{"song": artist}}),
			"QueryFilter can only contain non-primary key attributes: Primary key attribute: song"},
		{get([]string{}), "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{get([]string{"a", "a"}), p + "Duplicate value in attribute name: a"},
	}
	for _, tt := range tests {
		invalidRequest(t, tt.err, tt.want)
	}
	invalidRequest(t, query(Legacy{}), "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
}
