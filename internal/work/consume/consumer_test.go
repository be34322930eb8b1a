package consume_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// seen records the records that consumers received.
type seen struct {
	mu    sync.Mutex
	times map[string]int      // how often, by "<event> <key>"
	order map[string][]string // sequence numbers by shard
	bad   []string            // records out of order
	hold  bool                // records are kept undone, in held
	held  []consume.Record
	fail  error // the result of Handle
}

func newSeen() *seen { return &seen{times: map[string]int{}, order: map[string][]string{}} }

func keyOf(r consume.Record) string {
	return r.Dynamodb.Keys["k"].(*streamtypes.AttributeValueMemberS).Value
}

func (s *seen) handle(_ context.Context, shard string, records []consume.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, r := range records {
		s.times[strings.ToLower(string(r.EventName))+" "+keyOf(r)]++
		if o := s.order[shard]; len(o) > 0 && o[len(o)-1] >= r.Sequence() {
			s.bad = append(s.bad, fmt.Sprintf("%s after %s in %s", r.Sequence(), o[len(o)-1], shard))
		}
		s.order[shard] = append(s.order[shard], r.Sequence())
		if s.hold {
			s.held = append(s.held, r)
		} else {
			r.Done()
		}
	}
	return nil
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

func (s *seen) of(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[what]
}

// record is the i-th of those that are held.
func (s *seen) record(i int) consume.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[i]
}

// once checks that each record came exactly once, in order.
func (s *seen) once(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) != n || len(s.bad) > 0 {
		t.Errorf("%d records, want %d; out of order: %v", len(s.times), n, s.bad)
	}
	for what, times := range s.times {
		if times != 1 {
			t.Errorf("%s came %d times", what, times)
		}
	}
}

func (e *endpoint) consumer(t testing.TB, table string, s *seen) *consume.Consumer {
	return &consume.Consumer{
		Name: "test", Table: table, DB: e.db, Streams: e.streams, Now: e.Clock().Now, Leases: lease.Options{Exclusive: true}, Handle: s.handle, Logger: logger(t),
	}
}

// rows are the leases and checkpoints by shard.
func (e *endpoint) rows(t testing.TB) map[string]lease.Row {
	t.Helper()
	rows, err := lease.New(e.db, "test", lease.Options{}).Rows(t.Context())
	must(t, err)
	return rows
}

// row returns one of the rows; its term is 0 if there is none.
func (e *endpoint) row(t testing.TB, name string) lease.Row { return e.rows(t)[name] }

// receive waits until a channel is closed.
func receive(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("waited in vain")
	}
}

// Every record comes once and in order, over many successive shards, and a restarted consumer
// continues from its position.
func TestConsumer(t *testing.T) {
	everywhere(t, mayfly.Options{ShardBytes: 4096}, func(t *testing.T, e *endpoint) {
		e.table(t, "events")
		e.put(t, "events", "a", 0, 200)
		s := newSeen()
		stop := run(t, e.consumer(t, "events", s).Run)
		e.put(t, "events", "b", 0, 300)
		await(t, "all records have come", func() bool { return s.count() == 500 })
		stop()
		e.put(t, "events", "c", 0, 100)
		run(t, e.consumer(t, "events", s).Run)
		await(t, "the rest has come", func() bool { return s.count() == 600 })
		s.once(t, 600)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.order) < 20 {
			t.Errorf("only %d shards: the test is too small", len(s.order))
		}
	})
}

// A child's records come only after all records of its parent are done.
func TestParentsFirst(t *testing.T) {
	e := open(t, "", mayfly.Options{ShardBytes: 4096, Shards: 1})
	e.table(t, "events")
	e.put(t, "events", "a", 0, 60)
	s := newSeen()
	s.hold = true
	run(t, e.consumer(t, "events", s).Run)
	for done := 0; done < 60; {
		await(t, "the next shard's records have come", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.held) > 0 })
		s.mu.Lock()
		shards := len(s.order)
		held := s.held
		s.held = nil
		s.mu.Unlock()
		for i, r := range held {
			if i == len(held)-1 {
				time.Sleep(5 * time.Millisecond) // a child's records could come now
				s.mu.Lock()
				if len(s.order) != shards {
					t.Errorf("shard %d has begun before the one before it was done", len(s.order))
				}
				s.mu.Unlock()
			}
			r.Done()
		}
		done += len(held)
	}
	s.once(t, 60)
}

// A checkpoint passes a record only when it and all before it are done; those that are not come
// again.
func TestCheckpointPassesWhatIsDone(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	s := newSeen()
	s.hold = true
	stop := run(t, e.consumer(t, "events", s).Run)
	e.put(t, "events", "a", 0, 50)
	await(t, "all have come", func() bool { return s.count() == 50 })
	open := map[int]bool{17: true, 30: true}
	for _, i := range rand.Perm(50) {
		if !open[i] {
			s.record(i).Done()
		}
	}
	want := s.record(16).Sequence()
	await(t, "the checkpoint is there", func() bool {
		for _, r := range e.rows(t) {
			return r.Checkpoint == want
		}
		return false
	})
	stop()
	again := newSeen()
	run(t, e.consumer(t, "events", again).Run)
	await(t, "the rest has come", func() bool { return again.count() >= 33 })
	again.once(t, 33)
	if again.of("insert a16") != 0 || again.of("insert a17") != 1 {
		t.Errorf("came again: %v", slices.Sorted(maps.Keys(again.times)))
	}
}

// While nothing moves nothing is written, and many records make few checkpoints.
func TestCheckpointsAreFew(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	s := newSeen()
	run(t, e.consumer(t, "events", s).Run)
	began := time.Now()
	e.put(t, "events", "a", 0, 5000)
	await(t, "all have come", func() bool { return s.count() == 5000 })
	s.mu.Lock()
	last := slices.Max(s.order[slices.Collect(maps.Keys(s.order))[0]])
	s.mu.Unlock()
	var row lease.Row
	await(t, "the last checkpoint is there", func() bool {
		for _, row = range e.rows(t) {
		}
		return row.Checkpoint == last
	})
	// as many as a slow machine takes time for
	if most := 200 + int64(time.Since(began)/(50*time.Millisecond)); row.Beat > most {
		t.Errorf("%d writes for 5000 records", row.Beat)
	}
	time.Sleep(3 * 50 * time.Millisecond)
	if now := e.rows(t)[row.Shard]; now != row {
		t.Errorf("an idle consumer has written: %+v, then %+v", row, now)
	}
}

// An error of Handle only delays the shard: it is read again from its checkpoint.
func TestHandleFails(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	s := newSeen()
	s.fail = errors.New("not now")
	run(t, e.consumer(t, "events", s).Run)
	e.put(t, "events", "a", 0, 10)
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	s.fail = nil
	s.mu.Unlock()
	await(t, "all have come", func() bool { return s.count() == 10 })
	s.once(t, 10)
}

// No more records are read ahead than the window takes.
func TestWindow(t *testing.T) {
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	e.put(t, "events", "a", 0, 100)
	s := newSeen()
	s.hold = true
	c := e.consumer(t, "events", s)
	c.Window = 30
	run(t, c.Run)
	await(t, "the window is full", func() bool { return s.count() == 30 })
	time.Sleep(20 * time.Millisecond)
	if n := s.count(); n != 30 {
		t.Errorf("%d records in a window of 30", n)
	}
	s.record(1).Done()
	s.record(2).Done()
	time.Sleep(20 * time.Millisecond)
	if n := s.count(); n != 30 {
		t.Errorf("%d records although the first is not done", n)
	}
	s.record(0).Done()
	await(t, "there is room for three more", func() bool { return s.count() == 33 })
}

// Nor are more bytes.
func TestWindowBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads 80 MB")
	}
	e := open(t, "", mayfly.Options{Shards: 1})
	e.table(t, "events")
	pad := &types.AttributeValueMemberS{Value: strings.Repeat("x", 399<<10)}
	const n = 200 // 80 MB
	for i := range n {
		_, err := e.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("events"), Item: map[string]types.AttributeValue{
			"k": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}, "pad": pad,
		}})
		must(t, err)
	}
	s := newSeen()
	s.hold = true
	run(t, e.consumer(t, "events", s).Run)
	await(t, "the window is full", func() bool { return s.count() > 64<<20/(400<<10) })
	time.Sleep(50 * time.Millisecond)
	held := s.count()
	if held == n {
		t.Error("all is held at once")
	}
	for i := range held {
		s.record(i).Done()
	}
	await(t, "the rest comes", func() bool { return s.count() == n })
}

// A consumer that begins at the end receives all later records, including those written while it is
// down.
func TestLatest(t *testing.T) {
	everywhere(t, mayfly.Options{}, func(t *testing.T, e *endpoint) {
		e.table(t, "events")
		e.put(t, "events", "old", 0, 40)
		s := newSeen()
		c := e.consumer(t, "events", s)
		c.Start = consume.Latest
		stop := run(t, c.Run)
		await(t, "it has noted where it begins", func() bool { return e.rows(t)["start"].Checkpoint != "" })
		stop() // before there was any record
		e.put(t, "events", "new", 0, 40)
		c = e.consumer(t, "events", s)
		c.Start = consume.Latest
		run(t, c.Run)
		await(t, "what is new has come", func() bool { return s.count() >= 40 })
		s.once(t, 40)
		if s.of("insert new0") != 1 {
			t.Error("something old came")
		}
	})
}

// A consumer of a stream that is younger than itself receives all its records. That was its first run:
// a later one that would begin at the end goes on where it was.
func TestSinceCreation(t *testing.T) {
	everywhere(t, mayfly.Options{}, func(t *testing.T, e *endpoint) {
		e.table(t, "events")
		e.put(t, "events", "old", 0, 40)
		s := newSeen()
		c := e.consumer(t, "events", s)
		c.Start = consume.SinceCreation
		stop := run(t, c.Run)
		await(t, "all have come", func() bool { return s.count() >= 40 })
		stop()
		e.put(t, "events", "new", 0, 40)
		c = e.consumer(t, "events", s)
		c.Start = consume.Latest
		run(t, c.Run)
		await(t, "what is new has come", func() bool { return s.count() >= 80 })
		s.once(t, 80)
	})
}

// At an endpoint that does not reveal the position of LATEST, the consumer saves the instant
// instead.
func TestLatestElsewhere(t *testing.T) {
	e := open(t, "", mayfly.Options{Start: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true})
	e.streams = plain(e.streams)
	e.table(t, "events")
	e.put(t, "events", "old", 0, 40)
	_, err := e.Clock().Advance(t.Context(), time.Hour)
	must(t, err)
	s := newSeen()
	c := e.consumer(t, "events", s)
	c.Start = consume.Latest
	stop := run(t, c.Run)
	await(t, "it has noted where it begins", func() bool { return e.rows(t)["start"].Checkpoint != "" })
	if got := e.rows(t)["start"].Checkpoint; !strings.HasPrefix(got, "since:") {
		t.Fatalf("it has noted %q", got)
	}
	e.put(t, "events", "a", 0, 20)
	await(t, "what is new has come", func() bool { return s.count() == 20 })
	s.once(t, 20)
	stop()

	must(t, consume.Forget(t.Context(), e.db, "test", lease.Options{}))
	_, err = e.Clock().Advance(t.Context(), time.Hour)
	must(t, err)
	s = newSeen()
	c = e.consumer(t, "events", s)
	c.Start = consume.Latest
	stop = run(t, c.Run)
	await(t, "it has noted where it begins", func() bool { return e.rows(t)["start"].Checkpoint != "" })
	stop() // before there was any record
	e.put(t, "events", "b", 0, 20)
	c = e.consumer(t, "events", s)
	c.Start = consume.Latest
	run(t, c.Run)
	await(t, "what is new has come", func() bool { return s.count() >= 20 })
	s.once(t, 20)
}

// Records that are done when Run ends are passed, even the last ones.
func TestLastCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, "", mayfly.Options{Shards: 1})
		e.table(t, "events")
		s := newSeen()
		s.hold = true
		stop := run(t, e.consumer(t, "events", s).Run)
		e.put(t, "events", "a", 0, 2)
		time.Sleep(time.Second)
		s.record(0).Done()
		synctest.Wait() // that is saved at once, and the next one later
		s.record(1).Done()
		stop()
		for _, r := range e.rows(t) {
			if r.Checkpoint != s.record(1).Sequence() {
				t.Errorf("the checkpoint is %s, want %s", r.Checkpoint, s.record(1).Sequence())
			}
		}
	})
}

// A consumer that stores its start and loses its rows begins at the end of the stream, and reports
// that it may have missed records.
func TestBeginsAnew(t *testing.T) {
	for _, start := range []consume.Start{consume.Latest, consume.SinceCreation} {
		t.Run(fmt.Sprint(start), func(t *testing.T) { testBeginsAnew(t, start) })
	}
}

func testBeginsAnew(t *testing.T, start consume.Start) {
	for _, exclusive := range []bool{true, false} {
		e := open(t, "", mayfly.Options{Shards: 1})
		e.table(t, "events")
		s := newSeen()
		lost := make(chan struct{}, 10)
		c := e.consumer(t, "events", s)
		c.Start, c.Leases = start, lease.Options{Exclusive: exclusive, Duration: time.Second}
		c.Lost = func(context.Context) error {
			lost <- struct{}{}
			return nil
		}
		stop := run(t, c.Run)
		begun := func() bool {
			is, err := c.Begun(t.Context())
			must(t, err)
			return is
		}
		await(t, "it has begun", begun)
		e.put(t, "events", "a", 0, 10)
		await(t, "the first have come", func() bool { return s.count() == 10 })
		_, err := e.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(lease.TableName)})
		must(t, err)
		e.put(t, "events", "b", 0, 10) // for a worker that is alone to write to the table
		select {
		case <-lost:
			if !begun() {
				t.Errorf("exclusive %v: Lost was called before the consumer began anew", exclusive)
			}
		case <-time.After(patience):
			t.Fatalf("exclusive %v: Lost was not told", exclusive)
		}
		e.put(t, "events", "c", 0, 10)
		await(t, "what is new has come", func() bool { return s.of("insert c9") == 1 })
		stop()
		if n := s.of("insert a0"); n != 1 {
			t.Errorf("exclusive %v: a record from before came %d times", exclusive, n)
		}
		if len(lost) > 0 {
			t.Errorf("exclusive %v: Lost was told %d times more", exclusive, len(lost))
		}
	}
}

// Run ends by itself when the table is deleted and the stream read to its end, and when there never
// was a stream.
func TestStreamEnds(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	e.table(t, "events")
	s := newSeen()
	ran := make(chan error, 1)
	go func() { ran <- e.consumer(t, "events", s).Run(t.Context()) }()
	e.put(t, "events", "a", 0, 10)
	await(t, "it reads", func() bool { return s.count() > 0 })
	e.put(t, "events", "a", 10, 100)
	_, err := e.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("events")})
	must(t, err)
	select {
	case err := <-ran:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("Run does not end")
	}
	s.once(t, 100)
	must(t, e.consumer(t, "nothing", s).Run(t.Context()))
}

// A stream that is switched off and on again is read on.
func TestStreamAgain(t *testing.T) {
	e := open(t, "", mayfly.Options{})
	e.table(t, "events")
	s := newSeen()
	run(t, e.consumer(t, "events", s).Run)
	e.put(t, "events", "a", 0, 10)
	await(t, "it reads", func() bool { return s.count() > 0 })
	e.put(t, "events", "a", 10, 20)
	for _, on := range []bool{false, true} {
		in := &dynamodb.UpdateTableInput{TableName: aws.String("events"), StreamSpecification: &types.StreamSpecification{StreamEnabled: &on}}
		if on {
			in.StreamSpecification.StreamViewType = types.StreamViewTypeKeysOnly
		}
		_, err := e.db.UpdateTable(t.Context(), in)
		must(t, err)
	}
	e.put(t, "events", "b", 0, 20)
	await(t, "all have come", func() bool { return s.count() == 40 })
	s.once(t, 40)
}

// Renewed is called before a consumer reads another stream of its table, even if the change came
// while it was down; not for the first stream, nor for a known one.
func TestRenewed(t *testing.T) {
	e := open(t, "", mayfly.Options{Start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Frozen: true})
	e.table(t, "events")
	s := newSeen()
	told := make(chan string, 10)
	fails := true
	start := func() (stop func()) {
		c := e.consumer(t, "events", s)
		c.Renewed = func(_ context.Context, arn string) error {
			if told <- fmt.Sprint(arn, " behind ", s.count()); fails {
				fails = false
				return errors.New("not now")
			}
			return nil
		}
		return run(t, c.Run)
	}
	again := func() (arn string) {
		for _, on := range []bool{false, true} {
			_, err := e.Clock().Advance(t.Context(), time.Second)
			must(t, err)
			in := &dynamodb.UpdateTableInput{TableName: aws.String("events"), StreamSpecification: &types.StreamSpecification{StreamEnabled: &on}}
			if on {
				in.StreamSpecification.StreamViewType = types.StreamViewTypeKeysOnly
			}
			out, err := e.db.UpdateTable(t.Context(), in)
			must(t, err)
			arn = aws.ToString(out.TableDescription.LatestStreamArn)
		}
		return arn
	}
	read := func(prefix string, n int) {
		t.Helper()
		e.put(t, "events", prefix, 0, 10)
		await(t, "all have come", func() bool { return s.count() == n })
	}
	stop := start()
	read("a", 10)
	stop()
	stop = start()
	read("b", 20)
	arn := again()
	read("c", 30)
	if len(told) != 2 || <-told != arn+" behind 20" || <-told != arn+" behind 20" {
		t.Error("it was not told twice, since it failed once")
	}
	stop()
	arn = again()
	stop = start()
	read("d", 40)
	if len(told) != 1 || <-told != arn+" behind 30" {
		t.Error("it was not told after a restart")
	}
	stop()
	start()
	read("e", 50)
	if len(told) != 0 {
		t.Errorf("it was told of %s", <-told)
	}
}

// An expiry is a removal by the service, or one of an item that guard has marked; anybody else's
// removal is none.
func TestExpired(t *testing.T) {
	n := func(v string) streamtypes.AttributeValue { return &streamtypes.AttributeValueMemberN{Value: v} }
	service := &streamtypes.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")}
	image := func(mark string) *streamtypes.StreamRecord {
		return &streamtypes.StreamRecord{OldImage: map[string]streamtypes.AttributeValue{"due": n("5"), "mark": n(mark)}}
	}
	for name, test := range map[string]struct {
		r    streamtypes.Record
		mark string
		want bool
	}{
		"by the service":         {streamtypes.Record{EventName: "REMOVE", UserIdentity: service}, "", true},
		"by a user":              {streamtypes.Record{EventName: "REMOVE", Dynamodb: image("5")}, "", false},
		"marked":                 {streamtypes.Record{EventName: "REMOVE", Dynamodb: image("5")}, "mark", true},
		"renewed since the mark": {streamtypes.Record{EventName: "REMOVE", Dynamodb: image("4")}, "mark", false},
		"no image":               {streamtypes.Record{EventName: "REMOVE"}, "mark", false},
		"not a removal":          {streamtypes.Record{EventName: "MODIFY", UserIdentity: service, Dynamodb: image("5")}, "mark", false},
	} {
		if got := consume.Expired(&test.r, "due", test.mark); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Damaged rows of leases do not stop a consumer. It rewrites unreadable rows, and reads the stream
// from the beginning if its position is lost.
func TestDamagedLeases(t *testing.T) {
	for name, damage := range map[string]func(item map[string]types.AttributeValue){
		"no term":        func(i map[string]types.AttributeValue) { delete(i, "term") },
		"neither":        func(i map[string]types.AttributeValue) { delete(i, "term"); delete(i, "beat") },
		"a term of text": func(i map[string]types.AttributeValue) { i["term"] = &types.AttributeValueMemberS{Value: "x"} },
		"a fraction":     func(i map[string]types.AttributeValue) { i["term"] = &types.AttributeValueMemberN{Value: "1.5"} },
		"a huge beat":    func(i map[string]types.AttributeValue) { i["beat"] = &types.AttributeValueMemberN{Value: "9e37"} },
		"below zero":     func(i map[string]types.AttributeValue) { i["term"] = &types.AttributeValueMemberN{Value: "-3"} },
		"no checkpoint": func(i map[string]types.AttributeValue) {
			i["checkpoint"] = &types.AttributeValueMemberS{Value: "garbage"}
		},
		"a foreign checkpoint": func(i map[string]types.AttributeValue) {
			i["checkpoint"] = &types.AttributeValueMemberS{Value: "999999999999999999999999999999999999999"}
		},
		"a list for one": func(i map[string]types.AttributeValue) { i["checkpoint"] = &types.AttributeValueMemberL{} },
	} {
		for _, start := range []consume.Start{consume.TrimHorizon, consume.Latest} {
			t.Run(fmt.Sprint(name, start), func(t *testing.T) {
				e := open(t, "", mayfly.Options{Shards: 1})
				e.table(t, "events")
				s := newSeen()
				c := e.consumer(t, "events", s)
				c.Start = start
				stop := run(t, c.Run)
				await(t, "it has begun", func() bool { return len(e.rows(t)) > int(start) })
				e.put(t, "events", "a", 0, 10)
				await(t, "all have come", func() bool { return s.count() == 10 })
				stop()
				for _, item := range e.scan(t, lease.TableName) {
					damage(item)
					_, err := e.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(lease.TableName), Item: item})
					must(t, err)
				}
				e.put(t, "events", "b", 0, 10)
				c = e.consumer(t, "events", s)
				c.Start = start
				run(t, c.Run)
				await(t, "the others have come", func() bool { return s.count() == 20 })
				await(t, "the rows are mended", func() bool {
					for _, r := range e.rows(t) {
						if r.Damaged() || r.Term == 0 {
							return false
						}
					}
					return true
				})
			})
		}
	}
}
