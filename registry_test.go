package mayfly

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// firstShard returns a table's current stream and the first shard in its list.
func firstShard(t testing.TB, db *DB, table string) (arn, shard string) {
	t.Helper()
	list, err := db.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	arn = aws.ToString(list.Table.LatestStreamArn)
	stream, err := db.Streams().DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	return arn, aws.ToString(stream.StreamDescription.Shards[0].ShardId)
}

// oldest returns an iterator at a shard's oldest record.
func oldest(t testing.TB, db *DB, arn, shard string) *string {
	t.Helper()
	out, err := db.Streams().GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: &shard, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.ShardIterator
}

func wait(ms string) func(*dynamodbstreams.Options) {
	return func(o *dynamodbstreams.Options) {
		o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Mayfly-Wait-Ms", ms))
	}
}

// A reader that waits for a table holds the clock from the answer that announces the table, until it
// has looked, or for a while. A reader that has looked holds nothing.
func TestChangeHoldsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, "", Options{Frozen: true})
		changed, looked := db.Registry().Changed()
		also, alsoLooked := db.Registry().Changed()
		alsoLooked()
		makeTable(t, db.DynamoDB(), "events")
		<-also
		<-changed
		advance := func(limit time.Duration) (finished bool) {
			t.Helper()
			moved, err := db.Clock().advance(t.Context(), time.Second, limit)
			if err != nil {
				t.Fatal(err)
			}
			return !moved.Unfinished
		}
		if advance(lookLimit - time.Second) {
			t.Error("the clock does not wait for the reader")
		}
		looked()
		looked() // no effect
		if !advance(time.Millisecond) {
			t.Error("the clock waits although the reader has looked")
		}
		_, looked = db.Registry().Changed()
		defer looked()
		makeTable(t, db.DynamoDB(), "others")
		if !advance(lookLimit + time.Second) {
			t.Error("the clock waits for ever for a reader that does not look")
		}
		makeTable(t, db.DynamoDB(), "third")
		if !advance(time.Millisecond) {
			t.Error("the clock waits for a reader that no longer does")
		}
	})
}

// A change is announced even if its operation fails afterwards: UpdateTable has enabled the stream by
// then.
func TestFailedChangeIsAnnounced(t *testing.T) {
	db := open(t, "", Options{Frozen: true})
	changed, looked := db.Registry().Changed()
	defer looked()
	missing := "missing"
	if _, err := db.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &missing}); err == nil {
		t.Fatal("a missing table was deleted")
	}
	<-changed
}

// A registered consumer, by the API's names, holds records and the clock until it is done with
// them.
func TestRegistry(t *testing.T) {
	var log bytes.Buffer
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	db := open(t, "", Options{Start: start, Frozen: true, Shards: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	start = db.Clock().Now()
	url := serve(t, db)
	makeTable(t, db.DynamoDB(), "events")
	arn, shard := firstShard(t, db, "events")
	p := db.Registry().Register("consumer", arn)
	putUntil(t, db.DynamoDB(), "events", "a", start.Add(10*time.Second))

	if status, body := send(t, "POST", url+"/_mayfly/clock/advance", `{"by":"1s","limit":"20ms"}`); status != 200 || !strings.Contains(body, `"unfinished":true,"busy":["consumer"]`) {
		t.Errorf("an advance that leaves a record behind: %d %s", status, body)
	}
	done := make(chan Moved, 1)
	go func() {
		moved, err := db.Clock().Advance(context.Background(), 48*time.Hour)
		if err != nil {
			t.Error(err)
		}
		done <- moved
	}()
	iterator := oldest(t, db, arn, shard)
	for records := 0; records < 2; {
		out, err := db.Streams().GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator}, wait("60000"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Records {
			records++
			if r.EventName == streamtypes.OperationTypeRemove && !db.Clock().Now().Equal(start.Add(10*time.Second).Truncate(time.Second)) {
				t.Errorf("the clock shows %v", db.Clock().Now())
			}
			p.Passed(shard, *r.Dynamodb.SequenceNumber)
		}
		iterator = out.NextShardIterator
	}
	if moved := <-done; moved.Unfinished || moved.Busy != nil || moved.Expired != 1 {
		t.Errorf("%+v", moved)
	}
	label := arn[strings.LastIndex(arn, "/")+1:]
	_, body := send(t, "GET", url+"/metrics", "")
	for _, want := range []string{
		fmt.Sprintf(`mayfly_stream_held_records{TableName="events",consumer="consumer",stream="%s"} 2`, label),
		fmt.Sprintf(`mayfly_stream_held_age_seconds{TableName="events",consumer="consumer",stream="%s"} %v`, label, 172800),
		"mayfly_stream_held_full 0",
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	first, err := db.Streams().GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: oldest(t, db, arn, shard)})
	if err != nil || len(first.Records) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	p.Checkpoint(shard, *first.Records[1].Dynamodb.SequenceNumber)
	p.Rest(db.Clock().Now().Add(time.Minute))
	p.Rest(time.Time{})
	p.Checkpoint(shard, "")
	if strings.Contains(log.String(), "impossible progress") {
		t.Error(log.String())
	}
	p.Checkpoint("shardId-1", "2")
	p.Passed(shard, "end")
	if n := strings.Count(log.String(), "impossible progress"); n != 2 {
		t.Errorf("%d complaints about impossible progress:\n%s", n, log.String())
	}
	if _, err := db.Clock().Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, body := send(t, "GET", url+"/metrics", ""); strings.Contains(body, "mayfly_stream_held_records") {
		t.Error("records are held that are behind every checkpoint")
	}
	p.Close()
	p = db.Registry().Register("consumer", arn+"9") // a stream that is gone
	p.Checkpoint(shard, "1")
	p.Passed(shard, "1")
	p.Rest(start)
	p.Close()
}

// A call that waits in the process may wait nearly for an iterator's life, which over a network is
// 20 seconds. It ends with a record, its context, the end of its shard or stream, or the end of the
// database.
func TestWaitInProcess(t *testing.T) {
	type answer struct {
		*dynamodbstreams.GetRecordsOutput
		err error
	}
	for what, c := range map[string]struct {
		end  func(db *DB, cancel func()) error
		want func(a answer) bool
	}{
		"record": {
			end: func(db *DB, _ func()) error {
				_, err := db.DynamoDB().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: keyOf("a")})
				return err
			},
			want: func(a answer) bool { return a.err == nil && len(a.Records) == 1 && a.NextShardIterator != nil },
		},
		"context": {
			end:  func(_ *DB, cancel func()) error { cancel(); return nil },
			want: func(a answer) bool { return a.err == nil && len(a.Records) == 0 && a.NextShardIterator != nil },
		},
		"stream": {
			end: func(db *DB, _ func()) error {
				_, err := db.DynamoDB().UpdateTable(context.Background(), &dynamodb.UpdateTableInput{
					TableName: aws.String("events"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)},
				})
				return err
			},
			want: func(a answer) bool { return a.err == nil && len(a.Records) == 0 && a.NextShardIterator == nil },
		},
		"table": {
			end: func(db *DB, _ func()) error {
				_, err := db.DynamoDB().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String("events")})
				return err
			},
			want: func(a answer) bool { return a.err == nil && len(a.Records) == 0 && a.NextShardIterator == nil },
		},
		"database": {
			end:  func(db *DB, _ func()) error { return db.Close() },
			want: func(a answer) bool { return a.err != nil },
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := open(t, "", Options{Shards: 1})
				makeTable(t, db.DynamoDB(), "events")
				arn, shard := firstShard(t, db, "events")
				iterator := oldest(t, db, arn, shard)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answers := make(chan answer, 1)
				go func() {
					out, err := db.Streams().GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator}, wait("3600000"))
					answers <- answer{out, err}
				}()
				synctest.Wait()
				select {
				case a := <-answers:
					t.Fatalf("it did not wait: %+v", a)
				default:
				}
				if err := c.end(db, cancel); err != nil {
					t.Fatal(err)
				}
				select {
				case a := <-answers:
					if !c.want(a) {
						t.Errorf("%+v", a)
					}
					if a.err == nil {
						header := awsmiddleware.GetRawResponse(a.ResultMetadata).(*smithyhttp.Response).Header.Get("X-Mayfly-Wait-Ms")
						if header != "870000" {
							t.Errorf("granted %q ms", header)
						}
					}
				case <-time.After(10 * time.Second):
					t.Fatal("it went on waiting")
				}
			})
		})
	}
}

// consume runs a consumer until the test ends.
func startConsumer(t *testing.T, db *DB, name, table string, handle func(*consume.Consumer, []consume.Record) error) *consume.Consumer {
	t.Helper()
	c := &consume.Consumer{
		Name: name, Table: table, DB: db.DynamoDB(), Streams: db.Streams(), Now: db.Clock().Now, Leases: lease.Options{Exclusive: true}, Registry: consume.Registry(db.Registry()),
	}
	c.Handle = func(_ context.Context, _ string, records []consume.Record) error { return handle(c, records) }
	registered, hold := make(chan struct{}), c.Registry.Register
	known := sync.OnceFunc(func() { close(registered) })
	c.Registry.Register = func(consumer, stream string) consume.Progress {
		defer known()
		return hold(consumer, stream)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-registered: // so that an immediate advance of the clock waits for it
	case <-time.After(10 * time.Second):
		t.Fatalf("%s has not registered", name)
	}
	return c
}

// During an advance over a year, a consumer receives every record while the clock shows its
// instant, although it sets the next deadline itself each time and shards roll over. A consumer
// that gathers records in windows of a minute receives all of them, and delivers each window at its
// end.
func TestConsumersFollowTheClock(t *testing.T) {
	const keys, days = 10, 365
	db := open(t, "", Options{Start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true, Shards: 2, ShardBytes: 8 << 10})
	start := db.Clock().Now().Truncate(time.Second).Add(time.Second)
	makeTable(t, db.DynamoDB(), "events")
	due := func(day int) time.Time { return start.Add(time.Duration(day) * 24 * time.Hour) }

	var mu sync.Mutex
	var problems []string
	problem := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	fired := map[string]int{}
	startConsumer(t, db, "arming", "events", func(_ *consume.Consumer, records []consume.Record) error {
		for _, r := range records {
			if r.EventName == streamtypes.OperationTypeRemove {
				key := r.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS).Value
				name, number, _ := strings.Cut(key, "-")
				day, _ := strconv.Atoi(number)
				if now := db.Clock().Now(); !now.Equal(due(day)) {
					problem("%s is handled at %v", key, now)
				}
				mu.Lock()
				fired[key]++
				mu.Unlock()
				if day < days {
					putUntil(t, db.DynamoDB(), "events", fmt.Sprintf("%s-%d", name, day+1), due(day+1))
				}
			}
			r.Done()
		}
		return nil
	})

	const window = time.Minute
	var collected []consume.Record
	var ends time.Time
	batches, flush := map[time.Time]int{}, make(chan time.Time, 1)
	collecting := startConsumer(t, db, "window", "events", func(c *consume.Consumer, records []consume.Record) error {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range records {
			if r.EventName != streamtypes.OperationTypeRemove { // a filter
				r.Done()
				continue
			}
			if collected = append(collected, r); len(collected) == 1 {
				ends = db.Clock().Now().Add(window)
				c.Rest(ends)
				flush <- ends
			}
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for {
			select {
			case at := <-flush:
				for db.Clock().Now().Before(at) && ctx.Err() == nil {
					_ = db.engine.Clock().Sleep(ctx, at.UnixMilli(), nil)
				}
				mu.Lock()
				batches[db.Clock().Now()] += len(collected)
				all := collected
				collected = nil
				collecting.Rest(time.Time{})
				mu.Unlock()
				for _, r := range all {
					r.Done()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-flushed })

	for key := range keys {
		putUntil(t, db.DynamoDB(), "events", fmt.Sprintf("k%d-1", key), due(1))
	}
	var expired int64
	// a slow machine may need more than one call, which takes at most a minute
	for unfinished := true; unfinished; {
		moved, err := db.Clock().Set(t.Context(), due(days+1))
		if err != nil || moved.Unfinished && moved.Expired == 0 {
			t.Fatalf("%+v, %v", moved, err)
		}
		expired += moved.Expired
		unfinished = moved.Unfinished
	}
	if expired != keys*days {
		t.Errorf("%d items expired, want %d", expired, keys*days)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(fired) != keys*days {
		t.Errorf("%d firings, want %d", len(fired), keys*days)
	}
	for key, n := range fired {
		if n != 1 {
			t.Errorf("%s fired %d times", key, n)
		}
	}
	// If a shard is closed during a window, its child is read after the window, and another window
	// begins.
	late := 0
	for day := 1; day <= days; day++ {
		first, second := batches[due(day).Add(window)], batches[due(day).Add(2*window)]
		if first+second != keys {
			t.Errorf("%d and %d records at the ends of windows of day %d", first, second, day)
		}
		late += second
	}
	if late == 0 || late > keys*days/10 {
		t.Errorf("%d records of %d came after a shard that was closed", late, keys*days)
	}
	if len(problems) > 0 {
		t.Errorf("%d problems, such as %s", len(problems), problems[0])
	}
}
