package consume_test

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// The distance is the number of records that are not done, over all shards; a page has 1,000. A
// consumer of another stream is not among the consumers.
func TestDistances(t *testing.T) {
	everywhere(t, mayfly.Options{ShardBytes: 4096}, func(t *testing.T, e *endpoint) {
		e.table(t, "events")
		e.table(t, "others")
		distances := func() []consume.Distance {
			t.Helper()
			table, err := e.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("events")})
			must(t, err)
			all, err := consume.Distances(t.Context(), e.db, e.streams, *table.Table.LatestStreamArn, lease.Options{})
			must(t, err)
			return all
		}
		if all := distances(); len(all) != 0 {
			t.Errorf("before the first consumer: %+v", all)
		}
		other := e.consumer(t, "others", newSeen())
		other.Name = "other"
		run(t, other.Run)
		s := newSeen()
		stop := run(t, e.consumer(t, "events", s).Run)
		e.put(t, "events", "a", 0, 40)
		behind := func(n int) func() bool {
			return func() bool {
				all := distances()
				return len(all) == 1 && all[0].Consumer == "test" && all[0].Records == n && all[0].Oldest.IsZero() == (n == 0) && !all[0].More
			}
		}
		await(t, "the consumer is at the end", behind(0))
		stop()
		e.put(t, "events", "b", 0, 70)
		await(t, "it is 70 records behind", behind(70))
		before := e.Clock().Now()
		if oldest := distances()[0].Oldest; oldest.After(before) {
			t.Errorf("the oldest record is of %v, after %v", oldest, before)
		}
	})
}

// Beyond a page of a shard, there are more records than are counted.
func TestDistanceBeyondPage(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	stop := run(t, e.consumer(t, "events", newSeen()).Run)
	e.put(t, "events", "a", 0, 1)
	await(t, "there is a checkpoint", func() bool {
		for _, r := range e.rows(t) {
			return r.Checkpoint != ""
		}
		return false
	})
	stop()
	e.put(t, "events", "b", 0, 1001)
	table, err := e.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("events")})
	must(t, err)
	all, err := consume.Distances(t.Context(), e.db, e.streams, *table.Table.LatestStreamArn, lease.Options{})
	must(t, err)
	if !slices.ContainsFunc(all, func(d consume.Distance) bool { return d.Records == 1000 && d.More }) {
		t.Errorf("%+v", all)
	}
}
