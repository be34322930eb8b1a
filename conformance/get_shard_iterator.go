package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var getShardIteratorChecks = []check{
	{"Types", iteratorTypes},
	{"Refused", iteratorRefused},
}

// shardOf returns the ID of the shard that contains a record.
func (tb *table) shardOf(t *testing.T, arn string, sequence string) string {
	t.Helper()
	for _, shard := range tb.shards(t, arn) {
		for _, r := range tb.from(t, arn, *shard.ShardId, streamtypes.ShardIteratorTypeTrimHorizon, "") {
			if *r.Dynamodb.SequenceNumber == sequence {
				return *shard.ShardId
			}
		}
	}
	t.Fatalf("no shard holds record %s", sequence)
	return ""
}

// from returns the records of a shard from a position to its present end.
func (tb *table) from(t *testing.T, arn, shard string, kind streamtypes.ShardIteratorType, sequence string) []streamtypes.Record {
	t.Helper()
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: kind}
	if sequence != "" {
		in.SequenceNumber = &sequence
	}
	out, err := tb.Streams.GetShardIterator(t.Context(), in)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return tb.drain(t, out.ShardIterator)
}

// drain returns the records from an iterator on until a page is empty or the shard ends.
func (tb *table) drain(t *testing.T, iterator *string) (records []streamtypes.Record) {
	t.Helper()
	for iterator != nil {
		page, err := tb.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			t.Fatalf("get records: %v", err)
		}
		if len(page.Records) == 0 {
			break
		}
		records, iterator = append(records, page.Records...), page.NextShardIterator
	}
	return records
}

// Each type of iterator begins at its position.
func iteratorTypes(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	for n := range 4 {
		tb.put(t, item("pk", "a", "sk", n)) // one partition key: all in one shard
	}
	second := aws.ToString(tb.awaitRecords(t, 4)[1].Dynamodb.SequenceNumber)
	shard := tb.shardOf(t, arn, second)
	keys := func(records []streamtypes.Record) string {
		var list []attributes
		for _, r := range records {
			list = append(list, fromStream(r.Dynamodb.Keys))
		}
		return column(list, "sk")
	}
	for kind, want := range map[streamtypes.ShardIteratorType]string{
		streamtypes.ShardIteratorTypeTrimHorizon:         "0 1 2 3",
		streamtypes.ShardIteratorTypeAtSequenceNumber:    "1 2 3",
		streamtypes.ShardIteratorTypeAfterSequenceNumber: "2 3",
	} {
		sequence := second
		if kind == streamtypes.ShardIteratorTypeTrimHorizon {
			sequence = ""
		}
		if got := keys(tb.from(t, arn, shard, kind, sequence)); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	// LATEST returns later records only. (Amazon may begin a little earlier, so only the last
	// record is compared.)
	out, err := e.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: &shard, ShardIteratorType: streamtypes.ShardIteratorTypeLatest})
	if err != nil {
		t.Fatal(err)
	}
	tb.put(t, item("pk", "a", "sk", 9))
	iterator := out.ShardIterator
	var seen []streamtypes.Record
	tb.await(t, "the record after LATEST", func() bool {
		page, err := e.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			t.Fatal(err)
		}
		iterator, seen = page.NextShardIterator, append(seen, page.Records...)
		return len(seen) > 0 && keys(seen[len(seen)-1:]) == "9"
	})
}

func iteratorRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	shard := aws.ToString(tb.describeStream(t, arn).Shards[0].ShardId)
	body := func(arn, shard, rest string) string {
		return `{"StreamArn":"` + arn + `","ShardId":"` + shard + `","ShardIteratorType":` + rest + `}`
	}
	e.refuse(t, "GetShardIterator", body(arn, "shardId-99999999999999999999-ffffffff", `"LATEST"`), notFound, "")
	e.refuse(t, "GetShardIterator", body(tb.arn+"/stream/2015-05-11T21:21:33.291", shard, `"LATEST"`), notFound, "")
	e.refuse(t, "GetShardIterator", body("nonsense", shard, `"LATEST"`), validation, "")
	e.refuse(t, "GetShardIterator", body(arn, "short", `"LATEST"`), validation, "…at 'shardId' failed to satisfy constraint: Member must have length greater than or equal to 28")
	e.refuse(t, "GetShardIterator", body(arn, shard, `"SOMEWHERE"`), validation, "…at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: […]")
	e.refuse(t, "GetShardIterator", body(arn, shard, `"AT_SEQUENCE_NUMBER"`), validation, "")
	e.refuse(t, "GetShardIterator", body(arn, shard, `"AFTER_SEQUENCE_NUMBER"`), validation, "")
}
