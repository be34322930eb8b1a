package stream

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/guard/internal/armed"
	"github.com/mayflydb/mayfly/guard/internal/strategy"
	"github.com/mayflydb/mayfly/guard/internal/table"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// aloneStrategy returns a strategy of a worker that is alone, with one partition. It may have so many
// deadlines in memory.
func aloneStrategy(t *testing.T, g *still, most int) (*Strategy, *owner) {
	t.Helper()
	s := dividedStrategy(t, g, most, &division{number: 2, partitions: 1, spread: spreadDefault, since: g.now})
	s.alone, s.horizon = true, horizonAlone
	o := &owner{partition: s.store.newest().parts[0], from: g.now}
	o.begin(o.from)
	return s, o
}

// writeAll writes rows of these deadlines into the table, without arming any.
func (s *Strategy) writeAll(t *testing.T, inbox bool, deadlines ...int64) (rows []*row) {
	t.Helper()
	for i, at := range deadlines {
		k, err := s.Table.KeyOf(map[string]types.AttributeValue{"pk": attr.S(fmt.Sprintf("%d of %d", i, len(deadlines)))})
		must(t, err)
		rows = append(rows, &row{key: k, at: at, inbox: inbox, p: s.store.newest().parts[0]})
	}
	must(t, s.noteBuckets(t.Context(), rows))
	must(t, s.put(t.Context(), rows, nil))
	return rows
}

// end ends the due deadlines, and leaves their rows in the table.
func (g *still) end(how armed.Outcome) (ended []armed.Removal) {
	ended, _ = g.set.Take(g.now, 1_000_000)
	for _, r := range ended {
		g.set.End(r, how)
	}
	return ended
}

// A worker that is alone has part of its deadlines in memory, and arms the others as the first ones
// end. Each is armed once, in order, also if all have one instant and their rows remain in the
// table. A deadline of that instant that is written meanwhile is armed by its writer.
func TestPollsInParts(t *testing.T) {
	const start, count, most = 1893456000_000, 500, 60
	for _, step := range []int64{0, 1, 7} { // ms between two deadlines
		g := &still{now: start}
		s, o := aloneStrategy(t, g, most)
		var deadlines []int64
		for i := range int64(count) {
			deadlines = append(deadlines, start+20_000+i*step)
		}
		s.writeAll(t, false, deadlines...)
		must(t, o.poll(t.Context()))
		g.now = start + 30_000 // all are due
		g.end(armed.Removed)
		late := s.writeAll(t, false, start+20_000)
		if !o.arms(late[0].at, 0) {
			t.Fatalf("every %d ms: the writer of the earliest deadline does not arm it", step)
		}
		o.arm(late[0])
		for range count {
			if n := g.set.Len(); n == 0 || n > most*2/3+1 {
				t.Fatalf("every %d ms: %d are armed", step, n)
			}
			g.end(armed.Removed)
			select {
			case <-o.wake:
			default:
				t.Fatalf("every %d ms: the owner does not poll when its deadlines have ended", step)
			}
			if must(t, o.poll(t.Context())); !o.starved {
				break
			}
		}
		g.end(armed.Removed)
		times := map[armed.Key]int{}
		for _, e := range g.entries {
			times[e.Key]++
		}
		if len(times) != count+1 || len(g.entries) != count+1 {
			t.Errorf("every %d ms: %d deadlines were armed %d times; want each of %d once", step, len(times), len(g.entries), count+1)
		}
		if in := func(a, b armed.Entry) int { return int(a.At - b.At) }; !slices.IsSortedFunc(slices.DeleteFunc(g.entries, func(e armed.Entry) bool { return e.Key == late[0].key }), in) {
			t.Errorf("every %d ms: they were not armed in order", step)
		}
		if n := o.held.Load(); n != 0 {
			t.Errorf("every %d ms: %d rows are still in memory", step, n)
		}
	}
}

// If there is no room for a deadline that its writer would have to arm, the next poll begins there,
// although the last one has stopped within that instant.
func TestWriterWithoutRoom(t *testing.T) {
	const start = 1893456000_000
	g := &still{now: start}
	s, o := aloneStrategy(t, g, 6) // four ahead
	s.writeAll(t, false, start+20_000, start+20_000, start+20_001, start+20_001, start+20_001)
	must(t, o.poll(t.Context()))
	written := s.writeAll(t, false, start+20_000)
	if o.arms(written[0].at, 0) {
		t.Fatal("there is room for a fifth deadline")
	}
	for range 2 {
		g.now += 20_000
		g.end(armed.Removed)
		must(t, o.poll(t.Context()))
	}
	var at []int64
	for _, e := range g.entries {
		at = append(at, e.At-start-20_000)
	}
	if want := []int64{0, 0, 1, 1, 0, 1}; !slices.Equal(at, want) {
		t.Errorf("armed were %v, want %v", at, want)
	}
}

// The polls after that find later deadlines which were armed before. They arm none that has ended,
// although its row is still in the table.
func TestPollsAfterWriterWithoutRoom(t *testing.T) {
	const start = 1893456000_000
	g := &still{now: start}
	s, o := aloneStrategy(t, g, 6) // four ahead
	s.writeAll(t, false, start+20_000, start+20_003, start+30_000)
	must(t, o.poll(t.Context()))
	for _, r := range s.writeAll(t, false, start+20_000, start+20_002, start+20_004, start+20_005, start+20_006) {
		if o.arms(r.at, 0) {
			o.arm(r)
		}
	}
	for _, g.now = range []int64{start + 20_010, start + 30_000} {
		g.end(armed.Removed)
		must(t, o.poll(t.Context()))
	}
	var at []int64
	for _, e := range g.entries {
		at = append(at, e.At-start-20_000)
	}
	if want := []int64{0, 3, 10_000, 0, 2, 4, 5, 6}; !slices.Equal(at, want) {
		t.Errorf("armed were %v, want %v", at, want)
	}
}

// In a fleet, a poll that had no room for all is followed by one that finds what other workers have
// written meanwhile.
func TestFleetPollsAgain(t *testing.T) {
	const start = 1893456000_000
	g := &still{now: start}
	s, o := aloneStrategy(t, g, 2)
	s.alone = false
	s.writeAll(t, false, start+20_000, start+20_001, start+20_002)
	must(t, o.poll(t.Context()))
	s.writeAll(t, false, start+20_001)
	g.set.Most = 4
	if must(t, o.poll(t.Context())); g.set.Len() != 4 {
		t.Errorf("%d of 4 deadlines are armed", g.set.Len())
	}
}

// If the inbox alone fills the memory, later polls arm the deadlines of the buckets.
func TestInboxWithoutRoom(t *testing.T) {
	const start = 1893456000_000
	g := &still{now: start + 1}
	s, o := aloneStrategy(t, g, 6) // four ahead
	s.writeAll(t, true, slices.Repeat([]int64{start}, 5)...)
	s.writeAll(t, false, start+20_000, start+20_000)
	for range 3 {
		must(t, o.poll(t.Context()))
		g.end(armed.Removed)
	}
	if len(g.entries) != 7 {
		t.Errorf("%d of 7 deadlines were armed", len(g.entries))
	}
}

// heldBytes arms deadlines in memory, and returns the bytes of each.
func heldBytes(t testing.TB, count int) float64 {
	g := &still{set: armed.New()}
	s := New(&strategy.Env{Guard: g, Armed: g.set, Table: &table.Table{}}, nil)
	s.divide([]*division{{number: 2, partitions: partitionsDefault, spread: spreadDefault}})
	before := heap()
	for _, r := range pageOf(0, count, false) {
		s.store.newest().parts[s.store.newest().partitionOf(r.key)].arm(r)
		g.entries = nil
	}
	used := heap() - before
	if n := g.set.Len(); n != count {
		t.Fatalf("%d of %d are armed", n, count)
	}
	runtime.KeepAlive(s)
	return float64(used) / float64(count)
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The most deadlines that a worker which is alone has in memory fit into 50 MB.
func TestHeldBytes(t *testing.T) {
	if each := heldBytes(t, 100_000); each*armedAlone > 50e6 {
		t.Errorf("a deadline in memory takes %.0f bytes, and %d of them %.0f MB", each, armedAlone, each*armedAlone/1e6)
	}
}

// The memory of deadlines, with keys of 17 bytes.
func BenchmarkHeld(b *testing.B) {
	var each float64
	for b.Loop() {
		each = heldBytes(b, 100_000)
	}
	b.ReportMetric(each, "B/deadline")
}

// A worker that is alone leaves room for the deadlines that are due at once, however many divisions
// its table has.
func TestDivisionsShareRoom(t *testing.T) {
	const start, most = 1893456000_000, 12
	g := &still{now: start}
	s := dividedStrategy(t, g, most, &division{number: 2, partitions: 1, spread: 1, since: start}, &division{number: 3, partitions: 1, spread: 1, since: start})
	s.alone, s.horizon = true, horizonAlone
	for _, d := range s.store.live() {
		o := &owner{partition: d.parts[0], from: start}
		o.begin(start)
		for i := range int64(most) {
			r := rowOf(armed.Entry{Key: armed.Key(fmt.Sprintf("S\x01%c", '!'+i+30*int64(d.number-2))), At: start + 50_000 + i}, byOf(1, "1"), start)
			r.p = o.partition
			must(t, s.noteBuckets(t.Context(), []*row{r}))
			must(t, s.put(t.Context(), []*row{r}, nil))
		}
		must(t, o.poll(t.Context()))
	}
	if n := g.set.Len(); n < 2 || n > most*2/3 {
		t.Errorf("%d of %d are armed", n, most)
	}
}

// While the stream cannot be followed, a scan arms items that this strategy has armed: then they take
// up no room here any more, and a later deadline of such an item is armed.
func TestArmedByAnotherStrategy(t *testing.T) {
	const start, most = 1893456000_000, 6
	g := &still{now: start}
	s, o := aloneStrategy(t, g, most)
	s.writeAll(t, false, start+20_000, start+20_000, start+20_000, start+20_000)
	must(t, o.poll(t.Context()))
	if n := o.held.Load(); n != 4 {
		t.Fatalf("%d are held", n)
	}
	for _, e := range g.entries[:4] {
		g.Arm(armed.Entry{Key: e.Key, At: e.At})
	}
	for limit := time.Now().Add(10 * time.Second); o.held.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d are held", o.held.Load())
		}
	}
	g.now = start + 30_000
	g.end(armed.Removed)
	k := g.entries[0].Key
	must(t, s.write(t.Context(), []*row{rowOf(armed.Entry{Key: k, At: g.now + 5000}, byOf(1, "9"), g.now)}, nil))
	if at, _ := g.set.Deadline(k); at != g.now+5000 {
		t.Errorf("the next deadline of an item is not armed, but %d", at)
	}
}

// A page that was read before a record was handled has an outdated row of the same item and instant.
// It does not replace the newer row in memory.
func TestOutdatedPage(t *testing.T) {
	const start = 1893456000_000
	g := &still{now: start}
	s, o := aloneStrategy(t, g, 60)
	version := func(v, n string) *row {
		return rowOf(armed.Entry{Key: "S\x01x", At: start + 20_000, Version: v}, byOf(1, n), start)
	}
	must(t, s.write(t.Context(), []*row{version(`{"N":"1"}`, "3")}, nil))
	o.raise(start)
	must(t, s.write(t.Context(), []*row{version(`{"N":"2"}`, "5")}, nil))
	o.armFound(version(`{"N":"1"}`, "3"), false) // on the page that the poll has read
	o.polled(start)
	g.now = start + 20_000
	if ended := g.end(armed.Removed); len(ended) != 1 || ended[0].Version != `{"N":"2"}` {
		t.Errorf("tried: %v", ended)
	}
}
