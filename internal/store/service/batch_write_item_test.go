package service

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

func putRequest(text string) WriteRequest {
	a := arg(text)
	return WriteRequest{Put: &a}
}

func deleteRequest(text string) WriteRequest {
	a := arg(text)
	return WriteRequest{Delete: &a}
}

func TestBatchWriteItem(t *testing.T) {
	d := open(t)
	table, music := d.counters(), d.music()
	d.put(table, `{"id":{"S":"a"}}`)
	out, err := d.BatchWriteItem(ctx, &BatchWriteItemInput{
		RequestItems: []BatchWriteTable{
			{Table: table, Requests: []WriteRequest{deleteRequest(`{"id":{"S":"a"}}`), putRequest(`{"id":{"S":"b"}}`)}},
			{Table: music, Requests: []WriteRequest{putRequest(`{"artist":{"S":"x"},"song":{"S":"1"}}`), putRequest(`{"artist":{"S":"x"},"song":{"S":"2"}}`)}},
		},
		ReturnConsumedCapacity: Some("TOTAL"), ReturnItemCollectionMetrics: Some("SIZE"),
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "deleted", d.get(table, `{"id":{"S":"a"}}`), "(none)")
	equal(t, "put", d.get(table, `{"id":{"S":"b"}}`), `{"id":{"S":"b"}}`)
	equal(t, "units", fmt.Sprint(out.Capacity[0].Units, out.Capacity[1].Units), "2 2")
	equal(t, "collections, each once", fmt.Sprint(len(out.Collections), len(out.Collections[0].Metrics)), "1 1")
}

func TestBatchWriteItemValidation(t *testing.T) {
	d := open(t)
	table := d.counters()
	var many []WriteRequest
	for i := range 26 {
		many = append(many, putRequest(fmt.Sprintf(`{"id":{"S":"k%d"}}`, i)))
	}
	a := arg(`{"id":{"S":"a"}}`)
	tests := []struct {
		about  string
		tables []BatchWriteTable
		want   string
	}{
		{"absent", nil, "The requestItems parameter is required for BatchWriteItem"},
		{"no requests", []BatchWriteTable{{Table: table}},
			"1 validation error detected: Value '{Counters=…}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: " +
				"[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"},
		{"too many for one table", []BatchWriteTable{{Table: table, Requests: many}},
			"1 validation error detected: Value '{Counters=…}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: " +
				"[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"},
		{"too many together", []BatchWriteTable{{Table: table, Requests: many[:20]}, {Table: "other", Requests: many[:6]}},
			"Too many items requested for the BatchWriteItem call"},
		{"the same twice", []BatchWriteTable{{Table: table, Requests: []WriteRequest{{Put: &a}, {Delete: &a}}}},
			"Provided list of item keys contains duplicates"},
		{"put and delete", []BatchWriteTable{{Table: table, Requests: []WriteRequest{{Put: &a, Delete: &a}}}},
			"Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"},
		{"key of wrong type", []BatchWriteTable{{Table: table, Requests: []WriteRequest{putRequest(`{"id":{"N":"1"}}`)}}},
			"The provided key element does not match the schema"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			_, err := d.BatchWriteItem(ctx, &BatchWriteItemInput{RequestItems: tt.tables})
			invalidRequest(t, err, tt.want)
		})
	}
	_, err := d.BatchWriteItem(ctx, &BatchWriteItemInput{RequestItems: []BatchWriteTable{{Table: "none", Requests: many[:1]}}})
	refused(t, err, dynamo.CodeResourceNotFound, "Requested resource not found")
	out, err := d.Scan(ctx, &ScanInput{TableName: Some(table)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "items that refused requests left", out.Count, 0)
}
