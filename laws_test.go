package mayfly

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	str "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/conformance"
	"github.com/mayflydb/mayfly/internal/faulttest"
	"github.com/mayflydb/mayfly/internal/invariant"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// The laws (ARCHITECTURE.md, "Tests") from a client's view, over the in-process transport and over
// HTTP. With the build tag invariants, each also runs with the engine broken on purpose, and must
// notice. The engine's own tests of the same names force the interleavings that happen here by
// chance only.

// subject is a database under test and the clients that watch it.
type subject struct {
	testing.TB
	*DB
	api     *dynamodb.Client
	records *dynamodbstreams.Client
	start   time.Time     // where the clock was frozen
	lag     time.Duration // the time from an item's deadline to its removal; 0: strict expiry
	broken  []string      // receives findings, instead of failing the test
}

// lawBroken ends a law at its first fatal finding.
type lawBroken struct{}

func (s *subject) broke(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

// must ends the law if a call fails.
func (s *subject) must(err error) {
	if err != nil {
		s.broke("%v", err)
		panic(lawBroken{})
	}
}

// lawStart lies ahead of every machine's clock, so that a database opened again continues from its
// own last instant.
var lawStart = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// awsLag is the lag of laws in aws expiry.
const awsLag = 5 * time.Second

func lawOptions(lag time.Duration, fs kv.FS) Options {
	o := Options{Start: lawStart, Frozen: true, ClockControl: ClockControlOn, fs: fs}
	if lag != 0 {
		o.Expiry, o.ExpiryDelay = ExpiryAWS, "fixed:"+lag.String()
	}
	return o
}

// openSubject opens a frozen database in memory, or on disk if fs is set.
func openSubject(t testing.TB, overHTTP bool, lag time.Duration, fs kv.FS) *subject {
	options := lawOptions(lag, fs)
	dir := ""
	if fs != nil {
		dir = "data"
	}
	db, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{TB: t, DB: db, api: db.DynamoDB(), records: db.Streams(), start: db.Clock().Now(), lag: lag}
	if overHTTP {
		s.api, s.records = httpClients(serve(t, db))
	}
	t.Cleanup(func() { _ = db.Close() })
	return s
}

// httpClients returns clients of an endpoint that do not retry.
func httpClients(url string) (*dynamodb.Client, *dynamodbstreams.Client) {
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: aws.String(url),
		HTTPClient: conformance.HTTPClient(), RetryMaxAttempts: 1}
	return dynamodb.NewFromConfig(config), dynamodbstreams.NewFromConfig(config)
}

// holdsInBoth checks a law in strict and in aws expiry.
func holdsInBoth(t *testing.T, fs func() kv.FS, law func(s *subject), faults ...invariant.Fault) {
	t.Run("strict", func(t *testing.T) { holdsWith(t, 0, fs, law, faults...) })
	t.Run("aws", func(t *testing.T) { holdsWith(t, awsLag, fs, law, faults...) })
}

// holds checks a law of strict expiry, or one without expiry.
func holds(t *testing.T, fs func() kv.FS, law func(s *subject), faults ...invariant.Fault) {
	holdsWith(t, 0, fs, law, faults...)
}

// holdsWith checks a law over both transports, and that it notices each fault.
func holdsWith(t *testing.T, lag time.Duration, fs func() kv.FS, law func(s *subject), faults ...invariant.Fault) {
	holdsOver(t, func(t *testing.T, overHTTP bool) []string {
		var disk kv.FS
		if fs != nil {
			disk = fs()
		}
		s := openSubject(t, overHTTP, lag, disk)
		func() {
			defer func() {
				if r := recover(); r != nil && r != (lawBroken{}) {
					panic(r)
				}
			}()
			law(s)
		}()
		return s.broken
	}, faults...)
}

// holdsOver runs a check of a law, which returns its findings, over both transports, and checks
// that it notices each fault.
func holdsOver(t *testing.T, check func(t *testing.T, overHTTP bool) []string, faults ...invariant.Fault) {
	for name, overHTTP := range map[string]bool{"in process": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			for _, b := range check(t, overHTTP) {
				t.Error(b)
			}
		})
		if !invariant.Enabled {
			continue
		}
		for _, f := range faults {
			t.Run(name+" "+f.String(), func(t *testing.T) {
				t.Cleanup(inject(f))           // after the database is closed: until then something may be between a fault and its check
				for range faulttest.Goes(20) { // a race may need several runs on a loaded machine
					if len(check(t, overHTTP)) > 0 {
						return
					}
				}
				t.Errorf("the law did not notice %v", f)
			})
		}
	}
}

// table creates a table with TTL, a stream and a global index.
func (s *subject) table(name string) (streamARN string) {
	out, err := s.api.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("g"), AttributeType: "S"}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		GlobalSecondaryIndexes: []ddb.GlobalSecondaryIndex{
			{IndexName: aws.String("byG"), KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("g"), KeyType: "HASH"}}, Projection: &ddb.Projection{ProjectionType: "ALL"}},
			{IndexName: aws.String("byBoth"), KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("g"), KeyType: "HASH"}, {AttributeName: aws.String("pk"), KeyType: "HASH"}}, Projection: &ddb.Projection{ProjectionType: "ALL"}},
		},
		StreamSpecification: &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: "NEW_AND_OLD_IMAGES"},
	})
	s.must(err)
	_, err = s.api.UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{TableName: &name,
		TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}})
	s.must(err)
	for {
		ttl, err := s.api.DescribeTimeToLive(context.Background(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		s.must(err)
		if ttl.TimeToLiveDescription.TimeToLiveStatus == ddb.TimeToLiveStatusEnabled {
			return *out.TableDescription.LatestStreamArn
		}
	}
}

// addIndex adds a global index on g to an existing table, and waits until it can be read.
func (s *subject) addIndex(table, index string) {
	_, err := s.api.UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: &table,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("g"), AttributeType: "S"}},
		GlobalSecondaryIndexUpdates: []ddb.GlobalSecondaryIndexUpdate{{Create: &ddb.CreateGlobalSecondaryIndexAction{IndexName: &index,
			KeySchema: []ddb.KeySchemaElement{{AttributeName: aws.String("g"), KeyType: "HASH"}}, Projection: &ddb.Projection{ProjectionType: "ALL"}}}}})
	s.must(err)
	for built := false; !built; {
		d, err := s.api.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &table})
		s.must(err)
		for _, ix := range d.Table.GlobalSecondaryIndexes {
			built = built || *ix.IndexName == index && ix.IndexStatus == ddb.IndexStatusActive
		}
	}
}

type attrs = map[string]ddb.AttributeValue

func str1(v string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: v} }

// expiring returns an item with a lifetime; 0: it never expires.
func (s *subject) expiring(pk string, life time.Duration) attrs {
	it := attrs{"pk": str1(pk), "g": str1("g")}
	if life != 0 {
		it["ttl"] = s.ttlAt(life)
	}
	return it
}

// ttlAt returns a TTL value d after the start, with its milliseconds.
func (s *subject) ttlAt(d time.Duration) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatFloat(float64(s.start.Add(d).UnixMilli())/1000, 'f', 3, 64)}
}

func (s *subject) put(table string, it attrs) {
	_, err := s.api.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	s.must(err)
}

func (s *subject) get(table, pk string) attrs {
	out, err := s.api.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &table, Key: attrs{"pk": str1(pk)}})
	s.must(err)
	return out.Item
}

func (s *subject) advance(d time.Duration) {
	_, err := s.Clock().Advance(context.Background(), d)
	s.must(err)
}

// stopReaper ends the background work, to show that a law does not depend on it.
func (s *subject) stopReaper() {
	s.stop()
	<-s.ran
}

func (s *subject) startReaper() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ran = stop, make(chan struct{})
	go s.run(ctx)
}

// life is the events of one key in the stream.
type life []string

// lives reads the stream, parents before children, and returns each key's events in order: INSERT,
// MODIFY, REMOVE, or EXPIRE for a removal by the service.
func (s *subject) lives(arn string) map[string]life {
	out := map[string]life{}
	s.eachRecord(arn, func(r str.Record) {
		event := string(r.EventName)
		if r.UserIdentity != nil {
			if *r.UserIdentity.PrincipalId != "dynamodb.amazonaws.com" || *r.UserIdentity.Type != "Service" || r.Dynamodb.OldImage == nil {
				s.broke("a service record without identity or old image: %+v", r)
			}
			event = "EXPIRE"
		}
		pk := r.Dynamodb.Keys["pk"].(*str.AttributeValueMemberS).Value
		out[pk] = append(out[pk], event)
	})
	return out
}

// eachRecord calls fn for every record; shards are listed parents first.
func (s *subject) eachRecord(arn string, fn func(str.Record)) {
	ctx := context.Background()
	d, err := s.records.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	s.must(err)
	for _, shard := range d.StreamDescription.Shards {
		it, err := s.records.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: shard.ShardId, ShardIteratorType: "TRIM_HORIZON"})
		s.must(err)
		for next := it.ShardIterator; next != nil; {
			page, err := s.records.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			s.must(err)
			for _, r := range page.Records {
				fn(r)
			}
			if next = page.NextShardIterator; len(page.Records) == 0 {
				break
			}
		}
	}
}

func (s *subject) wantLife(lives map[string]life, pk string, want ...string) {
	if fmt.Sprint(lives[pk]) != fmt.Sprint(want) {
		s.broke("the stream says of %s: %v, want %v", pk, lives[pk], want)
	}
}

// TestNeverEarly: no item is removed or hidden while now < deadline, or before its removal in aws
// expiry.
func TestNeverEarly(t *testing.T) {
	holdsInBoth(t, nil, func(s *subject) {
		arn := s.table("events")
		s.put("events", s.expiring("a", 1500*time.Millisecond))
		s.advance(1499*time.Millisecond + s.lag)
		if s.get("events", "a") == nil {
			s.broke("gone 1 ms before its deadline")
		}
		s.wantLife(s.lives(arn), "a", "INSERT")
		s.advance(time.Millisecond)
		if s.get("events", "a") != nil {
			s.broke("there at its deadline")
		}
		s.wantLife(s.lives(arn), "a", "INSERT", "EXPIRE")
	}, invariant.FireEarly)
}

// TestStrictlyGone: from the deadline on, no observer sees the item, even without the reaper.
func TestStrictlyGone(t *testing.T) {
	holds(t, nil, func(s *subject) {
		s.table("events")
		s.put("events", s.expiring("a", time.Second))
		s.addIndex("events", "added")
		s.stopReaper()
		s.must(s.engine.Clock().Advance(time.Second))
		ctx, table, key := context.Background(), aws.String("events"), attrs{"pk": str1("a")}
		if s.get("events", "a") != nil {
			s.broke("GetItem sees it")
		}
		query := &dynamodb.QueryInput{TableName: table, KeyConditionExpression: aws.String("pk = :a"), ExpressionAttributeValues: attrs{":a": str1("a")}}
		q, err := s.api.Query(ctx, query)
		s.must(err)
		query.Select = ddb.SelectCount
		n, err := s.api.Query(ctx, query)
		s.must(err)
		ix, err := s.api.Query(ctx, &dynamodb.QueryInput{TableName: table, IndexName: aws.String("byG"), KeyConditionExpression: aws.String("g = :g"), ExpressionAttributeValues: attrs{":g": str1("g")}})
		s.must(err)
		both, err := s.api.Query(ctx, &dynamodb.QueryInput{TableName: table, IndexName: aws.String("byBoth"), KeyConditionExpression: aws.String("g = :g AND pk = :a"),
			ExpressionAttributeValues: attrs{":g": str1("g"), ":a": str1("a")}})
		s.must(err)
		scan, err := s.api.Scan(ctx, &dynamodb.ScanInput{TableName: table})
		s.must(err)
		scanned, err := s.api.Scan(ctx, &dynamodb.ScanInput{TableName: table, IndexName: aws.String("byG")})
		s.must(err)
		added, err := s.api.Scan(ctx, &dynamodb.ScanInput{TableName: table, IndexName: aws.String("added")})
		s.must(err)
		if q.Count+n.Count+ix.Count+both.Count+scan.Count+scanned.Count+added.Count != 0 || q.ScannedCount+scan.ScannedCount != 0 {
			s.broke("Query, Count, index or Scan sees it: %d %d %d %d %d", q.Count, n.Count, ix.Count, scan.Count, scanned.Count)
		}
		batch, err := s.api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]ddb.KeysAndAttributes{"events": {Keys: []attrs{key}}}})
		s.must(err)
		many, err := s.api.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []ddb.TransactGetItem{{Get: &ddb.Get{TableName: table, Key: key}}}})
		s.must(err)
		if len(batch.Responses["events"]) != 0 || many.Responses[0].Item != nil {
			s.broke("BatchGetItem or TransactGetItems sees it")
		}
		_, err = s.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{
			{ConditionCheck: &ddb.ConditionCheck{TableName: table, Key: key, ConditionExpression: aws.String("attribute_not_exists(pk)")}}}})
		if err != nil {
			s.broke("a transaction's condition sees it: %v", err)
		}
		deleted, err := s.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key, ReturnValues: ddb.ReturnValueAllOld})
		s.must(err)
		if deleted.Attributes != nil {
			s.broke("ReturnValues sees it")
		}
		updated, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: table, Key: key, UpdateExpression: aws.String("SET n = if_not_exists(g, :none)"),
			ConditionExpression: aws.String("attribute_not_exists(pk)"), ExpressionAttributeValues: attrs{":none": str1("none")}, ReturnValues: ddb.ReturnValueAllNew})
		if err != nil {
			s.broke("a condition sees it: %v", err)
		} else if updated.Attributes["n"].(*ddb.AttributeValueMemberS).Value != "none" || updated.Attributes["ttl"] != nil {
			s.broke("an update expression sees it: %v", updated.Attributes)
		}
		s.startReaper()
	}, invariant.ShowExpired)
}

const raceItems = 1500

// race lets raceItems items expire at one instant while writers put each of them anew. So the
// reaper has collected many that are alive again when it removes them. It returns the events of the
// stream.
func (s *subject) race() map[string]life {
	arn := s.table("events")
	var wg sync.WaitGroup
	each := func(fn func(pk string)) {
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < raceItems; i += 8 {
					fn("k" + strconv.Itoa(i))
				}
			})
		}
	}
	each(func(pk string) {
		_, err := s.api.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: s.expiring(pk, time.Second)})
		if err != nil {
			s.Error(err)
		}
	})
	wg.Wait()
	s.must(s.engine.Clock().Advance(time.Second + s.lag)) // does not wait for the reaper
	each(func(pk string) {
		_, err := s.api.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: s.expiring(pk, time.Hour)})
		if err != nil {
			s.Error(err)
		}
	})
	wg.Wait()
	s.advance(time.Second)
	return s.lives(arn)
}

// TestRenewedLives: an item whose deadline moved is never removed on the old one.
func TestRenewedLives(t *testing.T) {
	holdsInBoth(t, nil, func(s *subject) {
		s.race()
		for i := range raceItems {
			if s.get("events", "k"+strconv.Itoa(i)) == nil {
				s.broke("k%d was removed on its old deadline", i)
			}
		}
	}, invariant.SkipRecheck)
}

// TestExactlyOneRecord: each expiry makes one service record, before the INSERT that follows it. In
// aws expiry, a write before the removal changes the existing item.
func TestExactlyOneRecord(t *testing.T) {
	holds(t, nil, func(s *subject) {
		lives := s.race()
		for i := range raceItems {
			s.wantLife(lives, "k"+strconv.Itoa(i), "INSERT", "EXPIRE", "INSERT")
		}
	}, invariant.ForgetOldRecord, invariant.RecordTwice)
	t.Run("aws", func(t *testing.T) {
		holdsWith(t, awsLag, nil, func(s *subject) {
			lives := s.race()
			for i := range raceItems {
				if pk := "k" + strconv.Itoa(i); len(lives[pk]) > 1 && lives[pk][1] == "MODIFY" {
					s.wantLife(lives, pk, "INSERT", "MODIFY")
				} else {
					s.wantLife(lives, pk, "INSERT", "EXPIRE", "INSERT")
				}
			}
		}, invariant.RecordTwice)
	})
}

// TestNothingLost: an acknowledged write survives a crash, and so do its deadline, its index
// entries and its record. Answers to reads stay true. The power is cut during the writes.
func TestNothingLost(t *testing.T) {
	holdsInBoth(t, func() kv.FS { return kv.NewCrashFS() }, func(s *subject) {
		disk := s.options.fs.(*kv.CrashFS)
		arn := s.table("events")
		life := func(i int) time.Duration { return time.Duration(1+i%2*3599) * time.Second }
		disk.CutAfter(disk.Ops() + 61)
		acknowledged := 0
		for ; acknowledged < 1000; acknowledged++ {
			it := s.expiring("k"+strconv.Itoa(acknowledged), life(acknowledged))
			if _, err := s.api.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: it}); err != nil {
				break
			}
		}
		if acknowledged == 0 || acknowledged == 1000 {
			s.broke("%d writes were acknowledged: the cut was not among them", acknowledged)
		}
		_ = s.DB.Close()
		a := s.reopen(disk.AfterCrash())
		defer a.DB.Close()
		a.advance(time.Minute)
		lives := a.lives(arn)
		alive := 0
		for i := range acknowledged {
			pk := "k" + strconv.Itoa(i)
			if life(i) == time.Second {
				a.wantLife(lives, pk, "INSERT", "EXPIRE")
				continue
			}
			alive++
			a.wantLife(lives, pk, "INSERT")
			if a.get("events", pk) == nil {
				a.broke("%s was acknowledged and is lost", pk)
			}
		}
		byG, err := a.api.Query(context.Background(), &dynamodb.QueryInput{TableName: aws.String("events"), IndexName: aws.String("byG"),
			KeyConditionExpression: aws.String("g = :g"), ExpressionAttributeValues: attrs{":g": str1("g")}})
		s.must(err)
		if int(byG.Count) < alive {
			a.broke("the index has %d of %d items", byG.Count, alive)
		}
		s.broken = append(s.broken, a.broken...)
	}, invariant.AckBeforeSync)
}

// TestNothingLostOfAnAnswer: an item that a read hid at its deadline stays hidden after a crash,
// although only that read shows that time had passed.
func TestNothingLostOfAnAnswer(t *testing.T) {
	holds(t, func() kv.FS { return kv.NewCrashFS() }, func(s *subject) {
		s.table("events")
		s.put("events", s.expiring("a", time.Second))
		s.stopReaper()
		s.must(s.engine.Clock().Advance(time.Second))
		if s.get("events", "a") != nil {
			s.broke("an expired item was seen")
		}
		disk := s.options.fs.(*kv.CrashFS)
		disk.CutNow()
		_ = s.DB.Close()
		a := s.reopen(disk.AfterCrash())
		defer a.DB.Close()
		if a.get("events", "a") != nil {
			s.broke("what was gone is back: time went from %v to %v", s.start.Add(time.Second), a.Clock().Now())
		}
	}, invariant.NoRestartInstant, invariant.ServeUndurable)
}

// reopen opens a directory after a crash, with the clock frozen at its last instant.
func (s *subject) reopen(fs kv.FS) *subject {
	db, err := Open("data", lawOptions(s.lag, fs))
	s.must(err)
	return &subject{TB: s.TB, DB: db, api: db.DynamoDB(), records: db.Streams(), start: db.Clock().Now(), lag: s.lag}
}

// TestOrderPerKey: a key's records appear in commit order, once.
func TestOrderPerKey(t *testing.T) {
	holds(t, nil, func(s *subject) {
		arn := s.table("events")
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 100 {
					_, err := s.api.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: aws.String("events"), Key: attrs{"pk": str1("k" + strconv.Itoa((i+w)%3))},
						UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: attrs{":one": &ddb.AttributeValueMemberN{Value: "1"}}})
					if err != nil {
						s.Error(err)
					}
				}
			})
		}
		wg.Wait()
		last, seen := map[string]int{}, 0
		s.eachRecord(arn, func(r str.Record) {
			seen++
			pk := r.Dynamodb.Keys["pk"].(*str.AttributeValueMemberS).Value
			n, err := strconv.Atoi(r.Dynamodb.NewImage["n"].(*str.AttributeValueMemberN).Value)
			if err != nil || n != last[pk]+1 {
				s.broke("record %s of %s says %d behind %d", *r.Dynamodb.SequenceNumber, pk, n, last[pk])
			}
			last[pk] = n
		})
		if seen != 400 {
			s.broke("%d records of 400 updates", seen)
		}
	}, invariant.UnorderedSeq)
}

// TestIdleIsFree: with nothing due, the process does no periodic work. Ten minutes of the clock
// pass in a moment of real time.
func TestIdleIsFree(t *testing.T) {
	holdsInBoth(t, nil, func(s *subject) {
		s.table("events")
		s.put("events", s.expiring("a", 24*time.Hour))
		s.advance(0)
		before := s.engine.DuePasses()
		start := s.engine.Now()
		s.must(s.Clock().SetRate(10_000))
		s.engine.Clock().Run()
		for s.engine.Now()-start < 600_000 {
			time.Sleep(time.Millisecond)
		}
		s.Clock().Freeze()
		if n := s.engine.DuePasses() - before; n > 4 { // the changes of the clock wake it
			s.broke("the due queue looked %d times while nothing was due", n)
		}
	}, invariant.BusyLoop)
}

// TestMarkBelowAll: a deadline below everything that has been reaped is still found.
func TestMarkBelowAll(t *testing.T) {
	holdsInBoth(t, nil, func(s *subject) {
		arn := s.table("events")
		for i := range 10 {
			s.put("events", s.expiring("k"+strconv.Itoa(i), time.Duration(i+1)*time.Second))
		}
		s.advance(time.Minute)
		s.put("events", s.expiring("late", time.Second)) // born expired, below the mark
		s.advance(time.Second + s.lag)
		s.wantLife(s.lives(arn), "late", "INSERT", "EXPIRE")
	}, invariant.KeepMark)
}
