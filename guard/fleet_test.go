package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard/internal/stream"
	"github.com/mayflydb/mayfly/internal/work/lease"
)

// worker is one of a fleet.
type worker struct {
	*guarding
	*cable
}

func (w *world) join(name string) worker {
	p := &cable{}
	o := w.member(name)
	o.DB, o.Streams = p.db(w.db), p.streams(w.streams)
	return worker{w.start(o), p}
}

// shares returns the number of partitions of each worker.
func (w *world) shares() string {
	w.t.Helper()
	n := map[string]int{}
	for _, division := range []string{"", "/2", "/3"} {
		rows, err := lease.New(w.DynamoDB(), w.fleetName("partitions"+division), lease.Options{}).Rows(w.t.Context())
		must(w.t, err)
		for shard, r := range rows {
			if !strings.HasPrefix(shard, "worker/") && r.Owner != "" {
				n[r.Owner]++
			}
		}
	}
	var parts []string
	for _, owner := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s:%d", owner, n[owner]))
	}
	return strings.Join(parts, " ")
}

func (w *world) fleetName(of string) string {
	out, err := w.DynamoDB().DescribeTable(w.t.Context(), &dynamodb.DescribeTableInput{TableName: new(worldTable)})
	must(w.t, err)
	return "guard/" + *out.Table.TableArn + "/" + of
}

func (w *world) awaitShares(shares string) {
	w.t.Helper()
	await(w.t, "the shares are "+shares, func() bool { return w.shares() == shares })
}

// One of three workers dies. The others take over its deadlines, including the armed ones, within
// little more than the time of a lease, and read its unfinished records again.
func TestFleetTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill("before", 100, w.in(60))
		a := w.join("a")
		w.awaitShares("a:16")
		b, c := w.join("b"), w.join("c")
		w.awaitShares("a:6 b:5 c:5")
		w.fill("far", 300, w.in(60))
		awaitScanned(t, w.DynamoDB())
		await(t, "all is known", func() bool { return len(notedIn(t, w.DynamoDB())) == 400 })
		w.advance(58 * time.Second)
		await(t, "all is armed", func() bool { return a.Stats().Armed > 0 && a.Stats().Armed+b.Stats().Armed+c.Stats().Armed >= 400 })
		a.setCut(true)
		died := time.Now()
		w.fill("after", 100, w.in(2)) // worker a may have read some of these records
		w.advance(2 * time.Second)
		await(t, "all is gone", func() bool { return w.count() == 0 })
		if took := time.Since(died); took > 4*time.Second { // of virtual time
			t.Errorf("the deadlines of a dead worker were taken over after %s, with leases of one second", took)
		}
		w.awaitShares("b:8 c:8")
		a.setCut(false) // it was only cut off
		w.awaitShares("a:6 b:5 c:5")
		w.fill("again", 100, w.in(5))
		w.advance(5 * time.Second)
		await(t, "all is gone", func() bool { return w.count() == 0 })
		awaitNothingNoted(t, w.DynamoDB())
		must(t, a.stop())
		w.awaitShares("b:8 c:8")
	})
}

// A worker pauses for longer than its leases last, at any of its writes to the deadline table, and
// then continues with that write. It breaks no law: renewed items stay, and due items go.
func TestFleetSplitLeases(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"PutItem", "DeleteItem", "TransactWriteItems", "Query", "GetRecords"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				paused, goOn := make(chan struct{}), make(chan struct{})
				var once sync.Once
				var armed sync.Map
				p := &cable{}
				p.before = func(operation, table string) error {
					if _, on := armed.Load("on"); on && operation == at && (table == stream.TableName || table == "") {
						once.Do(func() { p.setHeld(true); close(paused) })
					}
					if p.isHeld() {
						<-goOn
					}
					return nil
				}
				o := w.member("a")
				o.DB, o.Streams = p.db(w.db), p.streams(w.streams)
				if at == "TransactWriteItems" {
					o.Batch = BatchFree
				}
				a := w.start(o)
				w.awaitShares("a:16")
				awaitScanned(t, w.DynamoDB())
				for i := range 8 {
					w.put(fmt.Sprint("x", i), w.in(40))
					w.put(fmt.Sprint("y", i), w.in(40))
					w.put(fmt.Sprint("z", i), w.in(400))
				}
				await(t, "all is known", func() bool { return len(notedIn(t, w.DynamoDB())) == 24 })
				armed.Store("on", true)
				for i := range 8 { // the paused worker knows of this, or has begun to write it
					w.renew(fmt.Sprint("x", i), w.in(80))
					w.renew(fmt.Sprint("z", i), w.in(20))
				}
				<-paused
				w.join("b")
				w.awaitShares("b:16")
				for i := range 8 {
					w.renew(fmt.Sprint("x", i), w.in(40)) // and back to the first deadlines
					w.renew(fmt.Sprint("z", i), w.in(400))
					w.renew(fmt.Sprint("y", i), w.in(80))
				}
				w.settle()
				close(goOn)
				p.setHeld(false)
				w.awaitShares("a:8 b:8")
				w.advance(30 * time.Second)
				w.settle()
				if n := w.count(); n != 24 {
					t.Fatalf("%d of 24 items are left before any is due", n)
				}
				w.advance(10 * time.Second)
				await(t, "the first due items are gone", func() bool { return w.count() == 16 })
				w.settle()
				if got := w.names(); strings.Contains(got, "x") || w.count() != 16 {
					t.Errorf("there are %s", got)
				}
				w.advance(40 * time.Second)
				await(t, "the next due items are gone", func() bool { return w.count() == 8 })
				w.advance(320 * time.Second)
				await(t, "all is gone", func() bool { return w.count() == 0 })
				awaitNothingNoted(t, w.DynamoDB())
				must(t, a.stop())
			})
		})
	}
}

// In a fleet at peace, each deadline is tried by one worker, also one that is due before the owner of
// its partition polls again: its reader has armed it.
func TestFleetTriesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.join("a")
		w.awaitShares("a:16")
		b := w.join("b")
		w.awaitShares("a:8 b:8")
		awaitScanned(t, w.DynamoDB())
		const rounds, items = 4, 40
		for i := range rounds {
			w.fill(fmt.Sprint("now", i), items, w.in(0))
			await(t, "all is gone", func() bool { return w.count() == 0 })
			w.fill(fmt.Sprint("near", i), items, w.in(2))
			for range 20 { // steadily, as owners wait for the duration of a lease
				w.advance(100 * time.Millisecond)
				time.Sleep(100 * time.Millisecond)
			}
			await(t, "all is gone", func() bool { return w.count() == 0 })
		}
		if x, y := a.Stats(), b.Stats(); x.Counts[Removed]+y.Counts[Removed] != 2*rounds*items || x.Counts[Refused]+y.Counts[Refused] != 0 {
			t.Errorf("%d and %d were removed, of %d; %d and %d attempts were refused", x.Counts[Removed], y.Counts[Removed], 2*rounds*items, x.Counts[Refused], y.Counts[Refused])
		}
	})
}
