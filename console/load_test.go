package console_test

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

var (
	loadItems  = flag.Int("load-items", 20_000, "items of TestLoad that do not expire: -load-items 1000000 -load-rounds 6 is the long form")
	loadRounds = flag.Int("load-rounds", 0, "rounds of TestLoad, each a stretch without a page and one with each page; it then compares them. 0: one stretch of 5 s with the page Now")
)

const (
	loadRate  = 1_000 // expirations per second, one each millisecond
	loadMost  = 200   // ms: the longest task of a page
	loadLater = 1.2   // how much the 99th percentile of the lateness may be of that without a page
)

// watch collects what the browser knows of a page's work, from its start: tasks over 50 ms, and the
// updates that came.
const watch = `
window.tasks = [];
new PerformanceObserver(list => list.getEntries().forEach(e => tasks.push(e.duration))).observe({type: "longtask", buffered: true});
window.updates = [];
window.EventSource = class extends EventSource {
	constructor(url) {
		super(url);
		this.addEventListener("clock", () => updates.push(performance.now()));
		this.addEventListener("append", () => updates.push(performance.now()));
	}
};`

// loaded is a server with a large table. A part of its items expires at a rate.
type loaded struct {
	*world
	t *testing.T
}

// A page that is open while 1,000 items a second expire receives updates, and neither its document
// nor its memory grows. The long form compares the lateness and the tasks with and without pages.
func TestLoad(t *testing.T) {
	b := chrome.Start(t)
	own, err := mayfly.Open(filepath.Join(t.TempDir(), "data"), mayfly.Options{Console: console.New})
	must(t, err)
	t.Cleanup(func() { must(t, own.Close()) })
	w := &loaded{&world{name: "mayfly", pages: serve(t, own.Handler()) + "/_mayfly/", db: own.DynamoDB(), own: own}, t}
	w.make()
	begin := time.Now()
	w.put(*loadItems, func(i int) (string, string) {
		return "later" + strconv.Itoa(i), strconv.FormatInt(begin.Add(2*time.Hour).Unix()+int64(i), 10)
	})
	t.Logf("%d items written in %v", *loadItems, time.Since(begin).Round(time.Millisecond))
	if *loadRounds > 0 {
		w.compare(b)
		return
	}

	const lasts = 5 * time.Second
	tab := b.Open(t, chrome.Desk)
	tab.Before(watch)
	tab.Go(w.pages)
	tab.Wait(`updates.length > 1`)
	before, removed := tab.Figures(), w.metrics()["removed"]
	w.expire(time.Now().Add(2*time.Second), lasts)
	tab.WaitText("#lateness", "5,000 expirations") // since the page was opened
	tab.Wait(`updates.length > 6`)
	if n := w.metrics()["removed"] - removed; n != 5000 {
		t.Errorf("%g items expired, not 5000", n)
	}
	after := tab.Figures()
	if grown := after["Nodes"] - before["Nodes"]; grown > 1500 { // the charts have more bars
		t.Errorf("the document has grown by %g nodes to %g", grown, after["Nodes"])
	}
	if grown := after["JSHeapUsedSize"] - before["JSHeapUsedSize"]; grown > 4<<20 {
		t.Errorf("the script's memory has grown by %g bytes to %g", grown, after["JSHeapUsedSize"])
	}
	t.Logf("nodes %g to %g, heap %.1f to %.1f MB; tasks over 50 ms: %v; p50 %.2f ms, p99 %.2f ms", before["Nodes"], after["Nodes"], before["JSHeapUsedSize"]/1e6, after["JSHeapUsedSize"]/1e6,
		chrome.Eval[[]float64](tab, "tasks"), 1000*w.lateness(nil, 0.5), 1000*w.lateness(nil, 0.99))
}

// make makes the table.
func (w *loaded) make() {
	ctx := w.t.Context()
	_, err := w.db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("load"), BillingMode: types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	must(w.t, err)
	_, err = w.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("load"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("until"), Enabled: aws.Bool(true)},
	})
	must(w.t, err)
}

// put writes n items. item returns an item's key and deadline.
func (w *loaded) put(n int, item func(i int) (id, until string)) {
	w.t.Helper()
	const batch = 25
	g, ctx := errgroup.WithContext(w.t.Context())
	g.SetLimit(16)
	for from := 0; from < n; from += batch {
		g.Go(func() error {
			requests := make([]types.WriteRequest, 0, batch)
			for i := from; i < min(from+batch, n); i++ {
				id, until := item(i)
				requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
					"id": &types.AttributeValueMemberS{Value: id}, "until": &types.AttributeValueMemberN{Value: until}, "text": &types.AttributeValueMemberS{Value: strings.Repeat("x", 100)},
				}}})
			}
			out, err := w.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"load": requests}})
			if err == nil && len(out.UnprocessedItems) > 0 {
				err = fmt.Errorf("%d items were not written", len(out.UnprocessedItems["load"]))
			}
			return err
		})
	}
	must(w.t, g.Wait())
}

var loadWave atomic.Int64

// expire writes items that expire evenly from an instant on.
func (w *loaded) expire(from time.Time, lasts time.Duration) {
	w.t.Helper()
	wave := loadWave.Add(1)
	w.put(int(lasts.Seconds()*loadRate), func(i int) (string, string) {
		at := from.Add(time.Duration(i) * time.Second / loadRate)
		return fmt.Sprintf("soon%d-%d", wave, i), fmt.Sprintf("%d.%03d", at.Unix(), at.Nanosecond()/1e6)
	})
}

// figures are metrics of the server: counts of a histogram by their bounds, and others by names.
type figures map[string]float64

const latenessBucket = `mayfly_lateness_commit_seconds_bucket{le="`

// metrics reads the server's metrics.
func (w *loaded) metrics() figures {
	w.t.Helper()
	answer, err := http.Get(strings.TrimSuffix(w.pages, "/_mayfly/") + "/metrics")
	must(w.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(w.t, err)
	f := figures{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, number, _ := strings.Cut(line, " ")
		value, _ := strconv.ParseFloat(number, 64) // comments are no metrics
		switch {
		case strings.HasPrefix(name, latenessBucket):
			f[strings.TrimSuffix(strings.TrimPrefix(name, latenessBucket), `"}`)] = value
		case strings.HasPrefix(name, "TimeToLiveDeletedItemCount"):
			f["removed"] += value
		}
	}
	return f
}

// lateness returns a quantile of the lateness since an earlier reading; nil: of all. Within a bucket
// of the histogram it is interpolated.
func (w *loaded) lateness(before figures, share float64) float64 {
	return w.metrics().quantile(before, share)
}

func (f figures) quantile(before figures, share float64) float64 {
	type bucket struct{ bound, count float64 }
	var all []bucket
	for name, n := range f {
		bound, err := strconv.ParseFloat(name, 64)
		if err == nil {
			all = append(all, bucket{bound, n - before[name]})
		}
	}
	slices.SortFunc(all, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	if len(all) == 0 {
		return math.NaN()
	}
	want, last := share*all[len(all)-1].count, bucket{}
	for _, b := range all {
		if b.count >= want && b.count > last.count {
			return last.bound + (b.bound-last.bound)*(want-last.count)/(b.count-last.count)
		}
		last = b
	}
	return math.NaN()
}

// stretch is what was seen while items expired and a page, or none, was open.
type stretch struct {
	p50, p99  float64 // ms of lateness
	processor float64 // seconds of the process that serves
	busy      float64 // seconds of the processor for the page's tasks
	tasks     []float64
	updates   int
	removed   float64
}

const stretchLasts = 20 * time.Second

// loadPages are the pages that TestLoad compares with none.
var loadPages = []struct{ name, path string }{{"no page", ""}, {"Now", "#"}, {"timeline", "console/table/load/timeline"}, {"stream", "console/table/load/stream"}}

// compare runs stretches without a page and with each, in turn, and compares them.
func (w *loaded) compare(b *chrome.Browser) {
	t := w.t
	tab := b.Open(t, chrome.Desk)
	tab.Before(watch)
	count := *loadRounds * len(loadPages)
	begun := time.Now()
	const writes = 5_000 // a second at least
	from := begun.Add(30*time.Second + time.Duration(count)*stretchLasts*loadRate/writes)
	w.expire(from, time.Duration(count)*stretchLasts)
	t.Logf("%d items that expire written in %v", count*int(stretchLasts.Seconds())*loadRate, time.Since(begun).Round(time.Millisecond))
	if !time.Now().Before(from) {
		t.Fatal("the machine is too slow: the first items have expired before all were written")
	}
	found := map[string][]stretch{}
	for i := range count {
		p := loadPages[(i+i/len(loadPages))%len(loadPages)] // each page has each place in a round
		<-time.After(time.Until(from.Add(time.Duration(i) * stretchLasts)))
		found[p.name] = append(found[p.name], w.stretch(tab, p.path, from.Add(time.Duration(i+1)*stretchLasts)))
		s := found[p.name][len(found[p.name])-1]
		t.Logf("%-8s %.0f removed, p50 %.2f ms, p99 %.2f ms, %.1f s of the processor, %.2f s for the page's tasks, %d updates, tasks over 50 ms: %.0f", p.name, s.removed, s.p50, s.p99, s.processor, s.busy, s.updates, s.tasks)
	}
	usual := found[loadPages[0].name]
	middle := func(all []stretch, of func(stretch) float64) float64 {
		var values []float64
		for _, s := range all {
			values = append(values, of(s))
		}
		slices.Sort(values)
		return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	least := func(all []stretch, of func(stretch) float64) float64 {
		lowest := math.Inf(1)
		for _, s := range all {
			lowest = min(lowest, of(s))
		}
		return lowest
	}
	p99 := func(s stretch) float64 { return s.p99 }
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all, longest := found[name], 0.0
		for _, s := range all {
			longest = max(longest, slices.Max(append(s.tasks, 0)))
		}
		ratio := middle(all, p99) / middle(usual, p99)
		t.Logf("%-8s medians of %d: p50 %.2f ms, p99 %.2f ms (%.2f times that without a page; the least is %.2f ms); of the processor %.2f s for the server and %.2f s for the page; longest task %.0f ms",
			name, len(all), middle(all, func(s stretch) float64 { return s.p50 }), middle(all, p99), ratio, least(all, p99),
			middle(all, func(s stretch) float64 { return s.processor }), middle(all, func(s stretch) float64 { return s.busy }), longest)
		if longest > loadMost {
			t.Errorf("%s: a task lasted %.0f ms", name, longest)
		}
		if ratio > loadLater {
			t.Errorf("%s: the 99th percentile of the lateness is %.2f times that without a page", name, ratio)
		}
	}
}

// stretch opens a page and looks at what happens until an instant.
func (w *loaded) stretch(tab *chrome.Tab, path string, end time.Time) stretch {
	before, processor := w.metrics(), processorTime(w.t)
	switch path {
	case "":
		tab.Go("about:blank")
	case "#":
		tab.Go(w.pages)
	default:
		tab.Go(w.pages + path)
	}
	work := tab.Figures()
	<-time.After(time.Until(end.Add(-time.Second)))
	s := stretch{processor: processorTime(w.t) - processor}
	after := w.metrics()
	s.p50, s.p99, s.removed = 1000*after.quantile(before, 0.5), 1000*after.quantile(before, 0.99), after["removed"]-before["removed"]
	s.tasks = chrome.Eval[[]float64](tab, "tasks")
	s.updates = chrome.Eval[int](tab, "updates.length")
	s.busy = tab.Figures()["TaskDuration"] - work["TaskDuration"]
	return s
}

// processorTime returns the seconds of the processor that this process has used.
func processorTime(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0 // the system has no such file
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	const ticks = 100 // of a second
	return (user + system) / ticks
}
