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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/internal/index"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

const (
	windowAttribute = "expirationWindow"
	windowIndex     = "expirationWindowIndex"
	shardAttribute  = "GSI_PK"
	shardIndex      = "shards"
)

// withIndex adds to the table a secondary index with the sort key ttl, a number by default.
func withIndex(name, key string, kind types.ScalarAttributeType) func(*world) {
	return withTable(func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: "S"})
		if !slices.ContainsFunc(in.AttributeDefinitions, func(d types.AttributeDefinition) bool { return *d.AttributeName == "ttl" }) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("ttl"), AttributeType: kind})
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName:  &name,
			KeySchema:  []types.KeySchemaElement{{AttributeName: &key, KeyType: "HASH"}, {AttributeName: aws.String("ttl"), KeyType: "RANGE"}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		})
	})
}

// withWindows adds the index of docs/spec/patterns.md (a), and withShards adds (b).
func withWindows(w *world) { withIndex(windowIndex, windowAttribute, "N")(w) }
func withShards(w *world)  { withIndex(shardIndex, shardAttribute, "N")(w) }

// withComposite adds an index whose sort key has another attribute behind the deadline. No sweep
// reads it: its writers may not be guard's.
func withComposite(w *world) {
	withWindows(w)
	withTable(func(in *dynamodb.CreateTableInput) {
		ix := &in.GlobalSecondaryIndexes[len(in.GlobalSecondaryIndexes)-1]
		ix.KeySchema = append(ix.KeySchema, types.KeySchemaElement{AttributeName: in.KeySchema[0].AttributeName, KeyType: "RANGE"})
	})(w)
}

// windowed returns the attributes that a writer adds to an item with a TTL.
func windowed(ttl string, granularity time.Duration) map[string]types.AttributeValue {
	n, _ := strconv.ParseInt(ttl, 10, 64)
	return text(windowAttribute, Window(n, granularity))
}

func text(attribute, value string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attribute: &types.AttributeValueMemberS{Value: value}}
}

// putWindowed writes an item like the writers of (a), and putShard like (b) does.
func (w *world) putWindowed(name, ttl string) {
	w.t.Helper()
	w.put(name, ttl, windowed(ttl, time.Minute))
}
func (w *world) putShard(name, ttl, shard string) {
	w.t.Helper()
	w.put(name, ttl, text(shardAttribute, shard))
}

// testBack is how many seconds a test's first sweep reaches back: a whole day's windows would be
// most of a small test's queries.
const testBack = 3600

// startSweeps runs a guard with the index strategy, without patrol, so that only sweeps find items.
func (w *world) startSweeps(o Options) *guarding {
	w.t.Helper()
	return w.startWith(o, func(g *Guard) runner {
		x := index.New(g.env(), g.indexOptions())
		x.PatrolEvery, x.Back = 0, testBack
		return x
	})
}

// watermark is the least watermark that the sweeps' checkpoints have; -1: a shard has none.
func (w *world) watermark(leases int) int64 {
	w.t.Helper()
	out, err := w.DynamoDB().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
	must(w.t, err)
	rows, err := lease.New(w.DynamoDB(), "guard/"+*out.Table.TableArn+"/index", lease.Options{}).Rows(context.Background())
	must(w.t, err)
	least := int64(-1)
	for i := range leases {
		mark, ok := index.ReadWatermark(rows["sweep/"+strconv.Itoa(i)].Checkpoint)
		if !ok {
			return -1
		}
		if least < 0 || mark < least {
			least = mark
		}
	}
	return least
}

// awaitSwept waits until all due items were swept and have ended.
func (r *guarding) awaitSwept(w *world, leases int) {
	r.t.Helper()
	r.awaitWatermark(w, leases, w.now().UnixMilli())
}

// awaitWatermark waits until all checkpoints have reached an instant. They are written only every
// few seconds of the clock, so it advances the clock, but no faster than guard follows.
func (r *guarding) awaitWatermark(w *world, leases int, least int64) {
	r.t.Helper()
	r.await("the watermark has come so far", func() bool {
		w.advance(5 * time.Second)
		for range 100 {
			if w.watermark(leases) >= least {
				return true
			}
			time.Sleep(2 * time.Millisecond)
		}
		return false
	})
}

func (w *world) indexOptions() Options {
	o := w.options(Index)
	o.Period = 5 * time.Second
	return o
}

// a1: the published query is for ttl < :exp in a window that ends at :exp, so items that expire on
// a full minute are never swept.
func TestFlawA1TTLOnTheEdgeOfItsWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	w.putWindowed("edge", w.in(60))
	w.putWindowed("after", w.in(61))
	r := w.startSweeps(w.indexOptions())
	w.advance(59_999 * time.Millisecond)
	if !w.has("edge") {
		t.Error("removed early")
	}
	w.advance(time.Millisecond)
	r.awaitCount(Removed, 1)
	if w.has("edge") || !w.has("after") {
		t.Error("the wrong item is gone")
	}
	w.advance(time.Second)
	r.awaitCount(Removed, 2)
}

// a2: the published query reads the first page of a window and no more.
func TestFlawA2WindowOfSeveralPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	ttl, n := w.in(8), 1500
	for i := range n { // 1.5 MB
		w.putWindowed(fmt.Sprint(i, strings.Repeat("x", 1000)), ttl)
	}
	r := w.startSweeps(w.indexOptions())
	// by one sweep, for the clock stands still; removals would move the second page to the first
	r.awaitCount(Armed, int64(n))
	w.advance(8 * time.Second)
	r.awaitCount(Removed, int64(n))
	if left := w.count(); left != 0 {
		t.Errorf("%d items are left", left)
	}
}

// a3: the published sweeper queries one window, once, so the items of a late or failed run are
// never found.
func TestFlawA3MissedRuns(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"windows", "shards"} {
		t.Run(layout, func(t *testing.T) {
			w := newWorld(t, withWindows, withShards)
			o := w.indexOptions()
			o.IndexName, o.Shards = windowIndex, 0
			if layout == "shards" {
				o.IndexName, o.Shards = shardIndex, 1
			}
			put := func(name string, in int64) {
				w.put(name, w.in(in), windowed(w.in(in), time.Minute), text(shardAttribute, "0"))
			}
			put("first", 30)
			r := w.startSweeps(o)
			w.advance(30 * time.Second)
			r.awaitCount(Removed, 1)
			r.awaitSwept(w, 1)
			must(t, r.stop())
			for i := range int64(50) { // two days: more than a first sweep reaches back
				put(fmt.Sprint("missed", i), 10+i*3500)
			}
			put("later", 200_000)
			w.advance(49 * time.Hour)
			r = w.startSweeps(o)
			r.awaitCount(Removed, 50)
			if w.count() != 1 || !w.has("later") {
				t.Error("the wrong items are left")
			}
		})
	}
}

// a3: a sweep that the endpoint does not answer is made up for once it does.
func TestFlawA3FailedRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	w.putWindowed("a", w.in(600))
	r := w.startSweeps(w.indexOptions())
	r.awaitSwept(w, 1)
	tap.do(func(_ context.Context, operation string, in any) error {
		if operation == "Query" && tableOf(in) == worldTable {
			return refusal("InternalServerError")
		}
		return nil
	})
	w.advance(20 * time.Minute)
	r.awaitCount(Throttled, 2)
	if !w.has("a") {
		t.Fatal("removed, but nothing could be asked")
	}
	tap.do(nil)
	r.awaitCount(Removed, 1)
}

// a4: the published sweeper never finds an item that has expired when it is written, or whose
// window is past.
func TestFlawA4WrittenExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	w.advance(time.Hour)
	o := w.indexOptions()
	r := w.startSweeps(o)
	w.putWindowed("keeps", w.in(100_000))
	r.awaitSwept(w, 1)
	w.putWindowed("expired", w.in(-30))
	w.putWindowed("window past", w.in(-200))
	w.advance(o.Period)
	r.awaitCount(Removed, 2)
	must(t, r.stop())

	r = w.start(o) // with the patrol, which finds older items
	r.awaitCount(Armed, 0)
	w.advance(2 * time.Hour)
	w.putWindowed("long expired", w.in(-3*86_400))
	w.advance(time.Hour)
	r.awaitCount(Removed, 1)
	if w.count() != 1 || !w.has("keeps") {
		t.Error("the wrong items are left")
	}
}

// a5: an index follows its table late, so an item may come to it after its window was asked for.
func TestFlawA5IndexIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	var hides atomic.Bool
	hides.Store(true)
	tap.after = func(operation string, _, out any) {
		if page, ok := out.(*dynamodb.QueryOutput); ok && hides.Load() {
			page.Items = slices.DeleteFunc(page.Items, func(item map[string]types.AttributeValue) bool {
				pk, _ := item["pk"].(*types.AttributeValueMemberS)
				return pk != nil && pk.Value == "late"
			})
		}
	}
	w.putWindowed("late", w.in(50))
	w.putWindowed("other", w.in(50))
	o := w.indexOptions()
	r := w.startSweeps(o)
	for range 30 { // until its window and the next are past
		w.advance(o.Period)
	}
	r.awaitCount(Removed, 1)
	if !w.has("late") {
		t.Fatal("removed, but it was hidden")
	}
	hides.Store(false)
	w.advance(o.Period)
	r.awaitCount(Removed, 2)
}

// a6: the published deletes have no condition, so an item that is renewed, or made anew, between
// query and delete is lost.
func TestFlawA6RenewedBetweenQueryAndDelete(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"windows", "shards"} {
		t.Run(layout, func(t *testing.T) {
			w := newWorld(t, withWindows, withShards)
			renewedBetweenQueryAndDelete(t, w, layout)
		})
	}
}

// renewedBetweenQueryAndDelete holds a removal up until its item was renewed.
func renewedBetweenQueryAndDelete(t *testing.T, w *world, layout string) {
	tap := w.tapped()
	o := w.indexOptions()
	o.IndexName = windowIndex
	if layout == "shards" {
		o.IndexName, o.Shards = shardIndex, 4
	}
	put := func(name, ttl string) {
		w.put(name, ttl, windowed(ttl, time.Minute), text(shardAttribute, Shard(name, 4)))
	}
	put("renewed", w.in(8))
	put("anew", w.in(8))
	put("goes", w.in(8))
	arrived, go_on := make(chan struct{}, 8), make(chan struct{})
	tap.do(func(ctx context.Context, operation string, _ any) error {
		if operation == "DeleteItem" {
			arrived <- struct{}{}
			<-go_on
		}
		return nil
	})
	r := w.startSweeps(o)
	r.awaitCount(Armed, 3)
	w.advance(8 * time.Second)
	for range 3 {
		<-arrived
	}
	put("renewed", w.in(20))
	w.remove("anew")
	put("anew", w.in(30))
	close(go_on)
	r.awaitCount(Refused, 2)
	r.awaitCount(Removed, 1)
	if !w.has("renewed") || !w.has("anew") || w.has("goes") {
		t.Error("the wrong item is gone")
	}
	for range 6 { // they go at their later deadlines
		w.advance(o.Period)
	}
	r.awaitCount(Removed, 3)
	if deletes := len(tap.of("DeleteItem")); deletes != 5 {
		t.Errorf("%d deletes for 3 items, 2 of which were renewed once", deletes)
	}
}

// a7: the published sweeper retries three times without a pause, after any error.
func TestFlawA7Backoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	var (
		mu    sync.Mutex
		times []time.Time
	)
	tap.do(func(_ context.Context, operation string, in any) error {
		if operation == "Query" && tableOf(in) == worldTable {
			mu.Lock()
			defer mu.Unlock()
			if times = append(times, time.Now()); len(times) <= 5 {
				return refusal("ProvisionedThroughputExceededException")
			}
		}
		return nil
	})
	w.putWindowed("a", w.in(5))
	w.putWindowed("keeps", w.in(1000))
	o := w.indexOptions()
	r := w.startSweeps(o)
	w.advance(5 * time.Second)
	r.awaitCount(Removed, 1)
	must(t, r.stop())
	if r.Stats().Counts[Throttled] != 5 {
		t.Errorf("throttled %d times", r.Stats().Counts[Throttled])
	}
	// Present and past are swept concurrently, so the minimum is three attempts of each, with
	// pauses of 25 and 50 ms.
	if took := times[5].Sub(times[0]); took < 75*time.Millisecond {
		t.Errorf("asked six times within %v", took)
	}

	tap.do(func(_ context.Context, operation string, in any) error {
		if operation == "Query" && tableOf(in) == worldTable {
			return refusal("ValidationException")
		}
		return nil
	})
	before := len(tap.of("Query"))
	r = w.startSweeps(o)
	<-r.over
	if p := (*Problem)(nil); !errors.As(r.stop(), &p) || p.Code != Misconfigured {
		t.Errorf("what can never be answered ends with %v", r.err)
	}
	if asked := len(tap.of("Query")) - before; asked > 2 { // past and present
		t.Errorf("and is asked %d times", asked)
	}
}

// a8: the published sweeper takes a missing permission for a throttle.
func TestFlawA8MissingPermission(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"Query", "DeleteItem"} {
		t.Run(denied, func(t *testing.T) {
			w := newWorld(t, withWindows)
			tap := w.tapped()
			tap.do(func(_ context.Context, operation string, in any) error {
				if operation == denied && tableOf(in) == worldTable {
					return refusal("AccessDeniedException")
				}
				return nil
			})
			w.putWindowed("a", w.in(-5))
			r := w.startSweeps(w.indexOptions())
			<-r.over
			if p := (*Problem)(nil); !errors.As(r.stop(), &p) || p.Code != AccessDenied || !strings.Contains(p.Message, denied) {
				t.Errorf("ends with %v", r.err)
			}
		})
	}
}

// A missing permission on the table of leases is reported as such.
func TestIndexMayNotLease(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"Query", "PutItem"} {
		w := newWorld(t, withWindows)
		w.tapped().do(func(_ context.Context, operation string, in any) error {
			if operation == denied && tableOf(in) == lease.TableName {
				return refusal("AccessDeniedException")
			}
			return nil
		})
		w.putWindowed("a", w.in(-5))
		r := w.startSweeps(w.indexOptions())
		<-r.over
		if p := (*Problem)(nil); !errors.As(r.stop(), &p) || p.Code != AccessDenied || !strings.Contains(p.Message, denied) || !strings.Contains(p.Message, lease.TableName) {
			t.Errorf("%s: ends with %v", denied, r.err)
		}
	}
}

// a9: all that expires within a minute lies in one partition of the index.
func TestFlawA9WindowsOfShards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	ttl := w.in(30)
	n, _ := strconv.ParseInt(ttl, 10, 64)
	for i := range 40 {
		name := fmt.Sprint(i)
		w.put(name, ttl, text(windowAttribute, WindowShard(Window(n, time.Minute), Shard(name, 4))))
	}
	w.putWindowed("of a writer of before", ttl)
	o := w.indexOptions()
	o.Shards = 4
	r := w.startSweeps(o)
	w.advance(30 * time.Second)
	r.awaitCount(Removed, 41)
	for shard := range 4 {
		if partition := WindowShard(Window(n, time.Minute), strconv.Itoa(shard)); tap.partitions()[partition] == 0 {
			t.Errorf("%s was never asked for", partition)
		}
	}
	must(t, r.stop())

	o.Shards = 2
	for i := range 4 {
		w.put(fmt.Sprint(i), w.in(30), text(windowAttribute, WindowShard(Window(n, time.Minute), strconv.Itoa(i))))
	}
	r = w.startSweeps(o)
	<-r.over
	if p := (*Problem)(nil); !errors.As(r.stop(), &p) || p.Code != Misconfigured || !strings.Contains(p.Message, "at least 4 shards, but guard is set to sweep 2") {
		t.Errorf("too few shards end with %v", r.err)
	}
}

// a10: for milliseconds the published function returns windows that no sweeper queries.
func TestFlawA10Milliseconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	w.putWindowed("keeps", w.in(100_000))
	// the function's result for the fraction after a full minute
	malformed := Window(w.now().Unix(), 2*time.Minute)
	w.put("milliseconds", strconv.FormatInt(w.now().UnixMilli()+5000, 10), text(windowAttribute, malformed))
	w.put("fraction", w.in(0)+".4", text(windowAttribute, malformed))
	var seen recorder
	o := w.indexOptions()
	o.Observe = seen.observe
	o.Granularity = time.Minute
	w.putWindowed("keeps too", w.in(100_000)) // so that minutes are the more
	r := w.start(o)
	r.awaitCount(BadValue, 1)
	if bad := seen.of(BadValue); !strings.Contains(bad[0].Key, "milliseconds") || !strings.Contains(bad[0].Err.Error(), "looks like milliseconds") {
		t.Errorf("reported: %+v", bad)
	}
	r.awaitCount(Armed, 1)
	if r.Stats().Counts[Removed] != 0 {
		t.Error("removed early")
	}
	w.advance(400 * time.Millisecond)
	r.awaitCount(Removed, 1)
	if w.has("fraction") || !w.has("milliseconds") || w.count() != 3 {
		t.Error("the wrong items are left")
	}
}

// a11: runs of the published sweeper overlap and do everything twice.
func TestFlawA11TwoWorkers(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"windows", "shards"} {
		t.Run(layout, func(t *testing.T) {
			w := newWorld(t, withWindows, withShards)
			tap := w.tapped()
			o := w.indexOptions()
			o.Alone, o.Lease, o.Segments = false, 2*time.Second, 1
			o.IndexName = windowIndex
			if layout == "shards" {
				o.IndexName, o.Shards = shardIndex, 4
			} else {
				// the first is not to lose its only one, however slow the machine is
				o.Lease = 30 * time.Second
			}
			// or the second one would not know the index's layout
			w.put("keeps", w.in(100_000), windowed(w.in(100_000), time.Minute), text(shardAttribute, "0"))
			const n = 400
			for i := range int64(n) {
				ttl := w.in(20 + i%10)
				w.put(fmt.Sprint(i), ttl, windowed(ttl, time.Minute), text(shardAttribute, Shard(fmt.Sprint(i), 4)))
			}
			first := w.startSweeps(o)
			leases := 1
			if layout == "shards" {
				leases = 4
			}
			first.awaitSwept(w, leases)
			second := w.startSweeps(o)
			second.await("it has its share, or is there", func() bool {
				rows, err := first.env().Shares(index.Name).Rows(context.Background())
				must(t, err)
				mine := map[string]int{}
				for name, row := range rows {
					if strings.HasPrefix(name, "sweep/") {
						mine[row.Owner]++
					}
				}
				delete(mine, "")
				return layout == "windows" && len(rows) >= 3 || slices.Equal(slices.Sorted(maps.Values(mine)), []int{2, 2})
			})
			for range 40 {
				w.advance(time.Second)
				time.Sleep(time.Millisecond)
			}
			first.await("all is gone", func() bool { return w.count() == 1 })
			must(t, first.stop())
			must(t, second.stop())
			removed := first.Stats().Counts[Removed] + second.Stats().Counts[Removed]
			if removed != n {
				t.Errorf("%d removals of %d items", removed, n)
			}
			// The next worker removes the armed items of a shard that the first one has left.
			if deletes := len(tap.of("DeleteItem")); layout == "windows" && deletes != n {
				t.Errorf("%d deletes of %d items", deletes, n)
			}
		})
	}
}

// a12: no sweep finds an item with a new TTL and its old window.
func TestFlawA12TTLChangedAndNotTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	w.putWindowed("a", w.in(30))
	w.renew("a", w.in(6*3600))
	w.putWindowed("keeps", w.in(100_000))
	o := w.indexOptions()
	r := w.start(o)
	for range 5*6 + 6 {
		w.advance(10 * time.Minute)
		time.Sleep(5 * time.Millisecond)
	}
	if w.now().Unix() != epoch.Unix()+6*3600 {
		t.Fatal("the test counts wrongly")
	}
	r.await("a patrol has found it", func() bool { // on a slow machine they begin later
		if r.Stats().Counts[Removed] == 0 {
			w.advance(time.Minute)
		}
		return r.Stats().Counts[Removed] == 1
	})
	if w.has("a") || !w.has("keeps") {
		t.Error("the wrong item is gone")
	}
}

// a13: the published sweeper knows tables without sort key.
func TestFlawA13SortKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSort, withWindows)
	w.putWindowed("a/1", w.in(10))
	w.putWindowed("a/2.50", w.in(10))
	w.putWindowed("a/3", w.in(100))
	r := w.startSweeps(w.indexOptions())
	w.advance(10 * time.Second)
	r.awaitCount(Removed, 2)
	if !w.has("a/3") || w.count() != 1 {
		t.Error("the wrong items are left")
	}
}

// a14: each change of an item changes a full copy of it in the index. Keys are enough, and guard
// writes nothing but the removals.
func TestFlawA14KeysOnlyAndNoOtherWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows) // KEYS_ONLY
	tap := w.tapped()
	w.putWindowed("goes", w.in(10))
	w.putWindowed("renewed", w.in(10))
	r := w.startSweeps(w.indexOptions())
	r.awaitSwept(w, 1)
	w.putWindowed("renewed", w.in(1000))
	w.advance(10 * time.Second)
	r.awaitCount(Removed, 1)
	r.awaitSwept(w, 1)
	for operation := range tap.operations() {
		if !slices.Contains([]string{"Query", "Scan", "DeleteItem", "DescribeTable"}, operation) {
			t.Errorf("%s was called of the table", operation)
		}
	}
	if n := len(tap.of("DeleteItem")); n > 2 {
		t.Errorf("%d deletes", n)
	}
}

// The published rule that a window must be a multiple of the trigger's period does not apply:
// minutes 4 to 5 of its counter-example are swept.
func TestFlawAPeriodAndGranularityOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ granularity, period time.Duration }{
		{5 * time.Minute, 2 * time.Minute}, {time.Second, time.Minute}, {7 * time.Second, 5 * time.Second}, {24 * time.Hour, time.Second}, {time.Minute, time.Hour},
	} {
		t.Run(fmt.Sprint(c.granularity, " ", c.period), func(t *testing.T) {
			w := newWorld(t, withWindows)
			o := w.indexOptions()
			o.Period = c.period
			for i := range int64(40) {
				ttl := w.in(1 + i*15)
				w.put(fmt.Sprint(i), ttl, windowed(ttl, c.granularity))
			}
			r := w.startSweeps(o)
			for i := range int64(600) {
				w.advance(time.Second)
				// the clock moves no faster than guard follows
				r.awaitCount(Removed, min(i/15+1, 40))
			}
			counts := r.Stats().Counts
			if counts[Removed] != 40 {
				t.Errorf("%d removals of 40 items", counts[Removed])
			}
			// guard remembers a removed item, which a page may still show, for a minute of the
			// clock. Sweeps of a long period reach so far ahead that the clock can pass a minute
			// while a page is read.
			if c.period <= strategy.SightRemoved*time.Millisecond/4 && counts[Refused] != 0 {
				t.Error("something was removed twice")
			}
		})
	}
}

// Missed runs heal by themselves, as in (b): every overdue item is found, however it came there.
func TestShardsHeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	o := w.indexOptions()
	o.Shards = 1
	w.putShard("keeps", w.in(100_000), "0")
	r := w.startSweeps(o)
	r.awaitSwept(w, 1)
	w.putShard("long expired", w.in(-40*86_400), "0")
	w.advance(5 * time.Minute)
	r.awaitCount(Removed, 1)
}

// A dry run reports an item that it would remove once, and leaves it.
func TestIndexDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	o := w.indexOptions()
	o.Shards, o.DryRun = 1, true
	for i := range int64(5) {
		w.putShard(fmt.Sprint(i), w.in(i), "0")
	}
	r := w.startSweeps(o)
	for range 100 {
		w.advance(7 * time.Second)
	}
	r.awaitCount(Spared, 5)
	r.awaitSwept(w, 1)
	if n := r.Stats().Counts[Spared]; n != 5 || w.count() != 5 {
		t.Errorf("%d reported, %d left", n, w.count())
	}
}

// guard learns an unknown layout from the index's first item.
func TestIndexIsEmptyAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	o := w.indexOptions()
	r := w.startSweeps(o)
	w.advance(o.Period)
	ttl := w.in(20)
	w.put("a", ttl, windowed(ttl, 10*time.Minute)) // not the one in the options
	r.await("it is gone", func() bool {
		w.advance(time.Second)
		return !w.has("a")
	})
	if w.now().Unix() < epoch.Unix()+25 {
		t.Error("removed early")
	}
}

// The fault of an index is reported, with the next step.
func TestIndexProblems(t *testing.T) {
	t.Parallel()
	state := func(status types.IndexStatus) func(*tap) {
		return func(t *tap) {
			t.after = func(_ string, _, out any) {
				if d, ok := out.(*dynamodb.DescribeTableOutput); ok && len(d.Table.GlobalSecondaryIndexes) > 0 {
					d.Table.GlobalSecondaryIndexes[0].IndexStatus = status
				}
			}
		}
	}
	for _, c := range []struct {
		name    string
		with    []func(*world)
		change  func(*Options)
		tap     func(*tap)
		code    Code
		message string
		next    string
	}{
		{"there is none", nil, nil, nil, NoIndex, "no index with a string partition key", "mayfly guard init --table items --attribute ttl"},
		{"none of the name", []func(*world){withWindows}, func(o *Options) { o.IndexName = "x" }, nil, NoIndex, "no index x", "mayfly guard init"},
		{"two", []func(*world){withWindows, withShards}, nil, nil, Misconfigured, "several indexes", "--index"},
		{"a key of several attributes", []func(*world){withComposite}, nil, nil, NoIndex, "no index with a string partition key", "mayfly guard init --table items --attribute ttl"},
		{"a key of several attributes, by name", []func(*world){withComposite}, func(o *Options) { o.IndexName = windowIndex }, nil, NoIndex, "does not have a partition key and the sort key", "mayfly guard init"},
		{"other sort key", []func(*world){withWindows}, func(o *Options) { o.Attribute, o.IndexName = "until", windowIndex }, nil, NoIndex, "the sort key until", "mayfly guard init"},
		{"no version", []func(*world){withWindows}, func(o *Options) { o.Version, o.IndexName = "v", windowIndex }, nil, NoIndex, "does not project the version attribute v", "mayfly guard init"},
		{"being built", []func(*world){withWindows}, nil, state(types.IndexStatusCreating), NoIndex, "still being built", "ACTIVE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.with...)
			tap := w.tapped()
			if c.tap != nil {
				c.tap(tap)
			}
			o := w.indexOptions()
			if c.change != nil {
				c.change(&o)
			}
			r := w.start(o)
			<-r.over
			var p *Problem
			if !errors.As(r.stop(), &p) || p.Code != c.code || !strings.Contains(p.Message, c.message) || !strings.Contains(p.Next, c.next) {
				t.Errorf("ends with %+v", r.err)
			}
		})
	}
	t.Run("an unknown number of shards", func(t *testing.T) {
		w := newWorld(t, withShards)
		w.putShard("a", w.in(5), "3")
		r := w.start(w.indexOptions())
		<-r.over
		var p *Problem
		if !errors.As(r.stop(), &p) || p.Code != Misconfigured || !strings.Contains(p.Message, "at least 4 shards, but guard is set to sweep 0") {
			t.Errorf("ends with %+v", r.err)
		}
	})
}

// a15: a deletion by the published sweeper looks like a user's. With a mark, the stream
// distinguishes them.
func TestFlawA15ExpiryCanBeToldFromDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	w.putWindowed("expires", w.in(10))
	w.putWindowed("deleted", w.in(10))
	o := w.indexOptions()
	o.Mark = "expired_at"
	r := w.startSweeps(o)
	r.awaitCount(Armed, 2)
	w.remove("deleted")
	w.advance(10 * time.Second)
	r.awaitCount(Removed, 1)
	marks := map[string]bool{}
	for _, record := range w.records() {
		if record.EventName == "REMOVE" {
			image := record.Dynamodb.OldImage
			mark, _ := image["expired_at"].(*streamtypes.AttributeValueMemberN)
			marks[image["pk"].(*streamtypes.AttributeValueMemberS).Value] = mark != nil && mark.Value == image["ttl"].(*streamtypes.AttributeValueMemberN).Value
		}
	}
	if !maps.Equal(marks, map[string]bool{"expires": true, "deleted": false}) {
		t.Errorf("marks: %v", marks)
	}
}
