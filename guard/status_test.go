package guard

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// look returns the status of the world's table.
func (w *world) look(minutes int) *Status {
	w.t.Helper()
	s, err := Look(context.Background(), w.options(Auto), minutes)
	must(w.t, err)
	return s
}

// A running worker is shown, with its armed deadlines and its counts; one that has ended is not.
func TestStatusShowsWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if s := w.look(10); len(s.Workers) != 0 || len(s.Shares) != 0 || s.Attribute != "ttl" || !s.At.Equal(epoch) {
		t.Errorf("before the first worker: %+v", s)
	}
	w.put("due", w.in(-5))
	w.put("soon", w.in(30))
	w.put("later", w.in(90))
	o := w.options(Scan)
	o.Owner = "me"
	g := w.start(o)
	g.await("both are armed", func() bool { s := g.Stats(); return s.Armed == 2 && s.Counts[Removed] == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	reported := make(chan struct{})
	go func() { defer close(reported); g.Report(ctx) }()
	g.await("the worker is shown", func() bool { return len(w.look(3).Workers) == 1 })
	if tables, err := Guarded(t.Context(), w.db, Tables{}); err != nil || !slices.Equal(tables, []string{worldTable}) {
		t.Errorf("guarded: %v, %v", tables, err)
	}
	s := w.look(3)
	me := s.Workers[0]
	if me.Name != "me" || me.Strategy != Scan || me.Armed != 2 || me.Due != 0 || me.Counts["removed"] != 1 || !me.At.Equal(epoch) || me.LateMS.Max < 5000 {
		t.Errorf("the worker: %+v", me)
	}
	if s.Backlog != nil || !slices.Equal(s.Upcoming, []int64{1, 1, 0}) {
		t.Errorf("backlog %+v, upcoming %v", s.Backlog, s.Upcoming)
	}
	cancel()
	<-reported
	if s := w.look(3); len(s.Workers) != 0 {
		t.Errorf("the worker has ended, and is shown: %+v", s.Workers)
	}
}

// Items in an index are counted there, whether or not a worker knows them, and leases are shown
// with their watermarks.
func TestStatusCountsInIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("shard"), AttributeType: "S"},
			types.AttributeDefinition{AttributeName: aws.String("ttl"), AttributeType: "N"})
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-ttl"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("shard"), KeyType: "HASH"}, {AttributeName: aws.String("ttl"), KeyType: "RANGE"}},
		}}
	}))
	inShard := func(name string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"shard": &types.AttributeValueMemberS{Value: name}}
	}
	w.put("a", w.in(-90), inShard("0"))
	w.put("b", w.in(-30), inShard("1"))
	w.put("c", w.in(1), inShard("0"))
	w.put("d", w.in(60), inShard("1"))
	w.put("e", w.in(61), inShard("1"))
	w.put("f", w.in(600), inShard("1"))
	o := w.options(Index)
	o.Shards = 2
	look := func() *Status {
		s, err := Look(context.Background(), o, 3)
		must(t, err)
		return s
	}
	s := look()
	if s.Backlog == nil || s.Backlog.Items != 2 || !s.Backlog.Oldest.Equal(epoch.Add(-90*time.Second)) || !slices.Equal(s.Upcoming, []int64{2, 1, 0}) {
		t.Errorf("backlog %+v, upcoming %v", s.Backlog, s.Upcoming)
	}
	g := w.start(o)
	g.awaitCount(Removed, 2)
	if s := look(); s.Backlog.Items != 0 || !s.Backlog.Oldest.IsZero() {
		t.Errorf("backlog %+v", s.Backlog)
	}
	must(t, g.stop())
	s = look()
	i := slices.IndexFunc(s.Shares, func(s Share) bool { return s.Of == "index" })
	if i < 0 || !slices.ContainsFunc(s.Shares[i].Leases, func(l LeaseStatus) bool { return l.Name == "sweep/0" && l.Watermark.Equal(epoch) }) {
		t.Errorf("shares: %+v", s.Shares)
	}
}

// Workers of the scan and index strategies report their horizons.
func TestStatusShowsHorizons(t *testing.T) {
	t.Parallel()
	horizon := func(g *guarding) time.Duration {
		<-g.Ready()
		if h := g.worker(epoch).Horizon; !h.IsZero() {
			return h.Sub(epoch)
		}
		return -1
	}
	awaitHorizon := func(g *guarding, want time.Duration) {
		t.Helper()
		last := time.Duration(0)
		g.await("the horizon has come", func() bool { last = horizon(g); return last == want })
	}
	t.Run("scan", func(t *testing.T) {
		w := newWorld(t)
		w.put("far", w.in(3600))
		tap := w.tapped()
		tap.do(func(_ context.Context, operation string, in any) error {
			if scan, is := in.(*dynamodb.ScanInput); is && *scan.Segment == 2 {
				return refusal("ThrottlingException")
			}
			return nil
		})
		o := w.scanOptions()
		o.Segments, o.Period = 4, 10*time.Minute
		g := w.start(o)
		g.awaitCount(Throttled, 3)
		if h := horizon(g); h >= 0 {
			t.Errorf("a segment was not read, and the horizon is %v", h)
		}
		tap.do(nil)
		// the duration of a pass is unknown, so it is an hour for the pass and another in reserve
		awaitHorizon(g, 2*time.Hour+time.Minute)
		w.advance(10 * time.Minute)
		awaitHorizon(g, 31*time.Minute) // the pass takes no time, so only the period counts
	})
	t.Run("scan without room", func(t *testing.T) {
		w := newWorld(t)
		w.put("near", w.in(30))
		w.put("far", w.in(700))
		w.put("further", w.in(701))
		g, err := New(w.scanOptions())
		must(t, err)
		g.armed.Most = strategy.RoomKept - 1
		awaitHorizon(w.run(g, nil), 700*time.Second)
	})
	t.Run("index", func(t *testing.T) {
		w := newWorld(t, withWindows)
		tap := w.tapped()
		tap.do(func(_ context.Context, operation string, in any) error {
			if operation == "Query" && tableOf(in) == worldTable {
				return refusal("ThrottlingException")
			}
			return nil
		})
		w.putWindowed("far", w.in(3600))
		g := w.start(w.indexOptions())
		g.awaitCount(Throttled, 3)
		awaitHorizon(g, -24*time.Hour)
		tap.do(nil)
		awaitHorizon(g, 10*time.Second)
		w.advance(5 * time.Second)
		awaitHorizon(g, 15*time.Second)
	})
	t.Run("index without room", func(t *testing.T) {
		w := newWorld(t, withShards)
		w.putShard("near", w.in(130), "0")
		w.putShard("far", w.in(200), "0")
		o := w.indexOptions()
		o.Period, o.Shards, o.MaxRCU = 2*time.Minute, 1, 2 // so a page has one item
		g, err := New(o)
		must(t, err)
		g.armed.Most = 20_000
		awaitHorizon(w.run(g, nil), 130*time.Second)
	})
}

// The deadline table shows all deadlines, also those that are not armed yet.
func TestStatusCountsInDeadlines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.start(w.options(Stream))
	for i, at := range []int64{1, 59, 60, 61, 130, 3000} {
		w.put(strconv.Itoa(i), w.in(at))
	}
	await(t, "all are noted, by a worker that has taken all partitions", func() bool {
		s := w.look(60)
		partitions := slices.IndexFunc(s.Shares, func(s Share) bool { return s.Of == "partitions" })
		return slices.Equal(s.Upcoming[:3], []int64{2, 2, 1}) && s.Upcoming[50] == 1 && partitions >= 0 && len(s.Shares[partitions].Leases) == 16
	})
	s := w.look(3)
	if s.Backlog == nil || s.Backlog.Items != 0 || !slices.Equal(s.Upcoming, []int64{2, 2, 1}) {
		t.Errorf("backlog %+v, upcoming %v", s.Backlog, s.Upcoming)
	}
	if me := g.worker(epoch); me.Horizon.Before(epoch.Add(30 * time.Second)) {
		t.Errorf("horizon %v", me.Horizon)
	}
	must(t, g.stop())
	w.advance(100 * time.Second)
	if s := w.look(1); s.Backlog.Items != 4 || !s.Backlog.Oldest.Equal(epoch.Add(time.Second)) || s.Upcoming[0] != 1 {
		t.Errorf("after a while without a worker: backlog %+v, upcoming %v", s.Backlog, s.Upcoming)
	}
}

// A status that cannot be read is a problem with a next step.
func TestStatusProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options(Auto)
	o.Table = "absent"
	var p *Problem
	if _, err := Look(context.Background(), o, 1); !errors.As(err, &p) || p.Code != NoTable || p.Next == "" {
		t.Errorf("%v", err)
	}
}

// A worker is shown for an hour after its last report, and not if it reported about an earlier table
// of the same name.
func TestStatusForgetsWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leases := lease.New(w.db, "guard/"+w.tableARN()+"/status", lease.Options{})
	report := func(name string, at time.Time) {
		row, err := leases.Take(t.Context(), lease.Row{Shard: name})
		must(t, err)
		text, err := json.Marshal(Worker{Name: name, At: at})
		must(t, err)
		must(t, row.Save(t.Context(), string(text)))
	}
	report("before", tableMade.Add(-time.Minute))
	if s := w.look(0); len(s.Workers) != 0 {
		t.Errorf("of an earlier table there are %+v", s.Workers)
	}
	w.advance(2 * time.Hour)
	report("late", w.now().Add(-time.Hour))
	report("later", w.now().Add(-time.Hour-time.Second))
	s := w.look(0)
	if len(s.Workers) != 1 || s.Workers[0].Name != "late" || !s.Created.Equal(tableMade) {
		t.Errorf("of the table from %v there are %+v", s.Created, s.Workers)
	}
}

// tableARN returns the ARN of the table.
func (w *world) tableARN() string {
	arn, _, _ := strings.Cut(w.streamARN(), "/stream/")
	return arn
}

// Stats have the reason for which Auto has chosen Scan.
func TestReasonForScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTable(func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil }))
	for strategy, want := range map[Strategy]string{Auto: "no stream, and no index of deadlines", Scan: ""} {
		g := w.start(w.options(strategy))
		<-g.Ready()
		if s := g.Stats(); s.Strategy != Scan || s.Reason != want {
			t.Errorf("%q: %s because of %q", strategy, s.Strategy, s.Reason)
		}
		must(t, g.stop())
	}
}
