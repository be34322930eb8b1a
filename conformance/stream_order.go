package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var streamOrderChecks = []check{
	{"PerKey", orderPerKey},
	{"SequenceNumbers", orderSequenceNumbers},
}

var streamLineageChecks = []check{
	{"ParentsBeforeChildren", orderLineage},
}

// Concurrent writers count up, each its own keys. The records of each key come in order, and once.
func orderPerKey(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeNewImage))
	tb.awaitStream(t)
	const writers, keysEach, versions = 4, 3, 10
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range versions {
				for k := range keysEach {
					tb.putQuietly(t, item("pk", fmt.Sprintf("%d-%d", w, k), "n", n))
				}
			}
		})
	}
	all.Wait()
	records := tb.awaitRecords(t, writers*keysEach*versions)
	if broken := brokenOrder(records); broken != "" {
		t.Error(broken)
	}
}

// putQuietly is put for use in other goroutines than the test's, which may not end the test.
func (tb *table) putQuietly(t *testing.T, it attributes) {
	if _, err := tb.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tb.name, Item: it}); err != nil {
		t.Errorf("put %s: %v", itemText(it), err)
	}
}

// brokenOrder returns the first key whose records do not count 0, 1, 2, … in the attribute n of
// their new images, or "".
func brokenOrder(records []streamtypes.Record) string {
	next := map[string]int{}
	for _, r := range records {
		image := fromStream(r.Dynamodb.NewImage)
		pk, n := column([]attributes{image}, "pk"), column([]attributes{image}, "n")
		if n != strconv.Itoa(next[pk]) {
			return fmt.Sprintf("key %s: record n = %s came where %d was due", pk, n, next[pk])
		}
		next[pk]++
	}
	return ""
}

// Sequence numbers rise within a shard and are unique over all of them.
func orderSequenceNumbers(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:N", stream(types.StreamViewTypeKeysOnly))
	arn := tb.awaitStream(t)
	var items []attributes
	for n := range 50 {
		items = append(items, item("pk", n))
	}
	tb.load(t, items)
	tb.awaitRecords(t, 50)
	seen := map[string]bool{}
	shards, err := describeShards(t.Context(), e.Streams, arn)
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range shards {
		last := ""
		for _, r := range tb.from(t, arn, *shard.ShardId, streamtypes.ShardIteratorTypeTrimHorizon, "") {
			sequence := aws.ToString(r.Dynamodb.SequenceNumber)
			if seen[sequence] || last != "" && compareSequence(sequence, last) <= 0 {
				t.Errorf("sequence number %s after %s", sequence, last)
			}
			seen[sequence], last = true, sequence
		}
	}
}

// orderLineage writes until shards have children, then reads twice. A consumer that reads parents
// before their children sees each key's records in order. One that ignores lineage must not: this
// shows that the check can fail.
func orderLineage(t *testing.T, e *Endpoint) {
	tb := newTable(t, e, "pk:S", stream(types.StreamViewTypeNewImage))
	arn := tb.awaitStream(t)
	const (
		keys     = 5
		most     = 60        // versions of each key
		largest  = 256 << 10 // bytes of an item
		children = 8         // so that some key surely has records on both sides
	)
	size := int(min(e.ShardBytes/8, largest))
	versions := 0
	for ; versions < most && tb.childShards(t, arn) < children; versions++ {
		for k := range keys {
			tb.put(t, item("pk", fmt.Sprint(k), "n", versions, "v", bigString(size)))
		}
	}
	if tb.childShards(t, arn) == 0 {
		t.Fatalf("no shard of %d bytes rolled over in %d KB of records", e.ShardBytes, versions*keys*size>>10)
	}
	tb.wantLineage(t, arn)
	tb.wantChildren(t, arn)
	careful := tb.awaitRecords(t, versions*keys)
	if broken := brokenOrder(careful); broken != "" {
		t.Errorf("parents before children: %s", broken)
	}
	careless, err := (&StreamReader{Client: e.Streams, StreamARN: arn, IgnoreLineage: true, PageSize: 1}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(careless) != versions*keys {
		t.Errorf("the careless consumer saw %d records, want %d", len(careless), versions*keys)
	}
	if brokenOrder(careless) == "" {
		t.Error("a consumer that ignores lineage saw each key in order: this check has lost its teeth")
	}
}

// shards returns all shards of a stream.
func (tb *table) shards(t *testing.T, arn string) []streamtypes.Shard {
	t.Helper()
	shards, err := describeShards(t.Context(), tb.Streams, arn)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// childShards returns the number of shards with a parent.
func (tb *table) childShards(t *testing.T, arn string) (n int) {
	t.Helper()
	for _, s := range tb.shards(t, arn) {
		if s.ParentShardId != nil {
			n++
		}
	}
	return n
}

// wantLineage checks that parents are listed before their children and are closed, and that a child
// begins after its parent's end.
func (tb *table) wantLineage(t *testing.T, arn string) {
	t.Helper()
	shards := tb.shards(t, arn)
	byID := map[string]streamtypes.Shard{}
	for _, s := range shards {
		byID[*s.ShardId] = s
		if s.ParentShardId == nil {
			continue
		}
		parent, listed := byID[*s.ParentShardId]
		switch {
		case !listed:
			t.Errorf("shard %s is listed before its parent", *s.ShardId)
		case parent.SequenceNumberRange.EndingSequenceNumber == nil:
			t.Errorf("shard %s has a child and is open", *parent.ShardId)
		case compareSequence(*s.SequenceNumberRange.StartingSequenceNumber, *parent.SequenceNumberRange.EndingSequenceNumber) <= 0:
			t.Errorf("shard %s starts at %s, its parent ends at %s", *s.ShardId, *s.SequenceNumberRange.StartingSequenceNumber, *parent.SequenceNumberRange.EndingSequenceNumber)
		}
	}
	if !slices.IsSortedFunc(shards, func(a, b streamtypes.Shard) int { return compareText(*a.ShardId, *b.ShardId) }) {
		t.Error("shards are not listed in the order of their ids")
	}
}

// wantChildren checks that a stream can be asked for the children of one shard.
func (tb *table) wantChildren(t *testing.T, arn string) {
	t.Helper()
	shards := tb.shards(t, arn)
	children := map[string][]string{}
	for _, s := range shards {
		if s.ParentShardId != nil {
			children[*s.ParentShardId] = append(children[*s.ParentShardId], *s.ShardId)
		}
	}
	for _, s := range shards {
		out, err := tb.Streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn,
			ShardFilter: &streamtypes.ShardFilter{Type: streamtypes.ShardFilterTypeChildShards, ShardId: s.ShardId}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, child := range out.StreamDescription.Shards {
			got = append(got, *child.ShardId)
		}
		if !slices.Equal(got, children[*s.ShardId]) {
			t.Errorf("children of %s: got %v, want %v", *s.ShardId, got, children[*s.ShardId])
		}
	}
}
