package guard

import (
	"encoding/json"
	"sync"
	"sync/atomic"
)

// streamQuirks are about streams.
func streamQuirks() []quirk {
	var asked sync.Map // iterators
	var reads atomic.Int64
	records := func(change func(record members)) func(c *exchange) {
		return func(c *exchange) {
			for _, r := range objects(c.out, "Records") {
				change(r)
			}
		}
	}
	return []quirk{
		{name: "empty pages of records", source: "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetRecords.html", changes: func(c *exchange) {
			if c.operation != "GetRecords" || c.errorOf() != "" {
				return
			}
			// Not each second page: readers that take turns could get the same half forever.
			if _, again := asked.LoadOrStore(c.in["ShardIterator"], true); !again {
				c.out["Records"], c.out["NextShardIterator"] = []any{}, c.in["ShardIterator"]
			}
		}},
		{name: "a list of shards in pages", source: "https://github.com/scylladb/scylladb/issues/13080 (Alternator has thousands)", refuses: func(c *exchange) string {
			if c.operation == "DescribeStream" {
				c.in["Limit"] = json.Number("1")
			}
			return ""
		}},
		{name: "iterators that expire", source: "made up: servers that keep them for a moment", refuses: func(c *exchange) string {
			if c.operation == "GetRecords" && reads.Add(1)%4 == 0 {
				return "ExpiredIteratorException"
			}
			return ""
		}},
		{name: "records without a time", source: "made up: ApproximateCreationDateTime is optional in the API", changes: records(func(r members) {
			delete(object(r, "dynamodb"), "ApproximateCreationDateTime")
		})},
		{name: "records without an old image", source: "made up: an emulator that keeps only new ones", changes: records(func(r members) { delete(object(r, "dynamodb"), "OldImage") })},
		{name: "records with little else", source: "made up: only what a reader cannot do without", changes: records(func(r members) {
			for _, name := range []string{"eventID", "eventName", "eventSource", "eventVersion", "awsRegion", "userIdentity"} {
				delete(r, name)
			}
			delete(object(r, "dynamodb"), "SizeBytes")
			delete(object(r, "dynamodb"), "StreamViewType")
		})},
		{name: "replacements in two records", source: "https://github.com/scylladb/scylladb/issues/6930; made up: the second has an old image", changes: func(c *exchange) {
			c.splitReplacements(true)
		}},
	}
}

// splitReplacements shows each replacement of an item as a removal and a modification. old is
// whether the modification has an old image.
func (c *exchange) splitReplacements(old bool) {
	if c.operation != "GetRecords" || c.errorOf() != "" {
		return
	}
	all := []any{}
	for _, r := range objects(c.out, "Records") {
		change := object(r, "dynamodb")
		if change["OldImage"] != nil && change["NewImage"] != nil {
			all = append(all, members{"eventID": "first", "eventName": "REMOVE", "dynamodb": members{
				"Keys": change["Keys"], "OldImage": change["OldImage"], "SequenceNumber": change["SequenceNumber"], "StreamViewType": "NEW_AND_OLD_IMAGES",
			}})
			if !old {
				delete(change, "OldImage")
			}
		}
		all = append(all, r)
	}
	c.out["Records"] = all
}
