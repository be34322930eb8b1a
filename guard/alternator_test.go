package guard

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The strategies work at a double of ScyllaDB Alternator, except for schedule: EventBridge deletes
// items at Amazon only. This was not verified at a real Alternator. The double has what the
// documentation, the issues and the source of scylladb/scylladb show, by version the worst of it.
func TestAlternator(t *testing.T) {
	t.Parallel() // it waits for deadlines most of the time
	newTrials(t, alternatorQuirks(), manyShards).run()
}

// manyShards makes a stream of more shards than a page of the double's list has: Alternator has the
// number of cores times 256 (scylladb/scylladb#13080).
func manyShards(w *world) {
	withTable(func(in *dynamodb.CreateTableInput) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("mayfly:shards"), Value: aws.String("16")})
	})(w)
}

const alternatorIssue = "https://github.com/scylladb/scylladb/issues/"

func alternatorQuirks() []quirk {
	names := &alternatorNames{}
	quirks := []quirk{
		{name: "headers", source: alternatorIssue + "5039 (no X-Amz-Crc32); scylladb/scylladb#28288 (Server)", changes: func(c *exchange) {
			c.header.Del("X-Amzn-Requestid")
			c.header["Server"] = []string{"Seastar httpd"}
		}},
		{
			name: "no transactions", source: alternatorIssue + "5064; alternator/server.cc: Unsupported operation", refuses: func(c *exchange) string {
				if strings.HasPrefix(c.operation, "Transact") {
					return "UnknownOperationException"
				}
				return ""
			}, options: func(o *Options) { o.Batch = 25 }, logs: "the endpoint has no transactions",
		},
		{name: "descriptions", source: alternatorIssue + "5013 (no ItemCount), 11471 (no IndexStatus); alternator/executor.cc: generate_arn_for_table", changes: describeAlternator},
		{name: "no consumption", source: alternatorIssue + "5068", changes: func(c *exchange) { delete(c.out, "ConsumedCapacity") }},
		{name: "names and numbers of streams", source: "alternator/streams.cc: stream_arn, shard_id, sequence_number", refuses: names.back, changes: names.there},
		{name: "shards in pages", source: "alternator/streams.cc: describe_stream", refuses: func(c *exchange) string {
			if c.operation == "DescribeStream" {
				c.in["Limit"] = json.Number("5")
			}
			return ""
		}},
		{name: "kinds of records", source: alternatorIssue + "6930, 6918, 5060; alternator/streams.cc: get_records", changes: alternatorRecords},
		{name: "late records", source: alternatorIssue + "6929 (10 s by default; here 1 s)", changes: delayRecords},
		{name: "large answers", source: "scylladb/scylladb#29669 (written in chunks)", writes: writeChunks},
	}
	for _, q := range pageQuirks() {
		if strings.HasPrefix(q.source, alternatorIssue) {
			quirks = append(quirks, q)
		}
	}
	quirks = append(quirks, quirk{name: "a fleet", source: "made up: the default", options: func(o *Options) { o.Alone = false }})
	return append(quirks, quirk{name: "schedule", source: "made up: the Scheduler does not know the partition of the ARN", ends: map[Strategy]Code{Schedule: Misconfigured}})
}

// describeAlternator makes a description of a table as Alternator's.
func describeAlternator(c *exchange) {
	for _, d := range []members{object(c.out, "Table"), object(c.out, "TableDescription")} {
		if d == nil {
			continue
		}
		d["TableArn"] = fmt.Sprintf("arn:scylla:alternator:alternator_%[1]s:scylla:table/%[1]s", d["TableName"])
		delete(d, "ItemCount")
		for _, index := range objects(d, "GlobalSecondaryIndexes") {
			delete(index, "IndexStatus")
			delete(index, "ProvisionedThroughput")
			index["IndexArn"] = fmt.Sprintf("%s/index/%s", d["TableArn"], index["IndexName"])
		}
	}
}

// alternatorNames translates names of streams and shards, and sequence numbers.
type alternatorNames struct{ originals sync.Map }

// named are the members with such names.
var named = map[string]func(text string) string{
	"StreamArn": streamArn, "LatestStreamArn": streamArn,
	"ShardId": shardID, "ParentShardId": shardID, "ExclusiveStartShardId": shardID, "LastEvaluatedShardId": shardID,
	"SequenceNumber": sequenceNumber, "StartingSequenceNumber": sequenceNumber, "EndingSequenceNumber": sequenceNumber,
}

func streamArn(text string) string {
	x := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	return "S" + strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:32]}, "-")
}

func shardID(text string) string {
	return fmt.Sprintf("H19a8d3f6c40:%.16x", sha256.Sum256([]byte(text)))
}

// sequenceNumber is of 37 digits, in the same order as the database's.
func sequenceNumber(text string) string {
	return "2580" + strings.Repeat("0", max(33-len(text), 0)) + text
}

func (n *alternatorNames) back(c *exchange) string {
	for name := range named {
		if text, is := c.in[name].(string); is {
			if original, ok := n.originals.Load(text); ok {
				c.in[name] = original
			}
		}
	}
	return ""
}

func (n *alternatorNames) there(c *exchange) { n.translate(c.out) }

func (n *alternatorNames) translate(v any) {
	switch v := v.(type) {
	case members:
		for name, one := range v {
			text, is := one.(string)
			if into := named[name]; is && into != nil {
				v[name] = into(text)
				n.originals.Store(v[name], text)
				continue
			}
			n.translate(one)
		}
	case []any:
		for _, one := range v {
			n.translate(one)
		}
	}
}

// alternatorRecords shows every write as a removal and a modification, and no removal as the TTL's.
func alternatorRecords(c *exchange) {
	if c.operation != "GetRecords" || c.errorOf() != "" {
		return
	}
	all := []any{}
	for _, r := range objects(c.out, "Records") {
		change := object(r, "dynamodb")
		delete(change, "SizeBytes")
		delete(r, "userIdentity")
		delete(r, "eventVersion")
		r["eventSource"], r["awsRegion"], r["eventID"] = "scylladb:alternator", "datacenter1", "E95c00000000000009465693030000011:00007b65"
		if r["eventName"] != "REMOVE" {
			before := members{"Keys": change["Keys"], "SequenceNumber": change["SequenceNumber"], "ApproximateCreationDateTime": change["ApproximateCreationDateTime"]}
			if old := change["OldImage"]; old != nil {
				before["OldImage"] = old
				delete(change, "OldImage")
			}
			all = append(all, members{"eventName": "REMOVE", "eventSource": "scylladb:alternator", "dynamodb": before})
			r["eventName"] = "MODIFY"
		}
		all = append(all, r)
	}
	c.out["Records"] = all
}

// delayRecords hides a page with records of the last second.
func delayRecords(c *exchange) {
	for _, r := range objects(c.out, "Records") {
		at, _ := object(r, "dynamodb")["ApproximateCreationDateTime"].(json.Number)
		if s, err := strconv.ParseFloat(at.String(), 64); err == nil && time.Since(time.Unix(int64(s), 0)) < 2*time.Second {
			c.out["Records"], c.out["NextShardIterator"] = []any{}, c.in["ShardIterator"]
			return
		}
	}
}
