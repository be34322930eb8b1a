package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/target"
)

// An armed item goes at its deadline, not before; one that was renewed meanwhile stays.
func TestRemovesAtTheDeadline(t *testing.T) {
	t.Parallel()
	for _, where := range []struct {
		name string
		with []func(*world)
	}{{"partition key", nil}, {"sort key", []func(*world){withSort}}, {"HTTP", []func(*world){overHTTP}}} {
		t.Run(where.name, func(t *testing.T) {
			w := newWorld(t, where.with...)
			w.put("gone/1", w.in(10)+".5")
			w.put("renewed/2", w.in(10))
			r := w.startIdle(w.options(Auto))
			r.arm(r.entry(w, "gone/1"))
			r.arm(r.entry(w, "renewed/2"))
			w.advance(9999 * time.Millisecond)
			w.renew("renewed/2", w.in(100))
			w.advance(time.Millisecond)
			r.awaitCount(Refused, 1)
			if !w.has("gone/1") {
				t.Error("removed before its deadline")
			}
			w.advance(500 * time.Millisecond)
			r.awaitCount(Removed, 1)
			if w.has("gone/1") || !w.has("renewed/2") {
				t.Error("the wrong item is gone")
			}
		})
	}
}

// A TTL attribute may be a key of the table.
func TestRemovesByATTLThatIsAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("ttl"), AttributeType: "N"})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("ttl"), KeyType: "RANGE"})
	}))
	w.put("a", w.in(1))
	r := w.startIdle(w.options(Auto))
	item := w.key("a")
	item["ttl"] = n(w.in(1))
	e, ok := r.env().EntryOf(item)
	if !ok {
		t.Fatal("it has no deadline")
	}
	r.arm(e)
	w.advance(time.Second)
	r.awaitCount(Removed, 1)
	if w.count() != 0 {
		t.Error("it is there")
	}
}

// A removal is conditional on the version, too: a write that leaves the deadline alone keeps the
// item until guard finds its next deadline.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	version := func(v types.AttributeValue) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"v": v}
	}
	list := &types.AttributeValueMemberL{Value: []types.AttributeValue{n("1"), s("x")}}
	w.put("same", w.in(1), version(list))
	w.put("changed", w.in(1), version(n("1")))
	w.put("none", w.in(1))
	w.put("added", w.in(1))
	o := w.options(Auto)
	o.Version = "v"
	r := w.startIdle(o)
	for _, name := range []string{"same", "changed", "none", "added"} {
		r.arm(r.entry(w, name))
	}
	w.put("changed", w.in(1), version(n("2")))
	w.put("added", w.in(1), version(n("1")))
	w.advance(time.Second)
	r.awaitCount(Removed, 2)
	r.awaitCount(Refused, 2)
	if w.has("same") || w.has("none") || !w.has("changed") || !w.has("added") {
		t.Error("the wrong items are gone")
	}
}

// A dry run reports the removals that would happen, and writes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := w.tapped()
	events := &recorder{}
	o := w.options(Auto)
	o.DryRun, o.Observe, o.DB = true, events.observe, w.db
	w.put("goes", w.in(1))
	w.put("renewed", w.in(1))
	r := w.startIdle(o)
	r.arm(r.entry(w, "goes"))
	r.arm(r.entry(w, "renewed"))
	w.renew("renewed", w.in(50))
	w.advance(time.Second)
	r.awaitCount(Spared, 1)
	r.awaitCount(Refused, 1)
	if got := events.of(Spared); len(got) != 1 || got[0].Key != `{"pk":{"S":"goes"}}` {
		t.Errorf("spared: %v", got)
	}
	if w.count() != 2 || len(tap.of("DeleteItem"))+len(tap.of("UpdateItem")) > 0 {
		t.Error("a dry run has written")
	}
}

// Throttles, faults and lost responses postpone a removal, and it is repeated until it succeeds;
// each key once, and none is forgotten.
func TestObstaclesPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	var calls atomic.Int64
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) != "DeleteItem" {
			return send(r)
		}
		call := calls.Add(1)
		if call == 3 {
			return fault(r, 400, "ProvisionedThroughputExceededException"), nil
		}
		switch call % 10 {
		case 2:
			return fault(r, 500, "InternalServerError"), nil
		case 3:
			return nil, errors.New("connection reset by the test")
		case 4:
			return fault(r, 400, "TransactionConflictException"), nil
		case 5: // it succeeds, but the response is lost
			answer, err := send(r)
			if err == nil {
				answer.Body.Close()
			}
			return nil, errors.New("the answer is lost")
		}
		return send(r)
	})
	const count = 40
	w.fill("i", count, w.in(1))
	r := w.startIdle(w.options(Auto))
	var ends atomic.Int64
	for i := range count {
		e := r.entry(w, fmt.Sprint("i", i))
		e.Armer = armed.Func(func(armed.Outcome) { ends.Add(1) })
		r.arm(e)
	}
	w.advance(time.Second)
	r.await("all have ended", func() bool { return ends.Load() == count })
	stats := r.Stats()
	if w.count() != 0 || stats.Counts[Removed]+stats.Counts[Refused] != count || stats.Counts[Throttled] == 0 || stats.Counts[Retried] == 0 || stats.Armed != 0 {
		t.Errorf("%d items are left; %+v", w.count(), stats)
	}
}

// A rejected removal is abandoned, and logged.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overHTTP)
	w.via(func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if operation(r) == "DeleteItem" {
			return fault(r, 400, "ValidationException"), nil
		}
		return send(r)
	})
	events := &recorder{}
	o := w.options(Auto)
	o.Observe = events.observe
	w.put("a", w.in(1))
	r := w.startIdle(o)
	ended := make(chan armed.Outcome, 1)
	e := r.entry(w, "a")
	e.Armer = armed.Func(func(o armed.Outcome) { ended <- o })
	r.arm(e)
	w.advance(time.Second)
	r.awaitCount(Failed, 1)
	if got := <-ended; got != armed.Failed {
		t.Errorf("it has ended as %d", got)
	}
	if got := events.of(Failed); len(got) != 1 || got[0].Err == nil || got[0].Key == "" {
		t.Errorf("events: %v", got)
	}
}

// A removal that is under way at guard's end completes before the strategy ends; later deadlines
// are left alone.
func TestEndsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := w.tapped()
	began, goOn := make(chan struct{}), make(chan struct{})
	tap.do(func(_ context.Context, operation string, _ any) error {
		if operation == "DeleteItem" {
			close(began)
			<-goOn
		}
		return nil
	})
	w.put("due", w.in(1))
	w.put("later", w.in(100))
	var order []string
	ready := make(chan struct{})
	r := w.startWith(w.options(Auto), func(*Guard) runner {
		return strategyFunc(func(ctx context.Context) error {
			close(ready)
			<-ctx.Done()
			order = append(order, "strategy")
			return nil
		})
	})
	<-ready
	e := r.entry(w, "due")
	e.Armer = armed.Func(func(armed.Outcome) { order = append(order, "removal") })
	r.arm(e)
	r.arm(r.entry(w, "later"))
	w.advance(time.Second)
	<-began
	stopped := make(chan error)
	go func() { stopped <- r.stop() }()
	select {
	case <-stopped:
		t.Error("it has ended with a removal under way")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	must(t, <-stopped)
	if !slices.Equal(order, []string{"removal", "strategy"}) || w.has("due") || !w.has("later") {
		t.Errorf("order: %v", order)
	}
}

type strategyFunc func(context.Context) error

func (f strategyFunc) Run(ctx context.Context) error { return f(ctx) }

// Batches go by transactions. Items that were renewed do not hold the others up.
func TestBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := w.tapped()
	const count = 200
	w.fill("i", count, w.in(1))
	o := w.options(Auto)
	o.Batch, o.Concurrency, o.DB = 25, 1, w.db
	r := w.startIdle(o)
	for i := range count {
		r.arm(r.entry(w, fmt.Sprint("i", i)))
	}
	for i := range 10 {
		w.renew(fmt.Sprint("i", i*17), w.in(100))
	}
	w.remove("i1")
	w.advance(time.Second)
	r.awaitCount(Removed, count-11)
	r.awaitCount(Refused, 11)
	if w.count() != 10 {
		t.Errorf("%d items are left", w.count())
	}
	if singles := len(tap.of("DeleteItem")); singles > 11 {
		t.Errorf("%d items were removed one by one", singles)
	}
}

// withoutWaits returns a client of streams to which the server does not show that it is a mayfly.
func withoutWaits(c *dynamodbstreams.Client) *dynamodbstreams.Client {
	return dynamodbstreams.New(c.Options(), func(o *dynamodbstreams.Options) {
		to := o.HTTPClient
		o.HTTPClient = through(func(r *http.Request) (*http.Response, error) {
			answer, err := to.Do(r)
			if err == nil {
				answer.Header.Del(headerWait)
			}
			return answer, err
		})
	})
}

// Transactions are used by themselves only at a mayfly, which the stream's answers show, and only if
// nothing needs removals one by one.
func TestBatchFree(t *testing.T) {
	t.Parallel()
	changes := func(f func(*Options)) func(*world, *Options) {
		return func(_ *world, o *Options) { f(o) }
	}
	for name, c := range map[string]struct {
		change func(*world, *Options)
		free   bool
	}{
		"stream":        {changes(func(*Options) {}), true},
		"one by one":    {changes(func(o *Options) { o.Batch = 0 }), false},
		"scan":          {changes(func(o *Options) { o.Strategy = Scan }), false},
		"mark":          {changes(func(o *Options) { o.Mark = "gone" }), false},
		"write units":   {changes(func(o *Options) { o.MaxWCU = 1e6 }), false},
		"rate":          {changes(func(o *Options) { o.MaxRate = 1e6 }), false},
		"archive":       {changes(func(o *Options) { o.Archive = &archived{} }), false},
		"other servers": {func(w *world, o *Options) { o.Streams = withoutWaits(o.Streams) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, overHTTP)
			tap := w.tapped()
			o := w.options(Stream)
			o.Batch = BatchFree
			c.change(w, &o)
			o.DB = w.db
			r := w.start(o)
			<-r.Ready()
			if o.Strategy == Stream && name != "other servers" { // the stream's first answer may come after the removals otherwise
				n := int64(0)
				await(t, "an answer shows that this is a mayfly", func() bool { n++; w.put("far", w.in(1e6+n)); return r.free.Load() })
			}
			const count = 100
			w.fill("i", count, w.in(5))
			if o.Strategy == Stream {
				r.awaitCount(Armed, count)
			}
			w.advance(5 * time.Second)
			r.awaitCount(Removed, count)
			var batches int
			tap.mu.Lock()
			defer tap.mu.Unlock()
			for _, call := range tap.calls {
				if in, ok := call.in.(*dynamodb.TransactWriteItemsInput); ok {
					if first := in.TransactItems[0].Delete; first != nil && *first.TableName == worldTable {
						batches++
					}
				}
			}
			if (batches > 0) != c.free {
				t.Errorf("%d transactions have removed items", batches)
			}
		})
	}
}

// A transaction that the endpoint cancels for other reasons is repeated, and a rejected one is
// divided into single removals.
func TestBatchesWithObstacles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tap := w.tapped()
		var calls atomic.Int64
		tap.do(func(_ context.Context, operation string, in any) error {
			if operation != "TransactWriteItems" {
				return nil
			}
			items := len(in.(*dynamodb.TransactWriteItemsInput).TransactItems)
			reasons := make([]types.CancellationReason, items)
			for i := range reasons {
				reasons[i].Code = aws.String("None")
			}
			switch calls.Add(1) {
			case 1:
				reasons[0].Code = aws.String("TransactionConflict")
				return &types.TransactionCanceledException{CancellationReasons: reasons}
			case 2:
				reasons[items-1].Code = aws.String("ThrottlingError")
				return &types.TransactionCanceledException{CancellationReasons: reasons}
			case 3:
				reasons[0].Code = aws.String("ValidationError")
				return &types.TransactionCanceledException{CancellationReasons: reasons}
			case 4:
				return refusal("ValidationException")
			case 5:
				return refusal("ThrottlingException")
			}
			return nil
		})
		const count = 100
		w.fill("i", count, w.in(1))
		o := w.options(Auto)
		o.Batch, o.Concurrency, o.DB = 10, 2, w.db
		r := w.startIdle(o)
		for i := range count {
			r.arm(r.entry(w, fmt.Sprint("i", i)))
		}
		w.advance(time.Second)
		r.awaitCount(Removed, count)
		if w.count() != 0 || r.Stats().Counts[Refused] != 0 || r.Stats().Counts[Failed] != 0 {
			t.Errorf("%d are left; %+v", w.count(), r.Stats())
		}
	})
}

// With a mark the stream distinguishes an expiry from a deletion by another client, also of an item
// that was renewed between guard's two steps.
func TestMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := w.tapped()
	deadline := w.in(1) + ".50"
	tap.do(func(_ context.Context, operation string, in any) error {
		if in, is := in.(*dynamodb.DeleteItemInput); is {
			switch in.Key["pk"].(*types.AttributeValueMemberS).Value {
			case "between":
				w.renew("between", w.in(100))
			case "again": // as it was, and so without the mark
				w.put("again", deadline)
			}
		}
		return nil
	})
	for _, name := range []string{"expires", "deleted", "between", "again", "before"} {
		w.put(name, deadline)
	}
	o := w.options(Auto)
	o.Mark, o.DB = "expired", w.db
	r := w.startIdle(o)
	for _, name := range []string{"expires", "between", "again", "before"} {
		r.arm(r.entry(w, name))
	}
	w.renew("before", w.in(200))
	w.remove("deleted")
	w.advance(2 * time.Second)
	r.awaitCount(Removed, 1)
	r.awaitCount(Refused, 3)
	if w.has("expires") || !w.has("between") || !w.has("again") || !w.has("before") {
		t.Error("the wrong items are gone")
	}
	if w.get("before")["expired"] != nil {
		t.Error("a renewed item was marked")
	}
	w.remove("between") // by its user
	removals := map[string]bool{}
	for _, record := range w.records() {
		if record.EventName == streamtypes.OperationTypeRemove {
			removals[record.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS).Value] = consume.Expired(&record, "ttl", "expired")
		}
	}
	if len(removals) != 3 || !removals["expires"] || removals["deleted"] || removals["between"] {
		t.Errorf("removals that the stream takes for expiries: %v", removals)
	}
}

// archived collects the deliveries to an archive.
type archived struct {
	mu    sync.Mutex
	ids   []string
	items []Expiry
	fail  func(d target.Delivery) error // nil: it does not
}

func (a *archived) Deliver(_ context.Context, deliveries []target.Delivery) []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		if a.fail != nil {
			if results[i] = a.fail(d); results[i] != nil {
				continue
			}
		}
		var e Expiry
		if results[i] = json.Unmarshal(d.Body, &e); results[i] == nil {
			a.ids, a.items = append(a.ids, d.ID), append(a.items, e)
		}
	}
	return results
}

// The archive gets each item before its removal, and its last state if that differs. A renewed item
// is not archived as removed, and an item that the archive rejects stays.
func TestArchive(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"", "expired"} {
		t.Run("mark "+mark, func(t *testing.T) {
			w := newWorld(t)
			tap := w.tapped()
			more := func(v string) map[string]types.AttributeValue { return map[string]types.AttributeValue{"data": s(v)} }
			archive := &archived{}
			tries := 0
			archive.fail = func(d target.Delivery) error {
				switch {
				case strings.Contains(d.Subject, "refused"):
					return target.Permanent("TooLarge", "by the test")
				case strings.Contains(d.Subject, "again") && tries < 2:
					if tries++; d.Attempt != tries {
						t.Errorf("attempt %d says that it is number %d", tries, d.Attempt)
					}
					return errors.New("not now")
				}
				return nil
			}
			tap.do(func(_ context.Context, operation string, in any) error {
				if in, is := in.(*dynamodb.DeleteItemInput); is && in.Key["pk"].(*types.AttributeValueMemberS).Value == "changed" {
					_, err := w.DynamoDB().UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
						TableName: aws.String(worldTable), Key: in.Key, UpdateExpression: aws.String("SET #d = :d"), ExpressionAttributeNames: map[string]string{"#d": "data"},
						ExpressionAttributeValues: map[string]types.AttributeValue{":d": s("late")},
					})
					must(t, err)
				}
				return nil
			})
			o := w.options(Auto)
			o.Archive, o.Mark, o.DB = archive, mark, w.db
			for _, name := range []string{"plain", "changed", "refused", "again", "renewed"} {
				w.put(name, w.in(1), more("first"))
			}
			r := w.startIdle(o)
			for _, name := range []string{"plain", "changed", "refused", "again", "renewed"} {
				r.arm(r.entry(w, name))
			}
			w.renew("renewed", w.in(100))
			w.advance(time.Second)
			r.awaitCount(Removed, 3)
			r.awaitCount(Refused, 1)
			r.awaitCount(Failed, 1)
			if !w.has("refused") || !w.has("renewed") || w.count() != 2 {
				t.Error("the wrong items are gone")
			}
			archive.mu.Lock()
			defer archive.mu.Unlock()
			got := map[string]string{}
			for i, e := range archive.items {
				if !strings.Contains(string(e.Item), `"ttl"`) || !e.Deadline.Equal(epoch.Add(time.Second)) || e.Final != strings.HasSuffix(archive.ids[i], "-final") {
					t.Errorf("archived: %+v", e)
				}
				for _, name := range []string{"plain", "changed", "again"} {
					if strings.Contains(string(e.Key), name) {
						got[name] += fmt.Sprintf("%v %v;", e.Final, strings.Contains(string(e.Item), "late"))
					}
				}
			}
			want := map[string]string{"plain": "false false;", "again": "false false;", "changed": "false false;true true;"}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("archived: %v, want %v", got, want)
			}
		})
	}
}

// A delivery's id is the same in every process, and for every notation of the deadline.
func TestArchiveIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := map[string]bool{}
	for _, ttl := range []string{"1893456010", "1893456010.0", "1.89345601E9"} {
		w.put("a", ttl)
		archive := &archived{}
		o := w.options(Auto)
		o.Archive = archive
		r := w.startIdle(o)
		f := armed.Removal{Entry: r.entry(w, "a")}
		must(t, r.archive(t.Context(), f, w.get("a"), false))
		ids[archive.ids[0]] = true
		must(t, r.stop())
	}
	if len(ids) != 1 {
		t.Errorf("ids: %v", ids)
	}
}

// Units are counted, and make the cost.
func TestStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill("i", 10, w.in(1))
	w.put("soon", w.in(61))
	w.put("late", w.in(100_000))
	r := w.startIdle(w.options(Auto))
	if s := r.Stats(); s.CostPerMillion() == s.CostPerMillion() {
		t.Error("a cost without removals")
	}
	for i := range 10 {
		r.arm(r.entry(w, fmt.Sprint("i", i)))
	}
	r.arm(r.entry(w, "soon"))
	r.arm(r.entry(w, "late"))
	w.advance(3 * time.Second)
	r.awaitCount(Removed, 10)
	s := r.Stats()
	if s.Write != 10 || s.CostPerMillion() != PriceWrite || s.Armed != 2 || s.Due != 0 || s.Upcoming[0] != 1 || !s.Next.Equal(epoch.Add(61*time.Second)) {
		t.Errorf("%+v, %v dollars a million", s, s.CostPerMillion())
	}
	if s.Lateness.Count != 10 || s.Lateness.Max != 2*time.Second || s.Lateness.Quantile(0.5) != 2*time.Second {
		t.Errorf("lateness: %+v", s.Lateness)
	}
}
