package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// The first scan writes its rows in transactions, since that takes little time, or one by one, which
// takes half the write units, if --max-rcu makes it slow, the table throttles, or the endpoint refuses
// transactions.
func TestFirstScanWrites(t *testing.T) {
	t.Parallel()
	const items = 600
	refused := func(times int, err error) func() error {
		return func() error {
			if times--; times < 0 {
				return nil
			}
			return err
		}
	}
	always := 1 << 30
	conflict := &types.TransactionCanceledException{CancellationReasons: make([]types.CancellationReason, 100)}
	conflict.CancellationReasons[7].Code = aws.String("TransactionConflict")
	full := &types.TransactionCanceledException{CancellationReasons: make([]types.CancellationReason, 100)}
	full.CancellationReasons[7].Code = aws.String("ThrottlingError")
	for _, c := range []struct {
		name         string
		maxRCU       float64
		refuses      func() error // transactions: the first is of buckets
		transactions [2]int       // at least, at most
		rows         [2]int       // written one by one: at least, at most
	}{
		{"fast", 0, refused(0, nil), [2]int{7, 7}, [2]int{0, 0}},
		{"slow", 10, refused(0, nil), [2]int{0, 0}, [2]int{items, items}},
		{"no transactions", 0, refused(always, &smithy.GenericAPIError{Code: "UnknownOperationException", Fault: smithy.FaultClient}), [2]int{1, 1}, [2]int{items, items}},
		{"invalid transactions", 0, refused(always, &smithy.GenericAPIError{Code: "ValidationException", Fault: smithy.FaultClient}), [2]int{1, 1}, [2]int{items, items}},
		{"throttled", 0, refused(3, &types.ProvisionedThroughputExceededException{}), [2]int{1, 4}, [2]int{500, items}},
		{"throttled in part", 0, refused(3, full), [2]int{1, 4}, [2]int{500, items}},
		{"conflicts", 0, refused(5, conflict), [2]int{11, 11}, [2]int{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.fill("item", items, w.in(1e6))
				tap := w.tapped()
				o := w.options(Stream)
				o.Segments, o.MaxRCU = 1, c.maxRCU
				transactions, rows, at := 0, 0, fmt.Sprintf("%015d/", (w.now().Unix()+1e6)*1000)
				tap.do(func(_ context.Context, _ string, in any) error {
					tap.mu.Lock()
					defer tap.mu.Unlock()
					switch in := in.(type) {
					case *dynamodb.TransactWriteItemsInput:
						transactions++
						return c.refuses()
					case *dynamodb.PutItemInput:
						if isRow(in.Item, at) {
							rows++
						}
					}
					return nil
				})
				w.start(o)
				awaitScanned(t, w.DynamoDB())
				tap.do(nil)
				if n := len(notedIn(t, w.DynamoDB())); n != items {
					t.Errorf("the table has %d deadlines of %d", n, items)
				}
				if lost := bucketsLost(t, w.DynamoDB()); len(lost) > 0 {
					t.Errorf("no owner would look into %q", lost)
				}
				if within := func(n int, limits [2]int) bool { return n >= limits[0] && n <= limits[1] }; !within(transactions, c.transactions) || !within(rows, c.rows) {
					t.Errorf("there were %d transactions and %d single writes; want %v and %v", transactions, rows, c.transactions, c.rows)
				}
			})
		})
	}
}

// bucketsLost returns the partition keys of deadlines that the directory lacks.
func bucketsLost(t *testing.T, db *dynamodb.Client) (lost []string) {
	out, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(stream.TableName), ConsistentRead: aws.Bool(true)})
	must(t, err)
	listed := map[string]bool{}
	for _, item := range out.Items {
		listed[attr.String(item["part"])+"/"+attr.String(item["at"])] = true
	}
	for _, item := range out.Items {
		if part := attr.String(item["part"]); item["by"] != nil && !listed[part] && !slices.Contains(lost, part) {
			lost = append(lost, part)
		}
	}
	return lost
}

// isRow reports whether an item of the deadline table is a row of an instant.
func isRow(item map[string]types.AttributeValue, at string) bool {
	text, ok := item["at"].(*types.AttributeValueMemberS)
	return ok && len(text.Value) > len(at) && text.Value[:len(at)] == at
}

// segmentScans counts the pages and items that a worker reads in its first scan.
type segmentScans struct {
	mu           sync.Mutex
	pages, items int // guarded by mu, as are all
	most         int // items of a page
	totals       map[int32]bool
	middle       int    // after so many items
	reached      func() // is called; nil: nothing
}

// counting puts the counts between a worker and the world's table.
func (w *world) counting(o Options) (Options, *segmentScans) {
	db, n := w.db, &segmentScans{totals: map[int32]bool{}}
	w.tapped().after = func(_ string, in, out any) {
		scan, ok := in.(*dynamodb.ScanInput)
		if !ok || aws.ToString(scan.TableName) != worldTable || aws.ToString(scan.FilterExpression) == "" {
			return
		}
		read := int(out.(*dynamodb.ScanOutput).ScannedCount)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.pages, n.items, n.most = n.pages+1, n.items+read, max(n.most, read)
		n.totals[aws.ToInt32(scan.TotalSegments)] = true
		if n.reached != nil && n.items > n.middle {
			n.reached()
		}
	}
	o.DB, w.db = w.db, db
	return o, n
}

func (n *segmentScans) counts() (pages, items int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pages, n.items
}

// After a worker has died in the middle of the first scan, the next one continues at the checkpoints,
// even if it would divide the table in another way. It reads at most a page again.
func TestFirstScanContinues(t *testing.T) {
	t.Parallel()
	const items = 2000
	everyStore(t, func(t *testing.T, w *world, o Options) {
		w.fill("item", items, w.in(1e6))
		own := o.Deadlines
		o.MaxRCU, o.AuditRCU, o.Segments = 20, -1, 2
		var p cable
		first, before := w.counting(o)
		first.DB, first.Streams = p.db(first.DB), p.streams(w.streams)
		if own != nil {
			first.Deadlines = p.db(own)
		}
		before.middle, before.reached = items/2, func() { p.setCut(true) } // its last writes do not arrive
		r := w.start(first)
		r.await("it is in the middle", p.isCut)
		_ = r.stop()
		o.Owner, o.Segments = "another", 7
		second, after := w.counting(o)
		second.Deadlines = own
		var reported progresses
		second.Progress = reported.add
		r = w.start(second)
		if last := reported.last(r, FirstScan); last.Done < items*95/100 || last.Done > items*105/100 {
			t.Errorf("at its end the scan has read %d items of %d", last.Done, items)
		}
		if got := len(notedIn(t, second.withDefaults().Deadlines)); got != items {
			t.Errorf("the table has %d deadlines of %d", got, items)
		}
		_, n := before.counts()
		_, m := after.counts()
		if again := n + m - items; again < 0 || again > 2*before.most { // one of each segment
			t.Errorf("after %d items the next worker has read %d, so %d of %d twice, in pages of at most %d", n, m, again, items, before.most)
		}
		if len(after.totals) != 1 || !after.totals[2] {
			t.Errorf("it divides the table into %v", after.totals)
		}
	})
}

// Workers share the segments of the first scan. All together they read at the rate of MaxRCU, and
// each knows how far the scan is.
func TestFirstScanByTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const items, budget = 2000, 200.0
		pad := map[string]types.AttributeValue{"pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 4000)}} // a unit
		for i := range items {
			w.put(fmt.Sprint("item", i), w.in(1e6), pad)
		}
		var (
			mu    sync.Mutex
			units float64
		)
		began := time.Now()
		var workers []*guarding
		var counts []*segmentScans
		progress := make([]progresses, 2)
		for i := range progress {
			o, n := w.counting(w.member(fmt.Sprint("worker", i)))
			o.MaxRCU, o.AuditRCU, o.Progress = budget, -1, progress[i].add
			o.Observe = func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				units += e.Read
			}
			counts = append(counts, n)
			workers = append(workers, w.start(o))
		}
		for i, r := range workers {
			last := progress[i].last(r, FirstScan)
			_, n := counts[i].counts()
			if n < items/3 || n > items*2/3 {
				t.Errorf("worker %d has read %d items of %d", i, n, items)
			}
			if last.Done < items*8/10 || last.Done > items*12/10 {
				t.Errorf("worker %d has reported %d items at the end, of %d", i, last.Done, items)
			}
			if len(counts[i].totals) != 1 || !counts[i].totals[stream.Segments] {
				t.Errorf("worker %d divides the table into %v", i, counts[i].totals)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		took := time.Since(began).Seconds()
		// each segment has a last page, of a unit or more
		if units < items || units > budget*(took+1)+2*stream.Segments || units < 0.8*budget*took {
			t.Errorf("%v units were consumed in %v s", units, took)
		}
	})
}
