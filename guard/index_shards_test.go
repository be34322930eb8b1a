package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/index"
)

// The flaws of the sharded index (patterns b), by number. index_test.go has the flaws of both
// indexes.

// b: the batch writer's deletes have no condition.
func TestFlawB1RenewedBetweenQueryAndDelete(t *testing.T) {
	t.Parallel()
	renewedBetweenQueryAndDelete(t, newWorld(t, withWindows, withShards), "shards")
}

// b: a TTL that is a text makes an index in which nothing can be compared with the time.
func TestFlawB2TTLIsAText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withIndex(shardIndex, shardAttribute, "S"))
	o := w.indexOptions()
	o.Shards = 1
	for _, name := range []string{"", shardIndex} {
		o.IndexName = name
		r := w.start(o)
		<-r.over
		p := (*Problem)(nil)
		if !errors.As(r.stop(), &p) || p.Code != NoIndex || !strings.Contains(p.Message, "number") || !strings.Contains(p.Next, "mayfly guard init") {
			t.Errorf("ends with %v", r.err)
		}
	}
}

// b: the present is cut to the minute, in the zone of the process, and written without a zone.
func TestFlawB3EpochSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	tap := w.tapped()
	w.putShard("a", w.in(3), "0")
	o := w.indexOptions()
	o.Shards = 1
	r := w.startSweeps(o)
	w.advance(3 * time.Second)
	r.awaitCount(Removed, 1)
	for _, in := range tap.of("Query") {
		high := in.(*dynamodb.QueryInput).ExpressionAttributeValues[":high"].(*types.AttributeValueMemberN).Value
		if n, err := strconv.ParseInt(high, 10, 64); err != nil || n < epoch.Unix() || n > epoch.Unix()+3+2*5 {
			t.Errorf("asked for TTLs up to %s", high)
		}
	}
}

// b: the code calls operations that its permissions lack.
func TestFlawB4OperationsThatAreCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	tap := w.tapped()
	for i := range 30 {
		w.putShard(fmt.Sprint(i), w.in(3), "0")
	}
	o := w.indexOptions()
	o.Shards = 1
	r := w.start(o)
	w.advance(3 * time.Second)
	r.awaitCount(Removed, 30)
	if got := slices.Sorted(maps.Keys(tap.operations())); !slices.Equal(got, []string{"DeleteItem", "DescribeTable", "Query", "Scan"}) {
		t.Errorf("called %v", got)
	}
}

// b: a run that is interrupted half-way resumes at its position; nothing is left out.
func TestFlawB5EndedHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows, withShards)
	tap := w.tapped()
	first := epoch.Unix() + 1000
	for i := range int64(200) {
		ttl := strconv.FormatInt(first+i, 10)
		w.put(fmt.Sprint(i), ttl, windowed(ttl, time.Minute), text(shardAttribute, "0"))
	}
	o := w.indexOptions()
	o.IndexName, o.Concurrency = windowIndex, 1
	r := w.startSweeps(o)
	r.awaitSwept(w, 1)
	must(t, r.stop())
	w.advance(300*time.Second + time.Unix(first, 0).Sub(w.now()))

	var n atomic.Int64
	half := make(chan struct{})
	tap.do(func(ctx context.Context, operation string, _ any) error {
		if operation != "DeleteItem" {
			return nil
		}
		switch i := n.Add(1); {
		case i == 100:
			<-half
		case i > 100:
			return errDead
		}
		return nil
	})
	r = w.startSweeps(o)
	goOn := sync.OnceFunc(func() { close(half) })
	t.Cleanup(goOn) // also if a wait fails: else the worker never stops
	r.await("half is gone", func() bool { return n.Load() >= 100 && r.Stats().Counts[Armed] == 200 })
	r.awaitWatermark(w, 1, (first+50)*1000) // a checkpoint of the removals, before the remaining items
	goOn()
	must(t, r.stop())
	if left := w.count(); left == 0 {
		t.Fatal("nothing is left to show it with")
	}
	mark := w.watermark(1)
	for i := range int64(200) {
		if at := (first + i) * 1000; at <= mark-1 && w.has(fmt.Sprint(i)) {
			t.Fatalf("the watermark is %d, but what expired at %d is there", mark, at)
		}
	}
	tap.do(nil)
	r = w.startSweeps(o)
	r.await("the rest is gone", func() bool { return w.count() == 0 })
}

// b: shards are asked one after another.
func TestFlawB6ShardsInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	tap := w.tapped()
	release := make(chan struct{})
	tap.do(func(ctx context.Context, operation string, in any) error {
		if q, ok := in.(*dynamodb.QueryInput); ok && tableOf(in) == worldTable && q.ExpressionAttributeValues[":p"].(*types.AttributeValueMemberS).Value == "0" {
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for shard := range 4 {
		w.putShard(fmt.Sprint(shard), w.in(2), strconv.Itoa(shard))
	}
	o := w.indexOptions()
	o.Shards = 4
	r := w.startSweeps(o)
	w.advance(2 * time.Second)
	r.awaitCount(Removed, 3)
	if !w.has("0") {
		t.Error("the shard that does not answer was swept")
	}
	close(release)
	r.awaitCount(Removed, 4)
}

// b: an item goes up to a period and a minute after its deadline. With guard it goes at its
// instant, however long the period.
func TestFlawB7Latency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	o := w.indexOptions()
	o.Shards, o.Period = 1, 5*time.Minute
	for i := range int64(10) {
		w.putShard(fmt.Sprint(i), w.in(61*(i+1)), "0")
	}
	r := w.startSweeps(o)
	for i := range int64(10) {
		r.await("it is known a period ahead", func() bool { return r.Stats().Counts[Armed] > i })
		w.advance(60_999 * time.Millisecond)
		if left := w.count(); left != int(10-i) {
			t.Fatalf("%d items are left before the deadline of number %d", left, i)
		}
		w.advance(time.Millisecond)
		r.awaitCount(Removed, i+1) // and the clock stands still meanwhile
	}
}

// b: runs overlap. A shard is swept by one worker at a time, and by another when that one ends. See
// also TestFlawA11TwoWorkers.
func TestFlawB8OverlappingRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	w.putShard("keeps", w.in(1000), "0")
	o := w.indexOptions()
	o.Shards, o.Alone, o.Lease = 1, false, 2*time.Second
	first := w.startSweeps(o)
	first.awaitSwept(w, 1)
	tap := w.tapped()
	o.DB = w.db
	second := w.startSweeps(o)
	first.await("the second has seen that the shard has an owner", func() bool {
		rows, err := first.env().Shares(index.Name).Rows(context.Background())
		must(t, err)
		return len(rows) == 3 // the shard and two workers
	})
	for range 5 {
		w.advance(o.Period)
	}
	if n := len(tap.of("Query")); n != 0 {
		t.Errorf("the second has asked %d times for a shard that the first sweeps", n)
	}
	must(t, first.stop())
	second.await("it has the shard", func() bool { return len(tap.of("Query")) > 0 })
}
