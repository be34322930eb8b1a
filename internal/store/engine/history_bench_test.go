package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// BenchmarkHistory is a durable put with point-in-time recovery off and on, 64 writers: of new items
// and of items over others, into a plain table, and into one with TTL and a stream of both images.
//
//	go test -run '^$' -bench History -count 6 ./internal/store/engine
func BenchmarkHistory(b *testing.B) {
	tables := map[string]func(*TableDesc){"plain": bareTable, "rich": func(*TableDesc) {}}
	for _, table := range []string{"plain", "rich"} {
		for _, keys := range []string{"new", "over"} {
			for _, days := range []int{0, 35} {
				b.Run(fmt.Sprintf("%s/%s/days=%d", table, keys, days), func(b *testing.B) {
					d, tab := benchTable(b, Options{Dir: b.TempDir()}, tables[table])
					if err := d.Engine.keepHistory("bench", days); err != nil {
						b.Fatal(err)
					}
					over := 0
					if keys == "over" {
						over = 2000
						for i := range over {
							benchPutOne(b, d, tab, i)
						}
					}
					benchPutOver(b, d, tab, over)
				})
			}
		}
	}
}

func benchPutOne(b *testing.B, d *db, tab *Table, i int) {
	it := benchItem(i, int(d.Now()/1000)+86400)
	k, err := tab.Desc().KeyOf(it)
	if err == nil {
		err = d.Write(context.Background(), &Write{Table: tab, Key: k, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
	}
	if err != nil {
		b.Error(err)
	}
}

// benchPutOver puts items over the first ones, or new ones if over is 0.
func benchPutOver(b *testing.B, d *db, tab *Table, over int) {
	var n atomic.Int64
	ttl := int(d.Now()/1000) + 2*86400
	b.SetParallelism(benchWriters / 2)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			it := benchItem(i, ttl)
			if over > 0 {
				it = benchItem(i%over, ttl+i)
			}
			k, err := tab.Desc().KeyOf(it)
			if err == nil {
				err = d.Write(context.Background(), &Write{Table: tab, Key: k, Decide: func(dynamo.Item, Instant) (dynamo.Item, error) { return it, nil }})
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}
