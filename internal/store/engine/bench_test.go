package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/kv"
)

// Compare the figures with Loop of the same run, which commits the same keys and bytes with the
// same sync.
//
//	go test -run '^$' -bench 'Loop|Put|Reap|Burst' -count 6 ./internal/store/engine

// benchWriters is the number of writers of a durable benchmark: group commit carries them all with
// one sync.
const benchWriters = 64

// benchItem has 8 attributes and about 400 bytes.
func benchItem(i int, ttl int) dynamo.Item { return benchItemOf(fmt.Sprintf("device-%08d", i), i, ttl) }

func benchItemOf(pk string, i int, ttl int) dynamo.Item {
	return item("pk", pk, "sk", i, "ttl", ttl, "a", strings.Repeat("x", 120), "b", strings.Repeat("y", 120), "c", strings.Repeat("z", 60), "d", 12345, "e", "ok")
}

func benchTable(b *testing.B, o Options, change ...func(*TableDesc)) (*db, *Table) {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	d := open(b, o)
	b.Cleanup(d.close)
	change = append([]func(*TableDesc){func(t *TableDesc) { t.Indexes = nil }}, change...)
	return d, d.table("bench", change...)
}

func benchPut(b *testing.B, d *db, tab *Table) {
	ttl := int(d.Now()/1000) + 86400
	var n atomic.Int64
	b.SetParallelism(benchWriters / 2)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			it := benchItem(int(n.Add(1)), ttl)
			k, err := tab.Desc().KeyOf(it)
			if err != nil {
				b.Error(err)
				return
			}
			w := &Write{Table: tab, Key: k, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }}
			if err := d.Write(context.Background(), w); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkLoop is the reference: three keys of the sizes of an item, its deadline and its record,
// one synced batch, 64 writers.
func BenchmarkLoop(b *testing.B) {
	store, err := kv.Open(kv.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	value := make([]byte, 420)
	var n atomic.Int64
	b.SetParallelism(benchWriters / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var key [40]byte
		for pb.Next() {
			i := uint64(n.Add(1))
			batch := store.NewBatch()
			for space := range byte(3) {
				key[0] = space
				binary.BigEndian.PutUint64(key[1:], i*0x9E3779B97F4A7C15)
				v := value
				if space == 1 {
					v = value[:8]
				}
				batch.Set(key[:], v)
			}
			if err := store.Apply(batch); err != nil {
				b.Error(err)
			}
			if err := store.Wait(batch); err != nil {
				b.Error(err)
			}
			batch.Close()
		}
	})
}

// BenchmarkPut is a durable put of a new item into a table with TTL and a stream with both images,
// 64 writers.
func BenchmarkPut(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir()})
	benchPut(b, d, tab)
}

// BenchmarkPutNoTTL is the same without a TTL attribute; the difference is the cost of TTL.
func BenchmarkPutNoTTL(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir()}, func(t *TableDesc) { t.TTL.Attribute = "" })
	benchPut(b, d, tab)
}

// BenchmarkPutPlain is the same into a table with neither: nothing is read before the write.
func BenchmarkPutPlain(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir()}, func(t *TableDesc) { t.TTL.Attribute, t.Stream.ViewType = "", "" })
	benchPut(b, d, tab)
}

// BenchmarkPutIndexed has one global index more.
func BenchmarkPutIndexed(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir()}, func(t *TableDesc) {
		t.Indexes = []IndexDesc{{Name: "byE", Global: true, Projection: Projection{Type: "ALL"}, Key: KeySchema{Partition: []KeyAttr{{"e", dynamo.KindString}}}}}
	})
	benchPut(b, d, tab)
}

// BenchmarkGet is one reader of a durable database.
func BenchmarkGet(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir()})
	const items = 10_000
	ttl := int(d.Now()/1000) + 86400
	keys := make([]Key, items)
	for i := range items {
		it := benchItem(i, ttl)
		d.put(tab, it)
		keys[i] = keyOf(b, tab, it)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		err := d.Read(context.Background(), func(v *View) error {
			_, _, err := v.Get(tab, keys[i%items])
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQuery reads pages of 20 items of one partition key.
func BenchmarkQuery(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir()})
	const partitions, page = 500, 20
	ttl := int(d.Now()/1000) + 86400
	for p := range partitions {
		var ws []*Write
		for i := range page {
			it := benchItemOf(fmt.Sprintf("device-%08d", p), i, ttl)
			ws = append(ws, &Write{Table: tab, Key: keyOf(b, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
		}
		if err := d.Write(context.Background(), ws...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	p := 0
	for b.Loop() {
		p++
		partition := []dynamo.Value{dynamo.AppendString(nil, fmt.Sprintf("device-%08d", p%partitions))}
		items := 0
		err := d.Read(context.Background(), func(v *View) error {
			items = 0
			return v.Range(tab, Range{Partition: partition}, func(dynamo.Item) (bool, error) {
				items++
				return true, nil
			})
		})
		if err != nil || items != page {
			b.Fatalf("%d items, %v", items, err)
		}
	}
}

// fillDue puts b.N items whose deadlines are one instant into a table.
func fillDue(b *testing.B, d *db, tab *Table) {
	b.Helper()
	for at := 0; at < b.N; at += 1000 {
		var ws []*Write
		for i := at; i < min(at+1000, b.N); i++ {
			it := benchItem(i, unix(1e9))
			ws = append(ws, &Write{Table: tab, Key: keyOf(b, tab, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
		}
		if err := d.Write(context.Background(), ws...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReap drains items that are all due at once; one operation is one item. With the old
// image the reaper reads the item; without it the deadline entry is enough.
func BenchmarkReap(b *testing.B) {
	for _, view := range []string{"NEW_AND_OLD_IMAGES", ""} {
		b.Run("view="+view, func(b *testing.B) {
			d, tab := benchTable(b, Options{Dir: b.TempDir(), Clock: frozenClock()}, func(t *TableDesc) { t.Stream.ViewType = view })
			fillDue(b, d, tab)
			b.ResetTimer()
			d.advance(1e9)
		})
	}
}

// BenchmarkPrepared prepares the removals of items with both images before their deadline, and then
// removes them. One operation is one item; the metrics divide its time.
func BenchmarkPrepared(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir(), Clock: frozenClock()}, func(t *TableDesc) { t.Stream.ViewType = "NEW_AND_OLD_IMAGES" })
	fillDue(b, d, tab)
	d.room.Store(1 << 40)
	b.ResetTimer()
	preparing := clock.Stopwatch()
	s := &slice{t: tab, d: tab.Desc(), ahead: true}
	for s.left.removal != Never {
		s = &slice{t: tab, d: s.d, ahead: true, seen: d.commitsSeen()}
		if err := s.prepare(d.Now()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(preparing().Nanoseconds())/float64(b.N), "prepare-ns/op")
	removing := clock.Stopwatch()
	d.advance(1e9)
	b.ReportMetric(float64(removing().Nanoseconds())/float64(b.N), "remove-ns/op")
}

// BenchmarkBurst lets all items of one table expire at once, while other clients write to another
// table and read from it 500 times a second each. One operation is one expired item. The latencies
// are those clients' during the burst, and with the prefix idle- before it.
func BenchmarkBurst(b *testing.B) {
	d, tab := benchTable(b, Options{Dir: b.TempDir(), Clock: frozenClock()})
	other := d.table("other", func(t *TableDesc) { t.Indexes = nil })
	fillDue(b, d, tab)
	far := unix(1e12)
	var n atomic.Int64
	calls := map[string]func() error{
		"put": func() error {
			it := benchItem(int(n.Add(1)), far)
			return d.Write(context.Background(), &Write{Table: other, Key: keyOf(b, other, it), Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
		},
		"get": func() error {
			it := benchItem(int(n.Load()/2), far)
			return d.Read(context.Background(), func(v *View) error {
				_, _, err := v.Get(other, keyOf(b, other, it))
				return err
			})
		},
	}
	latencies := map[string]float64{}
	var mu sync.Mutex
	watch := func(prefix string, during func()) {
		stop := make(chan struct{})
		var watching sync.WaitGroup
		for name, call := range calls {
			watching.Go(func() {
				var took []time.Duration
				for tick := time.Tick(2 * time.Millisecond); ; {
					select {
					case <-stop:
						slices.Sort(took)
						for _, q := range []int{50, 99} {
							if len(took) > 0 {
								mu.Lock()
								latencies[fmt.Sprintf("%s%s-p%d-ms", prefix, name, q)] = float64(took[len(took)*q/100].Microseconds()) / 1000
								mu.Unlock()
							}
						}
						return
					case <-tick:
					}
					start := time.Now()
					if err := call(); err != nil {
						b.Error(err)
					}
					took = append(took, time.Since(start))
				}
			})
		}
		during()
		close(stop)
		watching.Wait()
	}
	watch("idle-", func() { time.Sleep(time.Second) })
	b.ResetTimer()
	watch("", func() { d.advance(1e9) })
	for name, ms := range latencies {
		b.ReportMetric(ms, name)
	}
}
