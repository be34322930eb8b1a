package guard

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// startDynalite runs dynalite, an independent implementation of DynamoDB, from .ci/clients.
func startDynalite(t *testing.T) *dynamodb.Client {
	t.Helper()
	url := testkit.Dynalite(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &url,
		HTTPClient: &http.Client{Transport: transport},
	})
}

// elsewhere is the table "items" in dynalite, with sort keys, and a secondary index on request.
type elsewhere struct {
	t  *testing.T
	db *dynamodb.Client
}

func newElsewhere(t *testing.T, index, key string) *elsewhere {
	t.Helper()
	e := &elsewhere{t, startDynalite(t)}
	in := &dynamodb.CreateTableInput{
		TableName: aws.String(worldTable), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("sk"), AttributeType: "N"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}, {AttributeName: aws.String("sk"), KeyType: "RANGE"}},
	}
	if index != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &key, AttributeType: "S"}, types.AttributeDefinition{AttributeName: aws.String("ttl"), AttributeType: "N"})
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName:  &index,
			KeySchema:  []types.KeySchemaElement{{AttributeName: &key, KeyType: "HASH"}, {AttributeName: aws.String("ttl"), KeyType: "RANGE"}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}
	}
	_, err := e.db.CreateTable(t.Context(), in)
	must(t, err)
	await(t, "the table is there", func() bool {
		out, err := e.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
		return err == nil && out.Table.TableStatus == types.TableStatusActive
	})
	return e
}

func (e *elsewhere) put(n int, ttl int64, more map[string]types.AttributeValue) {
	e.t.Helper()
	item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: fmt.Sprint("item", n%7)}, "sk": attr.Int(int64(n)), "ttl": attr.Int(ttl)}
	maps.Copy(item, more)
	_, err := e.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(worldTable), Item: item})
	must(e.t, err)
}

// all returns the numbers of the existing items.
func (e *elsewhere) all() map[string]bool {
	e.t.Helper()
	all := map[string]bool{}
	pages := dynamodb.NewScanPaginator(e.db, &dynamodb.ScanInput{TableName: aws.String(worldTable), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		must(e.t, err)
		for _, item := range page.Items {
			all[item["sk"].(*types.AttributeValueMemberN).Value] = true
		}
	}
	return all
}

// guards runs guard over items that expire within the next seconds, and renews some of them in
// their last second. It checks that each item goes at its deadline and not before.
func (e *elsewhere) guards(o Options, place func(n int, ttl int64) map[string]types.AttributeValue) {
	t := e.t
	t.Helper()
	const n, renewed = 120, 10
	var (
		mu    sync.Mutex
		late  []time.Duration
		early int
	)
	o.DB, o.Table, o.Attribute, o.Period, o.Segments = e.db, worldTable, "ttl", time.Second, 2
	o.Logger, o.AcceptOverdue = nil, -1 // under load the first are due when guard begins
	o.Observe = func(event Event) {
		mu.Lock()
		defer mu.Unlock()
		if event.What == Removed {
			late = append(late, event.Late)
		}
	}
	began := time.Now().Unix()
	deadline := func(i int) int64 { return began + 5 + int64(i%4) }
	for i := range n {
		e.put(i, deadline(i), place(i, deadline(i)))
	}
	e.put(n, began+1000, place(n, began+1000))
	e.put(n+1, began-100, place(n+1, began-100))
	w := &world{t: t}
	r := w.start(o)
	r.await("those that are to be renewed are armed", func() bool { return r.Stats().Counts[Armed] > renewed && time.Now().Unix() >= began+2 })
	inTime := 0 // renewals; on a busy machine others come after the deadline, and may write an item anew that was removed
	for i := range renewed {
		e.put(i*4, began+1000, place(i*4, began+1000)) // with the earliest deadline
		if time.Now().UnixMilli() < deadline(i*4)*1000 {
			inTime++
		}
	}
	for left := e.all(); ; left = e.all() {
		for i := range n { // the list is older than this instant
			if now := time.Now().UnixMilli(); !left[fmt.Sprint(i)] && now < deadline(i)*1000 {
				early++
			}
		}
		if len(left) <= renewed+1 {
			break
		}
		if time.Now().Unix() > began+90 {
			t.Fatalf("%d items are left", len(left))
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.awaitCount(Removed, n+1-renewed)
	left := e.all()
	for i := range renewed {
		if !left[fmt.Sprint(i*4)] {
			t.Errorf("item %d was renewed, and is gone", i*4)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if early > 0 || len(left) != renewed+1 || len(late) < n+1-renewed || len(late) > n+1-inTime {
		t.Errorf("%d too early, %d left, %d removed, %d renewed in time", early, len(left), len(late), inTime)
	}
	counts := r.Stats().Counts
	t.Logf("%d renewed in time, removed %d, refused %d, throttled %d", inTime, counts[Removed], counts[Refused], counts[Throttled])
}

// The strategies work at an implementation that is not ours.
func TestDynaliteIndexOfWindows(t *testing.T) {
	t.Parallel() // it waits for deadlines most of the time
	e := newElsewhere(t, windowIndex, windowAttribute)
	e.guards(Options{Strategy: Index, Alone: true}, func(_ int, ttl int64) map[string]types.AttributeValue {
		return text(windowAttribute, Window(ttl, time.Minute))
	})
}

func TestDynaliteIndexOfShardsByAFleet(t *testing.T) {
	t.Parallel() // it waits for deadlines most of the time
	e := newElsewhere(t, shardIndex, shardAttribute)
	e.guards(Options{Strategy: Index, Shards: 3, Lease: 2 * time.Second}, func(n int, _ int64) map[string]types.AttributeValue {
		return text(shardAttribute, Shard(fmt.Sprint(n), 3))
	})
}

func TestDynaliteScan(t *testing.T) {
	t.Parallel() // it waits for deadlines most of the time
	e := newElsewhere(t, "", "")
	e.guards(Options{Strategy: Scan, Alone: true, MaxRCU: 1000}, func(int, int64) map[string]types.AttributeValue { return nil })
}

// Init fills an existing index. It cannot create one at dynalite, which accepts the request and
// forgets it.
func TestDynaliteInit(t *testing.T) {
	t.Parallel() // it waits for deadlines most of the time
	e := newElsewhere(t, shardIndex, shardAttribute)
	soon := time.Now().Unix() + 2
	for i := range 60 {
		e.put(i, soon, nil)
	}
	report, err := Init(t.Context(), InitOptions{DB: e.db, Table: worldTable, Attribute: "ttl"}, nil)
	must(t, err)
	if report != (InitReport{Index: shardIndex, Key: shardAttribute, Layout: "4 shards", Scanned: 60, Written: 60}) {
		t.Errorf("reports %+v", report)
	}
	w := &world{t: t}
	o := Options{DB: e.db, Table: worldTable, Attribute: "ttl", Strategy: Index, Period: time.Second, Alone: true, AcceptOverdue: -1}
	w.start(o).awaitCount(Removed, 60)
	if time.Now().Unix() < soon {
		t.Error("removed early")
	}

	if _, err := Init(t.Context(), InitOptions{DB: e.db, Table: worldTable, Attribute: "ttl", IndexName: "another", Key: "other"}, nil); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("ended with %v", err)
	}
}
