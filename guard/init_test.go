package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (w *world) initOptions() InitOptions {
	return InitOptions{DB: w.db, Table: worldTable, MaxRCU: 1e6, MaxWCU: 1e6, clock: w.local}
}

// initTable runs Init and checks that its progress ends with everything.
func (w *world) initTable(o InitOptions) InitReport {
	w.t.Helper()
	var last int64
	report, err := Init(context.Background(), o, func(done, total int64) {
		if done < last || total < done {
			w.t.Errorf("%d of %d are done, after %d", done, total, last)
		}
		last = done
	})
	must(w.t, err)
	if last != report.Scanned {
		w.t.Errorf("the progress ends with %d, but %d were scanned", last, report.Scanned)
	}
	return report
}

// partition is the index's partition key of an item.
func (w *world) partition(name, attribute string) string {
	w.t.Helper()
	v, _ := w.get(name)[attribute].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// Init makes the index and places each item in it; then guard needs no options to sweep it.
func TestInit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		granularity time.Duration
		shards      int
		index, key  string
		layout      string
	}{
		{"shards", 0, 0, "expirationShardIndex", "expirationShard", "4 shards"},
		{"windows", time.Minute, 0, windowIndex, "expirationWindow", "windows of 1m0s"},
		{"windows of shards", 10 * time.Second, 3, windowIndex, "expirationWindow", "windows of 10s in 3 shards"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, withSort)
			for i := range int64(200) {
				w.put(fmt.Sprintf("i/%d", i), w.in(1+i))
			}
			w.put("fraction/1", w.in(3)+".5")
			w.put("without/1", "")
			w.put("milliseconds/1", "1893456000000")
			w.put("a text/1", "", map[string]types.AttributeValue{"note": &types.AttributeValueMemberS{Value: "x"}})
			o := w.initOptions()
			o.Granularity, o.Shards = c.granularity, c.shards
			want := InitReport{Index: c.index, Key: c.key, Layout: c.layout, Created: true, Scanned: 204, Written: 201, Without: 2, Bad: 1}
			dry := o
			dry.DryRun = true
			if report := w.initTable(dry); report != want {
				t.Errorf("a dry run reports %+v", report)
			}
			if d, _ := w.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)}); len(d.Table.GlobalSecondaryIndexes) != 0 || w.partition("i/1", c.key) != "" {
				t.Error("a dry run has made something")
			}
			if report := w.initTable(o); report != want {
				t.Errorf("reports %+v", report)
			}
			d, err := w.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
			must(t, err)
			if p := d.Table.GlobalSecondaryIndexes[0].Projection.ProjectionType; p != types.ProjectionTypeKeysOnly {
				t.Errorf("the index projects %s", p)
			}
			want.Created, want.Written, want.Right = false, 0, 201
			if report := w.initTable(o); report != want {
				t.Errorf("a second run reports %+v", report)
			}
			r := w.startSweeps(w.options(Index))
			for range 100 {
				w.advance(time.Second)
			}
			r.awaitCount(Removed, 101)
			if w.has("fraction/1") || w.count() != 204-101 {
				t.Errorf("%d items are left", w.count())
			}
		})
	}
}

// Init stores the index's layout; with another layout it moves the items.
func TestInitAnotherLayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range int64(50) {
		w.put(fmt.Sprint(i), w.in(100+i))
	}
	o := w.initOptions()
	o.Granularity, o.IndexName, o.Key = time.Minute, "deadlines", "place"
	w.initTable(o)
	o.Granularity, o.Shards = 0, 3
	if report := w.initTable(o); report != (InitReport{Index: "deadlines", Key: "place", Layout: "3 shards", Scanned: 50, Written: 50}) {
		t.Errorf("reports %+v", report)
	}
	if got, want := w.partition("7", "place"), Shard("7", 3); got != want {
		t.Errorf("7 is in %s, want %s", got, want)
	}
	r := w.startSweeps(w.options(Index))
	w.advance(200 * time.Second)
	r.awaitCount(Removed, 50)
}

// An item that is renewed before Init writes it is placed by its new TTL; one that is deleted does
// not come back.
func TestInitBesideWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	w.put("renewed", w.in(100))
	w.put("deleted", w.in(100))
	var once sync.Map
	tap.do(func(_ context.Context, operation string, in any) error {
		u, ok := in.(*dynamodb.UpdateItemInput)
		if !ok || tableOf(in) != worldTable {
			return nil
		}
		name := u.Key["pk"].(*types.AttributeValueMemberS).Value
		if _, was := once.LoadOrStore(name, true); was {
			return nil
		}
		if name == "renewed" {
			w.renew(name, w.in(1000))
		} else {
			w.remove(name)
		}
		return nil
	})
	o := w.initOptions()
	o.DB, o.Granularity = w.db, time.Minute
	if report := w.initTable(o); report.Renewed != 2 || report.Written != 1 {
		t.Errorf("reports %+v", report)
	}
	if got := w.partition("renewed", "expirationWindow"); got != Window(w.now().Unix()+1000, time.Minute) {
		t.Errorf("the renewed item is in %s", got)
	}
	if w.has("deleted") {
		t.Error("a deleted item has come back")
	}
}

// An interrupted run resumes at its position.
func TestInitResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	tap := w.tapped()
	const n = 600
	for i := range n {
		w.put(fmt.Sprint(i), w.in(1000))
	}
	o := w.initOptions()
	o.DB, o.Segments, o.MaxRCU = w.db, 1, 200 // 100 items a page
	ctx, cancel := context.WithCancel(t.Context())
	var updates atomic.Int64
	tap.do(func(_ context.Context, operation string, _ any) error {
		if operation == "UpdateItem" && updates.Add(1) == n/2 {
			cancel()
		}
		return nil
	})
	first, err := Init(ctx, o, nil)
	if !errors.Is(err, context.Canceled) || first.Scanned == 0 || first.Scanned >= n {
		t.Fatalf("ended with %v, after %+v", err, first)
	}
	tap.do(nil)
	second := w.initTable(o)
	if first.Scanned+second.Scanned != n {
		t.Errorf("%d and %d items were scanned of %d", first.Scanned, second.Scanned, n)
	}
	if third := w.initTable(o); third.Scanned != n || third.Right != n {
		t.Errorf("then %+v", third)
	}
}

// An index of the same shape may be the application's, for example of users by the end of their
// sessions. It is not used as an index of deadlines, and nothing in it is overwritten.
func TestInitLeavesTheApplicationsAttributesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withIndex("byUser", "user", "N"))
	w.put("a", w.in(100), text("user", "alice"))
	w.put("b", w.in(100), text("user", "42"))
	untouched := func() {
		t.Helper()
		if a, b := w.partition("a", "user"), w.partition("b", "user"); a != "alice" || b != "42" {
			t.Fatalf("the users are %q and %q", a, b)
		}
	}
	refused := func(change func(*InitOptions), says string) {
		t.Helper()
		o := w.initOptions()
		change(&o)
		for _, o.DryRun = range []bool{true, false} {
			_, err := Init(t.Context(), o, nil)
			var p *Problem
			if !errors.As(err, &p) || p.Code != Misconfigured || !strings.Contains(p.Message, says) || !strings.Contains(p.Next, "--key") {
				t.Errorf("ends with %v", err)
			}
			untouched()
		}
	}
	refused(func(o *InitOptions) { o.IndexName = "byUser" }, `{"user":{"S":"alice"}}`)
	refused(func(o *InitOptions) { o.Key = "user" }, `{"user":{"S":"alice"}}`)
	o := w.options(Auto)
	o.Streams = nil
	g, err := New(o)
	must(t, err)
	must(t, g.prepare(t.Context()))
	if name, _ := g.choose(t.Context()); name != Scan {
		t.Errorf("without a stream, %s is chosen", name)
	}
	r := w.start(w.indexOptions())
	<-r.over
	var p *Problem
	if !errors.As(r.stop(), &p) || p.Code != Misconfigured || !strings.Contains(p.Message, "neither windows nor shards") || !strings.Contains(p.Next, "--index") {
		t.Errorf("a guard of the index ends with %v", r.err)
	}
	if report := w.initTable(w.initOptions()); report.Index != "expirationShardIndex" || !report.Created || report.Written != 2 {
		t.Errorf("reports %+v", report)
	}
	untouched()
	must(t, g.prepare(t.Context()))
	if name, _ := g.choose(t.Context()); name != Index {
		t.Errorf("with the index, %s is chosen", name)
	}
	w.put("c", w.in(100), text("expirationShard", "of the application"))
	refused(func(*InitOptions) {}, "of the application")
	if got := w.partition("c", "expirationShard"); got != "of the application" {
		t.Errorf("it is %q now", got)
	}
}

// The scan and the backfill keep to their budgets.
func TestInitBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withShards)
		w.fill("a", 300, w.in(1000))
		o := w.initOptions()
		o.MaxWCU = 100
		began := time.Now()
		if report := w.initTable(o); report.Written != 300 {
			t.Errorf("reports %+v", report)
		}
		// 300 items of 2 units each; 25 units are free at first, and up to 64 items are under way at
		// the end
		if took := time.Since(began); took < 4400*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// An item that the endpoint does not let be written does not end the run, unless there is no other.
func TestInitItemsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withShards)
	tap := w.tapped()
	for i := range 40 {
		w.put(fmt.Sprint(i), w.in(1000))
	}
	refuses := func(only string) {
		tap.do(func(_ context.Context, _ string, in any) error {
			if u, ok := in.(*dynamodb.UpdateItemInput); ok && (only == "" || u.Key["pk"].(*types.AttributeValueMemberS).Value == only) {
				return refusal("ValidationException")
			}
			return nil
		})
	}
	o := w.initOptions()
	o.DB = w.db
	refuses("")
	var p *Problem
	if _, err := Init(t.Context(), o, nil); !errors.As(err, &p) || p.Code != Misconfigured {
		t.Errorf("ended with %v", err)
	}
	refuses("7")
	if report := w.initTable(o); report.Failed != 1 || report.Written != 39 {
		t.Errorf("reports %+v", report)
	}
}

// Bad input is a problem with its next step.
func TestInitProblems(t *testing.T) {
	t.Parallel()
	noTTL := func(w *world) {
		_, err := w.DynamoDB().CreateTable(context.Background(), &dynamodb.CreateTableInput{
			TableName: aws.String("bare"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "N"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		})
		must(w.t, err)
	}
	for _, c := range []struct {
		name   string
		with   []func(*world)
		change func(*world, *InitOptions)
		code   Code
		text   string
	}{
		{"no table", nil, func(_ *world, o *InitOptions) { o.Table = "nothing" }, NoTable, "nothing"},
		{"no attribute", nil, func(w *world, o *InitOptions) { noTTL(w); o.Table = "bare" }, NoAttribute, "TTL of table bare is off"},
		{"index of another shape", []func(*world){withWindows}, func(_ *world, o *InitOptions) { o.Attribute, o.IndexName = "until", windowIndex }, NoIndex, "sort key until"},
		{"TTL is a text", []func(*world){withIndex("texts", "k", "S")}, func(_ *world, o *InitOptions) {}, NoIndex, "ttl has the type S"},
		{"partition key is a number", nil, func(w *world, o *InitOptions) { noTTL(w); o.Table, o.Attribute, o.Key = "bare", "ttl", "pk" }, NoIndex, "pk has the type N"},
		{"partition key is the TTL", nil, func(_ *world, o *InitOptions) { o.Key = "ttl" }, Misconfigured, "for something else"},
		{"partition key is the table's", nil, func(_ *world, o *InitOptions) { o.Key = "pk" }, Misconfigured, "for something else"},
		{"name is taken", []func(*world){withWindows}, func(_ *world, o *InitOptions) { o.Key, o.IndexName = "other", windowIndex }, NoIndex, "of a different shape"},
		{"two indexes", []func(*world){withWindows, withShards}, func(_ *world, o *InitOptions) {}, Misconfigured, "several indexes"},
		{"endpoint makes no indexes", nil, func(w *world, o *InitOptions) {
			tap := w.tapped()
			tap.do(func(_ context.Context, operation string, _ any) error {
				if operation == "UpdateTable" {
					return refusal("ValidationException")
				}
				return nil
			})
			o.DB = w.db
		}, NoIndex, "refuses to create the index"},
		{"endpoint forgets the index", []func(*world){}, func(w *world, o *InitOptions) {
			tap := w.tapped()
			tap.after = func(_ string, _, out any) {
				if d, ok := out.(*dynamodb.DescribeTableOutput); ok {
					d.Table.GlobalSecondaryIndexes = nil
				}
			}
			o.DB = w.db
		}, NoIndex, "did not create it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.with...)
			o := w.initOptions()
			c.change(w, &o)
			_, err := Init(t.Context(), o, nil)
			var p *Problem
			if !errors.As(err, &p) || p.Code != c.code || !strings.Contains(p.Message, c.text) || p.Next == "" {
				t.Errorf("ended with %+v", err)
			}
		})
	}
	for text, o := range map[string]InitOptions{
		"Table: missing":       {DB: newWorld(t).db},
		"Shards: 10001":        {Table: "t", Shards: 10_001},
		"is not whole seconds": {Table: "t", Granularity: 1500 * time.Millisecond},
		"DB: missing client":   {Table: "t"},
	} {
		if _, err := Init(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Init makes the index where the API is another: the numbers of ProvisionedThroughput are wanted for
// a table on demand (dynalite; DynamoDB Local, whose documentation says that it ignores them), or
// indexes have no status (scylladb/scylladb#11471). Where no index can be made, it ends at once.
func TestInitElsewhere(t *testing.T) {
	wantsNumbers := quirk{refuses: func(c *exchange) string {
		for _, update := range objects(c.in, "GlobalSecondaryIndexUpdates") {
			index := object(update, "Create")
			if c.operation != "UpdateTable" || index["ProvisionedThroughput"] == nil {
				return "ValidationException"
			}
			delete(index, "ProvisionedThroughput")
		}
		return ""
	}}
	noStatus := quirk{changes: func(c *exchange) {
		for _, index := range objects(object(c.out, "Table"), "GlobalSecondaryIndexes") {
			delete(index, "IndexStatus")
		}
	}}
	refusal := func(code string) quirk {
		return quirk{refuses: func(c *exchange) string {
			if c.operation == "UpdateTable" {
				return code
			}
			return ""
		}}
	}
	for _, c := range []struct {
		name  string
		quirk quirk
		ends  Code
	}{
		{"throughput of indexes", wantsNumbers, ""},
		{"no status of indexes", noStatus, ""},
		{"no UpdateTable", refusal("UnknownOperationException"), NoIndex},
		{"no new indexes", refusal("ValidationException"), NoIndex}, // Alternator before 2025.1: scylladb/scylladb#11567
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, overHTTP)
			w.db, _ = w.double(t, c.quirk)
			w.put("soon", w.in(2))
			report, err := Init(t.Context(), w.initOptions(), nil)
			p, _ := errors.AsType[*Problem](err)
			switch {
			case c.ends == "" && (err != nil || !report.Created || report.Written != 1):
				t.Errorf("reports %+v, and ends with %v", report, err)
			case c.ends != "" && (p == nil || p.Code != c.ends):
				t.Errorf("ends with %v", err)
			case c.ends == "":
				r := w.start(w.indexOptions())
				r.awaitCount(Armed, 1)
				w.advance(2 * time.Second)
				r.awaitCount(Removed, 1)
			}
		})
	}
}
