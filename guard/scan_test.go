package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

func (w *world) scanOptions() Options {
	o := w.options(Scan)
	o.MaxRCU = 1e6
	return o
}

// Items that a pass has found go at their instant, and expired ones at once. Items that were
// renewed, or whose TTL is missing or not seconds, stay.
func TestScan(t *testing.T) {
	t.Parallel()
	for _, segments := range []int{1, 4, 100} {
		t.Run(fmt.Sprint(segments, " segments"), func(t *testing.T) {
			w := newWorld(t, withSort)
			for i := range int64(100) {
				w.put(fmt.Sprintf("a/%d", i), w.in(i-20))
			}
			w.put("fraction/1", w.in(79)+".5")
			w.put("renewed/1", w.in(30))
			w.put("without/1", "")
			w.put("milliseconds/1", "1893456000000")
			o := w.scanOptions()
			o.Segments = segments
			r := w.start(o)
			r.awaitCount(Removed, 21)
			r.awaitCount(Armed, 102)
			r.awaitCount(BadValue, 1)
			w.renew("renewed/1", w.in(100))
			for i := range int64(79) {
				w.advance(999 * time.Millisecond)
				if left := w.count(); left != int(100-21-i+4) {
					t.Fatalf("%d items are left right before second %d", left, i+1)
				}
				w.advance(time.Millisecond)
				r.awaitCount(Removed, 21+i+1)
			}
			w.advance(499 * time.Millisecond)
			if !w.has("fraction/1") {
				t.Error("removed early")
			}
			w.advance(time.Millisecond)
			r.awaitCount(Removed, 101)
			if !w.has("renewed/1") || w.count() != 3 {
				t.Error("the wrong items are left")
			}
			r.await("the renewed item goes, too", func() bool {
				w.advance(time.Second)
				return !w.has("renewed/1")
			})
			if w.now().Unix() < epoch.Unix()+100 || w.count() != 2 {
				t.Error("removed early")
			}
		})
	}
}

// The next pass, a period later, finds items that are written while a table is guarded.
func TestScanAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.scanOptions()
	r := w.start(o)
	for i := range int64(20) {
		w.put(fmt.Sprint(i), w.in(7))
		r.await("it is known", func() bool {
			w.advance(time.Second)
			return r.Stats().Counts[Armed] > 0 && r.Stats().Counts[Removed] > i
		})
	}
	if w.count() != 0 {
		t.Error("items are left")
	}
}

// A table of many pages is read whole, and within the budget.
func TestScanBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pad := map[string]types.AttributeValue{"pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 8000)}}
		const n, budget = 400, 400.0 // an item of 8,000 bytes is one unit
		for i := range n {
			w.put(fmt.Sprint(i), w.in(-1), pad)
		}
		var (
			mu    sync.Mutex
			units float64
		)
		o := w.scanOptions()
		o.MaxRCU = budget
		o.Observe = func(e Event) {
			if e.What == Consumed {
				mu.Lock()
				defer mu.Unlock()
				units += e.Read
			}
		}
		began := time.Now()
		r := w.start(o)
		r.awaitCount(Removed, n)
		mu.Lock()
		defer mu.Unlock()
		took := time.Since(began)
		// A quarter of a second's units may be spent at once, and four segments have a page each
		// under way.
		if units < 0.95*n || units > budget*(took.Seconds()+0.25)+4*150 || took < 400*time.Millisecond {
			t.Errorf("%v units were consumed in %v", units, took)
		}
	})
}

// A worker that ends half-way saves its position, and the next worker resumes there, then begins at
// the start.
func TestScanResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 1000 {
		w.put(fmt.Sprint(i), w.in(100_000))
	}
	w.put("expired", w.in(-1))
	tap := w.tapped()
	o := w.scanOptions()
	o.DB, o.Segments, o.MaxRCU = w.db, 1, 200 // 100 items a page, at first
	reached := make(chan struct{})
	var once sync.Once
	tap.do(func(ctx context.Context, operation string, _ any) error {
		if operation == "Scan" && len(tap.of("Scan")) == 2 {
			once.Do(func() { close(reached) })
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	r := w.start(o)
	<-reached
	must(t, r.stop())
	tap.do(nil)
	before := len(tap.of("Scan"))
	r = w.start(o)
	r.await("it has come to the end, and to the beginning", func() bool {
		n := 0
		for _, in := range tap.of("Scan")[before:] {
			if in.(*dynamodb.ScanInput).ExclusiveStartKey == nil {
				n++
			}
		}
		return n > 0
	})
	r.await("the expired item is gone", func() bool { return !w.has("expired") })
	if in := tap.of("Scan")[before].(*dynamodb.ScanInput); in.ExclusiveStartKey == nil {
		t.Error("it has begun at the beginning")
	}
}

// An invalid checkpoint, or one of an earlier table, does no harm.
func TestScanDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	for _, checkpoint := range []string{
		"x", "{}", `{"segment":3}`, `{"segment":-1}`, `{"segment":0,"key":"x"}`, `{"segment":0,"key":"{}"}`, `{"segment":0,"key":"{\"pk\":[\"S\",\"!\"]}"}`,
		`{"segment":0,"key":` + quoted(strategy.KeyText(map[string]types.AttributeValue{"other": &types.AttributeValueMemberN{Value: "7"}})) + `}`, `{"segment":0,"tookMs":-5}`,
	} {
		w := newWorld(t)
		w.put("a", w.in(-1))
		d, err := w.DynamoDB().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(worldTable)})
		must(t, err)
		_, err = lease.New(w.DynamoDB(), "guard/"+*d.Table.TableArn+"/scan", lease.Options{}).Note(t.Context(), "scan/0", checkpoint)
		must(t, err)
		o := w.scanOptions()
		o.Segments = 1
		w.start(o).awaitCount(Removed, 1)
	}
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

// Workers share the segments, and one continues the segments of another that has ended.
func TestScanByTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := w.scanOptions()
		o.Alone, o.Lease = false, 2*time.Second
		first := w.start(o)
		first.await("it is there", func() bool { return first.Stats().Counts[Consumed] > 0 })
		second := w.start(o)
		owners := func() map[string]int {
			rows, err := first.env().Shares("scan").Rows(context.Background())
			must(t, err)
			n := map[string]int{}
			for name, row := range rows {
				if strings.HasPrefix(name, "scan/") && row.Owner != "" {
					n[row.Owner]++
				}
			}
			return n
		}
		first.await("each has two segments", func() bool { return slices.Equal(slices.Collect(maps.Values(owners())), []int{2, 2}) })
		must(t, first.stop())
		second.await("the second has all", func() bool { return slices.Equal(slices.Collect(maps.Values(owners())), []int{4}) })
		for i := range 50 {
			w.put(fmt.Sprint(i), w.in(-1))
		}
		second.await("all is gone", func() bool {
			w.advance(o.withDefaults().Period)
			return w.count() == 0
		})
	})
}

// Refusals slow a scan down and do not end it.
func TestScanThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := w.tapped()
	w.put("a", w.in(-1))
	tap.do(func(_ context.Context, operation string, _ any) error {
		if operation == "Scan" && len(tap.of("Scan")) <= 8 {
			return refusal("ThrottlingException")
		}
		return nil
	})
	r := w.start(w.scanOptions())
	r.awaitCount(Removed, 1)
	if n := r.Stats().Counts[Throttled]; n < 8 {
		t.Errorf("throttled %d times", n)
	}
}

// A dry run reports an item once, however often it is read, and again when it has another deadline.
func TestScanSparesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tap := w.tapped()
	passes := make(chan struct{}, 1000)
	tap.do(func(_ context.Context, operation string, _ any) error {
		if operation == "Scan" {
			passes <- struct{}{}
		}
		return nil
	})
	w.put("a", w.in(-5))
	o := w.scanOptions()
	o.Segments, o.DryRun, o.Period = 1, true, time.Second
	r := w.start(o)
	pass := func(n int) {
		for range n {
			w.advance(2 * time.Minute)
			<-passes
		}
	}
	r.awaitCount(Spared, 1)
	pass(5)
	w.put("a", w.in(-3))
	pass(5)
	r.awaitCount(Spared, 2)
	if n := r.Stats().Counts[Spared]; n != 2 {
		t.Errorf("it is reported %d times", n)
	}
}
