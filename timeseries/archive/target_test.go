package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/target"
	"github.com/mayflydb/mayfly/timeseries"
)

// delivery returns a sample as guard delivers it.
func delivery(t testing.TB, device string, at time.Time, values map[string]float64, more ...string) target.Delivery {
	t.Helper()
	item := map[string]types.AttributeValue{
		"deviceId": &types.AttributeValueMemberS{Value: device}, "timestamp": &types.AttributeValueMemberS{Value: at.UTC().Format("2006-01-02T15:04:05.000000000Z") + "#0123456789ab"},
		"ttl": &types.AttributeValueMemberN{Value: fmt.Sprint(at.Unix())},
	}
	for name, v := range values {
		item[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
	}
	for _, name := range more {
		item[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(at.Unix())}
	}
	image, err := attributevalue.MarshalMapJSON(item)
	must(t, err)
	body, err := json.Marshal(guard.Expiry{Table: "weather", Key: json.RawMessage(`{}`), Attribute: "ttl", Deadline: at, Item: image})
	must(t, err)
	return target.Delivery{ID: "x", Attempt: 1, Body: body}
}

func newTarget(t testing.TB, store Store, o TargetOptions) *Target {
	t.Helper()
	tg, err := New(store).Target(t.Context(), o)
	must(t, err)
	t.Cleanup(tg.Close)
	return tg
}

// handOver delivers samples concurrently, each by itself, like guard, and fails if one does not
// arrive.
func handOver(t testing.TB, to *Target, all ...target.Delivery) {
	t.Helper()
	var wait sync.WaitGroup
	for _, d := range all {
		wait.Go(func() {
			if err := to.Deliver(t.Context(), []target.Delivery{d})[0]; err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

// Deliveries of a short time are in one file per day when they return; repeated deliveries make no
// file.
func TestTargetGathers(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: 300 * time.Millisecond, Mark: "gone"})
	var all []target.Delivery
	for i := range 40 {
		all = append(all, delivery(t, fmt.Sprint("device-", i%4), start.Add(-time.Duration(i)*time.Hour), map[string]float64{"temperature": float64(i)}, "gone"))
	}
	handOver(t, to, all...)
	first := contents(t, path)
	// a slow machine starts a second batch; three days each
	if len(rawRows(t, path)) != 40 || len(first) < 3 || len(first) > 9 {
		t.Errorf("%d rows in %d files", len(rawRows(t, path)), len(first))
	}
	handOver(t, to, all...)
	if again := contents(t, path); len(again) != len(first) {
		t.Errorf("delivered again, it makes %d files of %d", len(again), len(first))
	}
	got := deviceSamples(t, New(Dir(path)), "device-1")
	if len(got) != 10 || got[9].Values["temperature"] != 1 || len(got[9].Values) != 1 {
		t.Errorf("there are %+v", got)
	}
	to.Close()
	if err := to.Deliver(t.Context(), all[:1])[0]; !errors.Is(err, errClosed) {
		t.Errorf("after its end it gives %v", err)
	}
	if files := contents(t, path); len(files) != 3 {
		t.Errorf("at the end there are %d files", len(files))
	}
	if rows := rawRows(t, path); len(rows) != 40 {
		t.Errorf("at the end there are %d rows", len(rows))
	}
}

func deviceSamples(t testing.TB, a *Archive, device string) []timeseries.Sample {
	t.Helper()
	return all(t, a.Range(t.Context(), timeseries.Query{Device: device}))
}

// The small files of a day become one when there are many, and at the end. Readers see no
// difference.
func TestTargetPutsTogether(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	a := New(Dir(path))
	const most = partsMax + 6
	files := 0
	ended := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() { // sees each acknowledged sample while files come and go
		for {
			select {
			case <-ended:
				return
			default:
			}
			last := -1.0
			for s, err := range a.Range(t.Context(), timeseries.Query{Device: "roof"}) {
				if err != nil || s.Values["n"] != last+1 {
					t.Errorf("behind %v there is %+v, %v", last, s, err)
					return
				}
				last = s.Values["n"]
			}
		}
	})
	for i := range most {
		handOver(t, to, delivery(t, "roof", start.Add(time.Duration(i)*time.Second), map[string]float64{"n": float64(i)}))
		// does not open them, because they may be combined meanwhile
		names, err := Dir(path).List(t.Context(), allDays)
		must(t, err)
		files = max(files, len(names))
	}
	close(ended)
	readers.Wait()
	to.Close()
	rows := rawRows(t, path)
	if len(rows) != most {
		t.Errorf("there are %d rows", len(rows))
	}
	for key, n := range rows {
		if n != 1 {
			t.Errorf("%s is there %d times", key, n)
		}
	}
	if last := len(contents(t, path)); files > 2*partsMax || last != 1 {
		t.Errorf("there were up to %d files, and at the end %d", files, last)
	}
}

// opening is a store that counts opened files, and calls before with the name of each beforehand.
type opening struct {
	Store
	before func(name string)
	opened map[string]int
}

func (o *opening) Open(ctx context.Context, name string) (File, error) {
	if o.before != nil {
		o.before(name)
	}
	file, err := o.Store.Open(ctx, name)
	if err == nil {
		o.opened[name]++
	}
	return file, err
}

// A reader sees each sample once although the listed files are combined before it opens them,
// repeatedly. It reads no file twice.
func TestRangeWhilePutTogether(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	last := -1
	deliver := func() {
		last++
		handOver(t, to, delivery(t, "roof", start.Add(time.Duration(last)*time.Second), map[string]float64{"n": float64(last)}))
	}
	together := func() {
		to.turn <- struct{}{}
		for _, g := range to.days.byAge() {
			to.days.together(t.Context(), g, false)
		}
		<-to.turn
	}
	for range 5 {
		deliver()
	}
	to.Close() // one file, which stays
	to = newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	for range 5 {
		deliver()
	}
	const generations = 20
	store := &opening{Store: Dir(path), opened: map[string]int{}}
	opens := 0
	store.before = func(string) {
		if opens++; opens > 2 && opens <= 2+generations { // two files have been read
			deliver()
			together()
		}
	}
	for i, s := range deviceSamples(t, New(store), "roof") {
		if s.Values["n"] != float64(i) {
			t.Fatalf("sample %d is %+v", i, s)
		}
		opens = max(opens, 1000+i)
	}
	if last != 9+generations || opens != 1000+last {
		t.Errorf("up to %d samples came, and up to %d were read", last, opens-1000)
	}
	for name, n := range store.opened {
		if n != 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}

// A listed file that cannot be opened is an error, soon.
func TestRangeListedNotThere(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	handOver(t, to, delivery(t, "roof", start, map[string]float64{"v": 1}))
	to.Close()
	must(t, os.Symlink(filepath.Join(path, "none"), filepath.Join(path, "dt=2030-01-01", "samples.parquet")))
	var got error
	for _, err := range New(Dir(path)).Range(t.Context(), timeseries.Query{Device: "roof"}) {
		got = errors.Join(got, err)
	}
	if !errors.Is(got, fs.ErrNotExist) || !strings.Contains(got.Error(), "dt=2030-01-01/samples.parquet") {
		t.Errorf("it gives %v", got)
	}
}

// The last delivered state of an item counts: in one batch, in another, and in another file.
func TestTargetFinal(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]TargetOptions{"files that grow": {Wait: time.Millisecond}, "finished files": {Wait: time.Millisecond, Rows: 1}} {
		path := t.TempDir()
		to := newTarget(t, Dir(path), o)
		one := func(v float64) target.Delivery { return delivery(t, "roof", start, map[string]float64{"v": v}) }
		for _, err := range to.Deliver(t.Context(), []target.Delivery{one(1), one(2)}) {
			must(t, err)
		}
		check := func(want float64) {
			t.Helper()
			if got := deviceSamples(t, New(Dir(path)), "roof"); len(got) != 1 || got[0].Values["v"] != want {
				t.Errorf("%s: there are %+v, want %v", name, got, want)
			}
		}
		check(2)
		handOver(t, to, one(3))
		check(3)
		to.Close()
		check(3)
	}
}

// The order within a batch counts even if a file already has the last state.
func TestTargetFinalIsAsBefore(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	one := func(v float64) target.Delivery { return delivery(t, "roof", start, map[string]float64{"v": v}) }
	handOver(t, to, one(1))
	for _, err := range to.Deliver(t.Context(), []target.Delivery{one(2), one(1)}) {
		must(t, err)
	}
	for range 2 {
		if got := deviceSamples(t, New(Dir(path)), "roof"); len(got) != 1 || got[0].Values["v"] != 1 {
			t.Errorf("there are %+v", got)
		}
		to.Close()
	}
}

// Two goroutines may close a target at once.
func TestTargetClosedTwice(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	for i := range 3 {
		handOver(t, to, delivery(t, "roof", start.Add(time.Duration(i)*time.Second), map[string]float64{"v": 1}))
	}
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(to.Close)
	}
	wait.Wait()
	if files := contents(t, path); len(files) != 1 {
		t.Errorf("there are %d files", len(files))
	}
}

// A store that hangs becomes an error after a time limit, for deliveries and for Close.
func TestTargetStoreHangs(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{Store: Dir(path)}
		to, err := New(store).Target(t.Context(), TargetOptions{Rows: 2})
		must(t, err)
		store.hangs.Store(true)
		d := delivery(t, "roof", start, map[string]float64{"v": 1})
		since := time.Now()
		if err := to.Deliver(context.Background(), []target.Delivery{d})[0]; !errors.Is(err, context.DeadlineExceeded) || time.Since(since) < writeTime {
			t.Errorf("after %s it gives %v", time.Since(since), err)
		}
		store.hangs.Store(false)
		must(t, to.Deliver(t.Context(), []target.Delivery{d})[0])
		store.merges.Store(true)
		must(t, to.Deliver(t.Context(), []target.Delivery{delivery(t, "roof", start.Add(time.Second), map[string]float64{"v": 1})})[0])
		since = time.Now()
		to.Close() // while files are combined
		if took := time.Since(since); took > closeTime {
			t.Errorf("the end takes %s", took)
		}
	})
	if rows := rawRows(t, path); len(rows) != 2 {
		t.Errorf("there are %d rows", len(rows))
	}
}

// hanging is a store that waits for the context's end: for any file, or for combined ones.
type hanging struct {
	Store
	hangs, merges atomic.Bool
}

func (h *hanging) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	m := removedForm().FindStringSubmatch(name)
	if h.hangs.Load() || h.merges.Load() && m[2] != m[3] {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Store.Put(ctx, name, write)
}

// A delivery that is not a sample fails for good, with a reason; others of its batch arrive.
func TestTargetRefuses(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	good := delivery(t, "roof", start, map[string]float64{"v": 1})
	body := func(from, to string) target.Delivery {
		d := good
		d.Body = []byte(strings.Replace(string(d.Body), from, to, 1))
		return d
	}
	many := map[string]float64{}
	for i := range metricsMax + 1 {
		many[fmt.Sprint("m", i)] = 1
	}
	deliveries := []target.Delivery{
		good, body("{", "["), body(`"attribute":"ttl"`, `"attribute":"until"`), body(`"deviceId"`, `"device"`), body(`#0123456789ab`, ``), body(`"v"`, `"Timestamp"`),
		body(`{"S":"roof"}`, `{"X":"roof"}`), delivery(t, "roof", start, many),
	}
	words := []string{"", "does not come from guard", `TTL attribute is "until"`, "no deviceId", "not the sort key", "a column has that name", "item", "more than 2000 metrics"}
	for i, err := range to.Deliver(t.Context(), deliveries) {
		if words[i] == "" {
			must(t, err)
			continue
		}
		e := target.AsError(err)
		if e == nil || !e.Permanent || e.Code != "NotASample" || !strings.Contains(e.Message, words[i]) {
			t.Errorf("%s gives %v", deliveries[i].Body[:min(200, len(deliveries[i].Body))], err)
		}
	}
	if rows := rawRows(t, path); len(rows) != 1 {
		t.Errorf("there are %v", rows)
	}
}

// A target refuses rows that readers refuse, since one would make a day's file unreadable. It
// accepts metadata that grow as JSON.
func TestTargetWritesWhatIsRead(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	with := func(device, metadata string, at time.Duration) target.Delivery {
		d := delivery(t, device, start.Add(at), map[string]float64{"v": 1})
		text, err := json.Marshal(metadata)
		must(t, err)
		d.Body = []byte(strings.Replace(string(d.Body), `"v":`, `"metadata":{"S":`+string(text)+`},"v":`, 1))
		return d
	}
	handOver(t, to, with("roof", "none", 0))
	if e := target.AsError(to.Deliver(t.Context(), []target.Delivery{with("#shard07", "none", 0)})[0]); e == nil || !e.Permanent || !strings.Contains(e.Message, "the device's name has 0 bytes") {
		t.Errorf("a device without a name gives %v", e)
	}
	long := strings.Repeat("<\x01", 195_000) // of an item of up to 400 KB
	handOver(t, to, with("roof", long, time.Second))
	got := deviceSamples(t, New(Dir(path)), "roof")
	if len(got) != 2 || got[1].Tags["metadata"] != long {
		t.Errorf("there are %d samples", len(got))
	}
	longer := with("roof", strings.Repeat(long, 2), 2*time.Second)
	if e := target.AsError(to.Deliver(t.Context(), []target.Delivery{longer})[0]); e == nil || !e.Permanent || !strings.Contains(e.Message, "the metadata of device") {
		t.Errorf("metadata of more than an item's give %v", e)
	}
	to.Close()
	if rows := rawRows(t, path); len(rows) != 2 {
		t.Errorf("there are %d rows", len(rows))
	}
}

// A day with more metrics than a file has columns has two files.
func TestTargetManyMetrics(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	var all []target.Delivery
	for i := range 3 {
		values := map[string]float64{}
		for j := range 800 {
			values[fmt.Sprintf("m%d-%d", i, j)] = float64(j + 1)
		}
		all = append(all, delivery(t, "roof", start.Add(time.Duration(i)*time.Second), values))
	}
	for _, err := range to.Deliver(t.Context(), all) {
		must(t, err)
	}
	for range 2 {
		if got := deviceSamples(t, New(Dir(path)), "roof"); len(got) != 3 || len(got[2].Values) != 800 || got[2].Values["m2-799"] != 800 {
			t.Errorf("there are %d samples", len(got))
		}
		to.Close()
	}
}

// breaking is a store that fails on command.
type breaking struct {
	Store
	mu     sync.Mutex
	put    func(name string) error // called before a put; may be nil
	remove func(name string) error
	begun  chan string // receives the name of each started file; may be nil
}

func (b *breaking) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	b.mu.Lock()
	put := b.put
	b.mu.Unlock()
	if b.begun != nil {
		b.begun <- name
	}
	if put != nil {
		if err := put(name); err != nil {
			return err
		}
	}
	return b.Store.Put(ctx, name, write)
}

func (b *breaking) Remove(ctx context.Context, name string) error {
	if b.remove != nil {
		return b.remove(name)
	}
	return b.Store.Remove(ctx, name)
}

// A failed write is a temporary error of its own batch; the same deliveries arrive later.
func TestTargetStoreFails(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	store := &breaking{Store: Dir(path)}
	to := newTarget(t, store, TargetOptions{Wait: time.Millisecond})
	yesterday, today := delivery(t, "roof", start.Add(-24*time.Hour), map[string]float64{"v": 1}), delivery(t, "roof", start, map[string]float64{"v": 2})
	store.put = func(name string) error {
		if strings.Contains(name, "dt=2030-01-01") {
			return errors.New("the disk is full")
		}
		return nil
	}
	results := to.Deliver(t.Context(), []target.Delivery{yesterday, today})
	if e := target.AsError(results[1]); results[0] != nil || e == nil || e.Permanent || !strings.Contains(e.Message, "the disk is full") || !strings.Contains(e.Message, "dt=2030-01-01") {
		t.Errorf("results %v", results)
	}
	store.put = nil
	handOver(t, to, yesterday, today)
	to.Close()
	if rows := rawRows(t, path); len(rows) != 2 {
		t.Errorf("there are %v", rows)
	}
}

// A delivery ends with its context, and a batch without waiting callers is not written; others of
// the batch continue.
func TestTargetContext(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	let := make(chan struct{})
	store := &breaking{Store: Dir(path), begun: make(chan string, 10), put: func(string) error { <-let; return nil }}
	to := newTarget(t, store, TargetOptions{Wait: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		left <- to.Deliver(ctx, []target.Delivery{delivery(t, "left", start, map[string]float64{"v": 1})})[0]
	}()
	<-store.begun
	stays := make(chan error, 1)
	go func() {
		stays <- to.Deliver(t.Context(), []target.Delivery{delivery(t, "stays", start, map[string]float64{"v": 1})})[0]
	}()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("it gives %v", err)
	}
	close(let)
	must(t, <-stays)
	if rows := rawRows(t, path); len(rows) != 1 {
		t.Errorf("there are %v", rows)
	}
}

// After a crash between a combined file and the removal of its parts, readers see each sample once,
// and the next target removes the parts.
func TestTargetLeftovers(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	store := &breaking{Store: Dir(path), remove: func(string) error { return errors.New("it has crashed") }}
	to := newTarget(t, store, TargetOptions{Wait: time.Millisecond})
	for i := range 5 {
		handOver(t, to, delivery(t, "roof", start.Add(time.Duration(i)*time.Second), map[string]float64{"v": float64(i)}))
	}
	to.Close()
	if files := contents(t, path); len(files) != 6 {
		t.Errorf("there are %d files", len(files))
	}
	for _, want := range []int{6, 1} {
		if n := len(contents(t, path)); n != want {
			t.Errorf("there are %d files, want %d", n, want)
		}
		for key, n := range rawRows(t, path) { // in the files that readers use
			if n != 1 {
				t.Errorf("%s is there %d times", key, n)
			}
		}
		if got := deviceSamples(t, New(Dir(path)), "roof"); len(got) != 5 {
			t.Errorf("there are %d samples", len(got))
		}
		newTarget(t, Dir(path), TargetOptions{}).Close()
	}
}

// A target's file is omitted if another of the same writer includes it; numbers of other writers do
// not count.
func TestWithoutIncluded(t *testing.T) {
	t.Parallel()
	file := func(writer string, first, last int) string {
		return fmt.Sprintf("dt=2030-01-01/removed-%s-%010d-%010d.parquet", writer, first, last)
	}
	kept := []string{"dt=2030-01-01/removed-other.parquet", "dt=2030-01-01/samples.parquet", file("a", 1, 64), file("a", 65, 65), file("b", 2, 2), file("b", 3, 3), file("c", 1, 1)}
	gone := []string{file("a", 1, 1), file("a", 1, 30), file("a", 2, 2), file("a", 64, 64)}
	names := slices.Sorted(slices.Values(slices.Concat(kept, gone)))
	others, included := withoutIncluded(names)
	if want := slices.Sorted(slices.Values(kept)); !slices.Equal(others, want) {
		t.Errorf("%q stay, want %q", others, want)
	}
	slices.Sort(included)
	if want := slices.Sorted(slices.Values(gone)); !slices.Equal(included, want) {
		t.Errorf("%q are included, want %q", included, want)
	}
}

// An archive has files of one kind: a target refuses other files, and Export and Follow refuse a
// target's.
func TestTargetMixed(t *testing.T) {
	t.Parallel()
	x := frozen(t, 0)
	must(t, x.w.Write(t.Context(), readings(1, 1)...))
	path := t.TempDir()
	_, err := New(Dir(path)).Export(t.Context(), x.series, ExportOptions{})
	must(t, err)
	var mixed *MixedError
	if _, err := New(Dir(path)).Target(t.Context(), TargetOptions{}); !errors.As(err, &mixed) || !strings.Contains(err.Error(), "an export's files") {
		t.Errorf("of an export it gives %v", err)
	}
	path = t.TempDir()
	to := newTarget(t, Dir(path), TargetOptions{Wait: time.Millisecond})
	handOver(t, to, delivery(t, "roof", start, map[string]float64{"v": 1}))
	if _, err := New(Dir(path)).Export(t.Context(), x.series, ExportOptions{}); !errors.As(err, &mixed) || !strings.Contains(err.Error(), "what guard has removed") {
		t.Errorf("an export gives %v", err)
	}
	if err := New(Dir(path)).Follow(t.Context(), x.series, FollowOptions{DB: x.db.DynamoDB(), Streams: x.db.Streams()}); !errors.As(err, &mixed) {
		t.Errorf("following gives %v", err)
	}
	for _, o := range []TargetOptions{{Wait: time.Nanosecond}, {Wait: time.Hour}, {Rows: -1}, {Rows: followRowsMax + 1}} {
		if _, err := New(Dir(t.TempDir())).Target(t.Context(), o); err == nil {
			t.Errorf("%+v is not refused", o)
		}
	}
}
