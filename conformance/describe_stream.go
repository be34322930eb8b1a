package conformance

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var describeStreamChecks = []check{
	{"Description", describeStreamDescription},
	{"Pages", describeStreamPages},
	{"AfterDisabling", describeStreamAfterDisabling},
	{"AfterDeletion", describeStreamAfterDeletion},
	{"Refused", describeStreamRefused},
}

// awaitStream waits until the table's latest stream is ENABLED and returns its ARN.
func (tb *table) awaitStream(t *testing.T) string {
	t.Helper()
	arn := aws.ToString(tb.awaitActive(t).LatestStreamArn)
	tb.await(t, "an enabled stream", func() bool { return tb.describeStream(t, arn).StreamStatus == streamtypes.StreamStatusEnabled })
	return arn
}

func (tb *table) describeStream(t *testing.T, arn string) *streamtypes.StreamDescription {
	t.Helper()
	out, err := tb.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		t.Fatalf("describe stream: %v", err)
	}
	return out.StreamDescription
}

// The forms of IDs and sequence numbers, on which clients depend.
var (
	shardID        = regexp.MustCompile(`^shardId-\d{20}-[0-9a-f]{8}$`)
	sequenceNumber = regexp.MustCompile(`^\d{21,40}$`)
	eventID        = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// A new stream has open shards without parents.
func describeStreamDescription(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S sk:N", stream(types.StreamViewTypeOldImage))
	arn := tb.awaitStream(t)
	d := tb.describeStream(t, arn)
	if aws.ToString(d.StreamArn) != arn || aws.ToString(d.TableName) != tb.name || d.StreamViewType != streamtypes.StreamViewTypeOldImage {
		t.Errorf("got %s of %s with %s", aws.ToString(d.StreamArn), aws.ToString(d.TableName), d.StreamViewType)
	}
	if made := aws.ToTime(d.CreationRequestDateTime); made.Before(e.now().Add(-time.Hour)) || made.After(e.now().Add(time.Minute)) {
		t.Errorf("CreationRequestDateTime: %v", made)
	}
	if len(d.KeySchema) != 2 || aws.ToString(d.KeySchema[0].AttributeName) != "pk" || d.KeySchema[1].KeyType != streamtypes.KeyTypeRange {
		t.Errorf("KeySchema: %+v", d.KeySchema)
	}
	if len(d.Shards) == 0 {
		t.Fatal("no shards")
	}
	for _, s := range d.Shards {
		if !shardID.MatchString(aws.ToString(s.ShardId)) {
			t.Errorf("ShardId: %s", aws.ToString(s.ShardId))
		}
		if r := s.SequenceNumberRange; r == nil || !sequenceNumber.MatchString(aws.ToString(r.StartingSequenceNumber)) || r.EndingSequenceNumber != nil {
			t.Errorf("SequenceNumberRange of an open shard: %+v", r)
		}
	}
}

// Shards are listed in the order of their ids, in pages of any size.
func describeStreamPages(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	var whole, paged []string
	for _, s := range tb.describeStream(t, arn).Shards {
		whole = append(whole, aws.ToString(s.ShardId))
	}
	var start *string
	for {
		out, err := e.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn, Limit: aws.Int32(1), ExclusiveStartShardId: start})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.StreamDescription.Shards {
			paged = append(paged, aws.ToString(s.ShardId))
		}
		if start = out.StreamDescription.LastEvaluatedShardId; start == nil {
			break
		}
	}
	if !slices.Equal(whole, paged) || !slices.IsSorted(whole) {
		t.Errorf("whole %v, paged %v", whole, paged)
	}
}

// A stream that was switched off is DISABLED, its shards are closed, and its records can still be
// read.
func describeStreamAfterDisabling(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	tb.put(t, item("pk", "a"))
	tb.update(t, &dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}})
	tb.put(t, item("pk", "b"))
	tb.wantDisabled(t, arn, 1)
}

// The stream of a deleted table is DISABLED, its shards are closed, and its records can still be
// read.
func describeStreamAfterDeletion(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	tb.put(t, item("pk", "a"))
	deleteTable(t, e, tb.name)
	tb.awaitGone(t)
	tb.wantDisabled(t, arn, 1)
}

// wantDisabled waits until a stream is DISABLED, and checks that its shards are closed and that it
// still has so many records.
func (tb *table) wantDisabled(t *testing.T, arn string, records int) {
	t.Helper()
	tb.await(t, "a disabled stream", func() bool { return tb.describeStream(t, arn).StreamStatus == streamtypes.StreamStatusDisabled })
	for _, s := range tb.describeStream(t, arn).Shards {
		if s.SequenceNumberRange.EndingSequenceNumber == nil {
			t.Errorf("shard %s is open", aws.ToString(s.ShardId))
		}
	}
	reader := &StreamReader{Client: tb.Streams, StreamARN: arn}
	got, err := reader.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != records {
		t.Errorf("the stream holds %d records, want %d", len(got), records)
	}
	for id, shard := range reader.shards {
		if !shard.finished {
			t.Errorf("shard %s does not end", id)
		}
	}
}

func describeStreamRefused(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	other := arn[:len(arn)-1] + "x"
	if arn[len(arn)-1] == 'x' {
		other = arn[:len(arn)-1] + "y"
	}
	e.refuse(t, "DescribeStream", `{"StreamArn":"`+other+`"}`, notFound, "")
	e.refuse(t, "DescribeStream", `{}`, validation, "1 validation error detected: Value null at 'streamArn' failed to satisfy constraint: Member must not be null")
	e.refuse(t, "DescribeStream", `{"StreamArn":"nonsense"}`, validation, "")
	e.refuse(t, "DescribeStream", `{"StreamArn":"`+arn+`","Limit":0}`, validation, "")
	out, err := e.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn, ExclusiveStartShardId: aws.String("shardId-99999999999999999999-ffffffff")})
	if err != nil || len(out.StreamDescription.Shards) != 0 {
		t.Errorf("after a shard that does not exist: %v, want an empty list", err)
	}
}
