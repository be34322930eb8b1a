package service

import (
	"fmt"
	"strings"
	"testing"
)

func TestBatchGetItem(t *testing.T) {
	d := open(t)
	table, music := d.counters(), d.songs()
	d.put(table, `{"id":{"S":"a"},"n":{"N":"1"}}`)
	d.put(table, `{"id":{"S":"b"},"n":{"N":"2"}}`)
	out, err := d.BatchGetItem(ctx, &BatchGetItemInput{
		RequestItems: []BatchGetTable{
			{Table: table, Keys: []ItemArg{arg(`{"id":{"S":"b"}}`), arg(`{"id":{"S":"none"}}`), arg(`{"id":{"S":"a"}}`)}, ConsistentRead: Some(true)},
			{Table: music, Keys: []ItemArg{arg(`{"artist":{"S":"a"},"song":{"S":"s1"}}`)}, Projection: Some("label")},
		},
		ReturnConsumedCapacity: Some("TOTAL"),
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "first table", lines(out.Responses[0].Items), `{"id":{"S":"b"},"n":{"N":"2"}}`+"\n"+`{"id":{"S":"a"},"n":{"N":"1"}}`+"\n")
	equal(t, "second table", lines(out.Responses[1].Items), `{"label":{"S":"l1"}}`+"\n")
	equal(t, "units", fmt.Sprint(out.Capacity[0].Units, out.Capacity[1].Units), "3 0.5")
	equal(t, "unprocessed", len(out.Unprocessed), 0)
}

// An answer holds 16 MB; the remaining keys are returned as unprocessed.
func TestBatchGetItemUnprocessed(t *testing.T) {
	d := open(t)
	table := d.counters()
	in := BatchGetTable{Table: table, ConsistentRead: Some(true)}
	for i := range 50 {
		d.put(table, fmt.Sprintf(`{"id":{"S":"k%d"},"x":{"S":"%s"}}`, i, strings.Repeat("x", 390*1024)))
		in.Keys = append(in.Keys, arg(fmt.Sprintf(`{"id":{"S":"k%d"}}`, i)))
	}
	out, err := d.BatchGetItem(ctx, &BatchGetItemInput{RequestItems: []BatchGetTable{in}})
	if err != nil {
		t.Fatal(err)
	}
	unread := out.Unprocessed[0]
	equal(t, "answered and left", fmt.Sprint(len(out.Responses[0].Items), len(unread.Keys), unread.ConsistentRead.V), "42 8 true")
	equal(t, "first left", unread.Keys[0].Item.String(), `{"id":{"S":"k42"}}`)
}

func TestBatchGetItemValidation(t *testing.T) {
	d := open(t)
	table := d.counters()
	var many []ItemArg
	for i := range 60 {
		many = append(many, arg(fmt.Sprintf(`{"id":{"S":"k%d"}}`, i)))
	}
	one := []ItemArg{arg(`{"id":{"S":"a"}}`)}
	tests := []struct {
		about  string
		tables []BatchGetTable
		want   string
	}{
		{"absent", nil, "1 validation error detected: Value null at 'requestItems' failed to satisfy constraint: Member must not be null"},
		{"empty", []BatchGetTable{}, "1 validation error detected: Value '{}' at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"no keys", []BatchGetTable{{Table: "abc"}},
			"1 validation error detected: Value null at 'requestItems.abc.member.keys' failed to satisfy constraint: Member must not be null"},
		{"empty keys", []BatchGetTable{{Table: "abc", Keys: []ItemArg{}}},
			"1 validation error detected: Value '[]' at 'requestItems.abc.member.keys' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"the same twice", []BatchGetTable{{Table: table, Keys: append(one, one...)}}, "Provided list of item keys contains duplicates"},
		{"too many together", []BatchGetTable{{Table: table, Keys: many}, {Table: "other", Keys: many}},
			"Too many items requested for the BatchGetItem call"},
		{"old for one, new for another", []BatchGetTable{{Table: table, Keys: one, Projection: Some("a")}, {Table: "other", Keys: one, Legacy: Legacy{AttributesToGet: []string{"a"}}}},
			"Can not use both expression and non-expression parameters in the same request: " +
				"Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"},
		{"wrong key", []BatchGetTable{{Table: table, Keys: []ItemArg{arg(`{"id":{"N":"1"}}`)}}}, "The provided key element does not match the schema"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.BatchGetItem(ctx, &BatchGetItemInput{RequestItems: tt.tables})
			invalidRequest(t, err, tt.want)
		})
	}
}
