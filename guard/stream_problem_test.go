package guard

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/consume"
)

// ends waits until a guard ends with a problem, and checks that it is one of these.
func (r *guarding) ends(codes ...Code) {
	r.t.Helper()
	select {
	case <-r.over:
	case <-time.After(patience):
		r.t.Fatalf("guard goes on, and should end with %s", codes)
	}
	var p *Problem
	if err := r.stop(); !errors.As(err, &p) || !slices.Contains(codes, p.Code) || p.Message == "" || p.Next == "" {
		r.t.Errorf("guard has ended with %v, and not with %s", err, codes)
	}
}

// A stream that cannot be followed, or no longer, and a replaced table end guard with a problem
// that names the next step.
func TestStreamProblems(t *testing.T) {
	t.Parallel()
	t.Run("no stream", func(t *testing.T) {
		w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil }))
		w.start(w.options(Stream)).ends(NoStream)
	})
	for _, view := range []types.StreamViewType{types.StreamViewTypeKeysOnly, types.StreamViewTypeNewImage, types.StreamViewTypeOldImage} {
		t.Run(string(view), func(t *testing.T) {
			w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) { in.StreamSpecification.StreamViewType = view }))
			w.start(w.options(Stream)).ends(NoStream)
		})
	}
	t.Run("switched off", func(t *testing.T) {
		everyStore(t, func(t *testing.T, w *world, o Options) {
			r := w.start(o)
			awaitScanned(t, o.withDefaults().Deadlines)
			w.put("known", w.in(10))
			w.settle()
			w.stream(false)
			r.ends(NoStream)
			w.put("unknown", w.in(10)) // while no worker runs
			w.renew("known", w.in(20))
			w.advance(5 * time.Second)
			w.stream(true)
			w.start(o)
			w.put("later", w.in(5))
			w.advance(5 * time.Second)
			w.awaitNames("known")
			w.settle()
			w.awaitNames("known")
			w.advance(10 * time.Second)
			w.awaitNames("")
		})
	})
	t.Run("made again", func(t *testing.T) {
		w := newWorld(t)
		o := w.options(Stream)
		r := w.start(o)
		awaitScanned(t, w.DynamoDB())
		_, err := w.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(worldTable)})
		must(t, err)
		w.createTable(worldTable)
		r.ends(NewTable, NoTable) // it may have looked in between
		w.put("new", w.in(10))
		w.start(o)
		w.advance(10 * time.Second)
		w.awaitNames("")
	})
	for _, operation := range []string{"DescribeStream", "GetRecords", "CreateTable", "Scan"} {
		t.Run("not allowed: "+operation, func(t *testing.T) {
			w := newWorld(t)
			p := &cable{before: func(o, _ string) error {
				if o == operation {
					return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}
				}
				return nil
			}}
			o := w.options(Stream)
			o.DB, o.Streams = p.db(w.db), p.streams(w.streams)
			w.start(o).ends(AccessDenied)
		})
	}
}

// stream switches the table's stream on or off.
func (w *world) stream(on bool) {
	w.t.Helper()
	spec := &types.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = types.StreamViewTypeNewAndOldImages
	}
	_, err := w.DynamoDB().UpdateTable(w.t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(worldTable), StreamSpecification: spec})
	must(w.t, err)
}

// Shards that are closed and have children lose nothing and bring nothing into disorder.
func TestStreamShardRollover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOptions(func(o *mayfly.Options) { o.ShardBytes = 4096 }))
	w.start(w.options(Stream))
	awaitScanned(t, w.DynamoDB())
	for i := range int64(10) {
		w.fill("item", 200, w.in(10+10*i%70))
	}
	w.fill("gone", 200, w.in(5))
	w.settle()
	w.advance(9 * time.Second)
	await(t, "all due items are gone", func() bool { return w.count() == 200 })
	w.settle()
	w.advance(20 * time.Second)
	w.settle()
	if n := w.count(); n != 200 {
		t.Errorf("%d of 200 items are left before their deadline", n)
	}
	w.advance(time.Second)
	await(t, "all is gone", func() bool { return w.count() == 0 })
	awaitNothingNoted(t, w.DynamoDB())
}

// A scan makes up for records that were trimmed before they were read. The rows that they would
// have deleted from the deadline table go nevertheless.
func TestStreamTrimmed(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, w *world, o Options) {
		r := w.start(o)
		awaitScanned(t, o.withDefaults().Deadlines)
		w.put("renewed", w.in(30*3600))
		w.put("deleted", w.in(30*3600))
		w.put("gone", w.in(10))
		w.settle()
		must(t, r.stop())
		w.renew("renewed", w.in(60*3600))
		w.remove("deleted")
		w.put("unseen", w.in(40*3600))
		w.advance(28 * time.Hour) // longer than streams are kept
		w.start(o)
		w.put("seen", w.in(3600))
		w.advance(2 * time.Hour)
		w.awaitNames("renewed unseen")
		w.settle()
		w.advance(10*time.Hour - time.Millisecond)
		w.settle()
		w.awaitNames("renewed unseen")
		w.advance(time.Millisecond)
		w.awaitNames("renewed")
		w.advance(20 * time.Hour)
		w.awaitNames("")
		for range 4 {
			w.advance(time.Hour)
			w.settle()
		}
		awaitNothingNoted(t, o.withDefaults().Deadlines)
	})
}

// A scan makes up for a position in the stream that is deleted while a worker runs.
func TestStreamPlaceDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := &cable{}
	p.before = func(operation, _ string) error {
		if p.isHeld() && operation == "GetRecords" {
			return errCut
		}
		return nil
	}
	o := w.member("a")
	o.Streams = p.streams(w.streams)
	w.start(o)
	awaitScanned(t, w.DynamoDB())
	p.setHeld(true)
	w.put("unseen", w.in(100))
	w.deleteLeases()
	await(t, "it is found", func() bool { return len(notedIn(t, w.DynamoDB())) == 1 })
	p.setHeld(false)
	w.advance(100 * time.Second)
	await(t, "it is gone", func() bool { return !w.has("unseen") })
}

// If no removal is possible, due deadlines fill the memory up to its limit and no further, and all
// items go in the end.
func TestStreamWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, items = 100, 400
		w := newWorld(t)
		p := &cable{}
		p.before = func(operation, table string) error {
			if p.isHeld() && operation == "DeleteItem" && table == worldTable {
				return errCut
			}
			return nil
		}
		p.setHeld(true)
		o := w.options(Stream)
		o.DB = p.db(w.db)
		var s *stream.Strategy
		var highest atomic.Int64
		observed := make(chan *Guard, 1)
		o.Observe = func(e Event) {
			if e.What == Armed {
				g := <-observed
				highest.Store(max(highest.Load(), int64(g.armed.Len())))
				observed <- g
			}
		}
		w.startWith(o, func(g *Guard) runner {
			g.armed.Most = most
			observed <- g
			s = stream.New(g.env(), nil)
			return s
		})
		awaitScanned(t, w.DynamoDB())
		w.fill("x", items, w.in(0))
		await(t, "the memory is full", func() bool { return s.Room() == 0 })
		p.setHeld(false)
		await(t, "all is gone", func() bool { return w.count() == 0 })
		if n := highest.Load(); n > most+16 { // shards are read side by side
			t.Errorf("%d deadlines were armed, of at most %d", n, most)
		}
	})
}

// A worker can be asked for its horizon from its first moment on, as a report does.
func TestStreamHorizonFromTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan horizoner)
	w.startWith(w.options(Stream), func(g *Guard) runner {
		s := stream.New(g.env(), nil)
		asked <- s
		return s
	})
	s := <-asked
	await(t, "it has a horizon", func() bool { return s.HorizonAt() > 0 })
}

// A worker that runs for long requests a scan whenever it finds that it was away for long, also
// after other scans.
func TestStreamWantsScansAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var s *stream.Strategy
	w.startWith(w.options(Stream), func(g *Guard) runner { s = stream.New(g.env(), nil); return s })
	awaitScanned(t, w.DynamoDB())
	scans := func() int64 {
		set, err := s.ReadSettings(t.Context())
		must(t, err)
		return set.Scans
	}
	must(t, s.Trimmed(t.Context()))
	await(t, "the settings are read again", func() bool { return s.Known().Scans == 2 })
	for want := int64(3); want < 5; want++ {
		for range 3 {
			s.AwayForLong(t.Context())
		}
		if n := scans(); n != want {
			t.Errorf("there are to be %d scans, want %d", n, want)
		}
		await(t, "the settings are read again", func() bool { return s.Known().Scans == want })
		w.advance(21 * time.Hour)
	}
}

// A dry run removes nothing, reports the removals that would happen, and leaves them to a real run.
func TestStreamDryRun(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, w *world, o Options) {
		w.put("a", w.in(10))
		dry := o
		dry.DryRun = true
		r := w.start(dry)
		w.put("b", w.in(10))
		w.put("c", w.in(100))
		w.advance(20 * time.Second)
		r.awaitCount(Spared, 2)
		must(t, r.stop())
		w.awaitNames("a b c")
		w.start(o)
		w.awaitNames("c")
	})
}

// record is one of the stream, as a consumer hands it over.
func record(name string, sequence int, before, after string) consume.Record {
	image := func(ttl string) map[string]streamtypes.AttributeValue {
		if ttl == "" {
			return nil
		}
		return map[string]streamtypes.AttributeValue{"pk": &streamtypes.AttributeValueMemberS{Value: name}, "ttl": &streamtypes.AttributeValueMemberN{Value: ttl}}
	}
	return consume.Record{Record: streamtypes.Record{Dynamodb: &streamtypes.StreamRecord{
		SequenceNumber: aws.String(fmt.Sprintf("%021d", sequence)), OldImage: image(before), NewImage: image(after),
	}}}
}

// Batches that come twice, or late from a worker that has lost its lease, leave the last record's
// deadline in the table, and perhaps deadlines that are refused.
func TestStreamBatchesOutOfOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var s *stream.Strategy
	o := w.member("a")
	r := w.startWith(o, func(g *Guard) runner { s = stream.New(g.env(), nil); return s })
	awaitScanned(t, w.DynamoDB())
	t1, t2, t3 := w.in(1000), w.in(2000), w.in(3000)
	pages := [][]consume.Record{
		{record("x", 1, "", t1)},
		{record("x", 2, t1, t2), record("x", 3, t2, t3)},
		{record("x", 4, t3, t2)},
		{record("x", 5, t2, "")},
		{record("x", 6, "", t1)},
	}
	handle := func(i int) { must(t, s.Handle(t.Context(), "", pages[i])) }
	for i := range pages {
		for again := range i + 1 { // each begins once more from the beginning, as after a crash
			handle(again)
		}
	}
	want := func() {
		t.Helper()
		for _, n := range notedIn(t, w.DynamoDB()) {
			if n == fmt.Sprint("S\x01x ", t1, "000") {
				return
			}
		}
		t.Errorf("the deadline is not there; there are %q", notedIn(t, w.DynamoDB()))
	}
	want()
	for _, i := range []int{0, 3, 1, 2, 2, 1, 3, 0, 1, 1, 3} {
		handle(i)
		want()
	}
	w.put("x", t1)
	w.advance(1000 * time.Second)
	await(t, "it is gone", func() bool { return !w.has("x") })
	must(t, r.stop())
}

// Later workers retry rejected removals, however old: the endpoint or the archive may accept them
// by then.
func TestStreamTriesAgainWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := &cable{before: func(o, table string) error {
		if o == "DeleteItem" && table == worldTable {
			return &smithy.GenericAPIError{Code: "ValidationException", Message: "by the test"}
		}
		return nil
	}}
	w.put("a", w.in(10))
	o := w.options(Stream)
	o.DB = p.db(w.db)
	g := w.start(o)
	awaitScanned(t, w.DynamoDB())
	// A worker that is alone retries when it writes its watermark, once an hour. At the first hour
	// it may still be busy with earlier items, and the clock stands still between the steps.
	inTime := func(what string, over func() bool) {
		g.await(what, func() bool {
			if !over() {
				w.advance(time.Hour)
				time.Sleep(20 * time.Millisecond)
			}
			return over()
		})
	}
	w.advance(10 * time.Second)
	for range 3 {
		before := g.Stats().Counts[Failed]
		inTime("it is rejected", func() bool { return g.Stats().Counts[Failed] > before })
	}
	must(t, g.stop())
	g = w.start(w.options(Stream))
	<-g.Ready()
	w.settle()
	inTime("all are gone", func() bool { return w.count() == 0 })
}
