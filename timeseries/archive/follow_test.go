package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/consume"
	"github.com/mayflydb/mayfly/timeseries"
)

// crashing is a store that ends its user right after the nth file is stored, before anyone else
// knows of it.
type crashing struct {
	Store
	left atomic.Int64
	end  context.CancelFunc
}

func (c *crashing) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	if c.left.Load() <= 0 {
		return errors.New("it is over")
	}
	err := c.Store.Put(ctx, name, write)
	if err == nil && c.left.Add(-1) == 0 {
		c.end()
		return errors.New("it has crashed")
	}
	return err
}

// rawRows counts the rows of all files, duplicates included.
func rawRows(t *testing.T, path string) map[string]int {
	t.Helper()
	a := New(Dir(path))
	days, err := a.files(t.Context())
	must(t, err)
	rows := map[string]int{}
	for _, names := range days {
		for _, name := range names {
			for r, err := range a.read(t.Context(), name, "", newMetrics()) {
				must(t, err)
				rows[r.device+" "+r.key]++
				if dayDir(r.day()) != filepath.ToSlash(filepath.Dir(name))+"/" {
					t.Errorf("%s is in %s", r.key, name)
				}
			}
		}
	}
	return rows
}

// follow runs until this many rows are archived, it has crashed, or a deadline passes.
func (x *world) follow(ctx context.Context, a *Archive, rows int, until func() bool) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- a.Follow(ctx, x.series, FollowOptions{DB: x.db.DynamoDB(), Streams: x.db.Streams(), Rows: rows, Every: 20 * time.Millisecond, Lease: 200 * time.Millisecond})
	}()
	limit := time.After(60 * time.Second)
	for until != nil && !until() {
		select {
		case err := <-ended:
			if ctx.Err() == nil {
				x.t.Errorf("follow has ended: %v", err)
			}
			return
		case <-limit:
			x.t.Fatal("nothing more is archived")
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	<-ended
}

// The files have each expired sample once, with crashes between a file and its checkpoint and with
// batches of other sizes. They have no deleted samples.
func TestFollow(t *testing.T) {
	t.Parallel()
	x := frozen(t, 40*time.Hour)
	written := readings(3, 40)
	must(t, x.w.Write(t.Context(), written...))
	r := x.series.Reader(timeseries.ReaderOptions{Strong: true})
	want := map[string]timeseries.Sample{}
	for d := range 3 {
		for _, s := range all(t, r.Range(t.Context(), timeseries.Query{Device: fmt.Sprintf("device-%d", d)})) {
			want[s.Device+" "+s.Key] = s
		}
	}
	path := t.TempDir()
	for round, rows := range []int{5, 7, 3, 11} {
		_, err := x.db.Clock().Advance(t.Context(), 8*time.Hour)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		store := &crashing{Store: Dir(path), end: cancel}
		store.left.Store(int64(3 + round))
		x.follow(ctx, New(store), rows, func() bool { return ctx.Err() != nil })
		cancel()
	}
	_, err := x.db.Clock().Advance(t.Context(), 9*time.Hour) // less than the stream's retention
	must(t, err)
	a := New(Dir(path))
	x.follow(t.Context(), a, 20, func() bool { return len(rawRows(t, path)) >= len(want) })
	rows := rawRows(t, path)
	if len(rows) != len(want) {
		t.Errorf("%d samples are archived, want %d", len(rows), len(want))
	}
	for key, n := range rows {
		if n != 1 {
			t.Errorf("%s is there %d times", key, n)
		}
	}
	for d := range 3 {
		for _, s := range all(t, a.Union(t.Context(), r, timeseries.Query{Device: fmt.Sprintf("device-%d", d)})) {
			if w := want[s.Device+" "+s.Key]; fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", w) {
				t.Fatalf("archived is %+v, want %+v", s, w)
			}
		}
	}
	var mixed *MixedError
	if _, err := a.Export(t.Context(), x.series, ExportOptions{}); !errors.As(err, &mixed) {
		t.Errorf("an export into it gives %v", err)
	}
	for name := range contents(t, path) {
		if !strings.Contains(name, "/expired-") {
			t.Errorf("%s is left behind", name)
		}
	}
}

func TestSequences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"9", "10", -1}, {"10", "10", 0}, {"0010", "10", 0}, {"", "1", -1}, {"21", "3", 1}} {
		if got := compareSequences(c.a, c.b); got != c.want {
			t.Errorf("%q to %q is %d", c.a, c.b, got)
		}
	}
}

// Samples that files have already use no columns: with as many metrics as a file has columns, the
// next one is still archived.
func TestFollowManyMetrics(t *testing.T) {
	t.Parallel()
	var records []consume.Record
	for i := range 5 {
		image := map[string]streams.AttributeValue{
			"deviceId": &streams.AttributeValueMemberS{Value: "roof"}, "timestamp": &streams.AttributeValueMemberS{Value: fmt.Sprintf("2030-01-01T00:00:%02d.000000000Z#0123456789ab", i)},
		}
		for j := range 600 {
			image[fmt.Sprintf("m%d-%d", i, j)] = &streams.AttributeValueMemberN{Value: "1"}
		}
		records = append(records, consume.Record{Record: streams.Record{
			EventName: streams.OperationTypeRemove, UserIdentity: &streams.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")},
			Dynamodb: &streams.StreamRecord{SequenceNumber: aws.String(fmt.Sprint(100 + i)), OldImage: image},
		}})
	}
	path := t.TempDir()
	// the second time from a checkpoint before them
	for _, some := range [][]consume.Record{records[:4], records} {
		f := &follower{a: New(Dir(path)), o: FollowOptions{Rows: 1}.withDefaults("weather"), shards: map[string]*gathering{}}
		must(t, f.handle(t.Context(), "shard", some))
		if rows := rawRows(t, path); len(rows) != len(some) {
			t.Errorf("%d samples are archived of %d", len(rows), len(some))
		}
	}
}
